"""Starts a Slurm of two nodes on this machine, for tests: no munge, systemd, cgroups or database, all below a temporary
folder, on ports that are free."""

import os
import pwd
import shutil
import signal
import socket
import subprocess

import pytest

COMMANDS = ["slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "srun"]
NODES = ["s1", "s2"]

# cred_expire is how long a task pauses that was queued again: 5 s, the least that Slurm takes, instead of 120.
CONFIGURATION = """
ClusterName=headshare
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
AuthType=auth/none
AuthInfo=cred_expire=5
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
SlurmUser={user}
SlurmdUser={user}
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,sched_interval=1
ReturnToService=2
KillWait=10
MailProg=/bin/true
MpiDefault=none
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=4000\n"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Cluster:
    """Has two nodes, s1 and s2, of one processor each. `environment` is what Slurm's commands need."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf")}
        self._daemons = {}

    def start(self):
        host, ports = socket.gethostname(), free_ports(1 + len(NODES))
        configuration = CONFIGURATION.format(
            host=host, controller_port=ports[0], user=pwd.getpwuid(os.geteuid()).pw_name, folder=self.folder
        )
        for name, port in zip(NODES, ports[1:]):
            configuration += NODE.format(name=name, host=host, port=port)
        (self.folder / "slurm.conf").write_text(configuration)
        for name in ["state", *[f"spool-{node}" for node in NODES]]:
            (self.folder / name).mkdir()
        self._daemon("slurmctld", ["slurmctld", "-D"])
        for node in NODES:
            self._daemon(node, ["slurmd", "-D", "-N", node])
        self._wait_for(*NODES)

    def run(self, *command, check=True, timeout=90):
        """Runs one of Slurm's commands."""
        done = subprocess.run(
            command, env={**os.environ, **self.environment}, capture_output=True, text=True, timeout=timeout
        )
        assert not check or done.returncode == 0, f"{command}: {done.stderr}"
        return done

    def lose(self, node):
        """Lets a node vanish: its daemon is killed, the controller is told, and what ran there runs on."""
        self._end(node)
        self.run("scontrol", "update", f"nodename={node}", "state=down", "reason=lost")

    def restore(self, node, hide=None):
        """Starts the daemon of a node again. With `hide`, its jobs find another, empty folder under that path."""
        self._end(node)
        slurmd = ["slurmd", "-D", "-N", node]
        if hide is not None:
            slurmd = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(hide), *slurmd]
        self._daemon(node, slurmd)
        self.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)  # refused where it is not down
        self._wait_for(node)

    def processes(self, node):
        """Lists the processes of jobs on a node, without their shepherds."""
        return [process for process, words in self._processes() if f"SLURMD_NODENAME={node}".encode() in words]

    def jobs(self):
        """Returns [state, node] of all tasks that are queued or run."""
        return [line.split("|") for line in self.run("squeue", "-h", "-r", "-o", "%T|%N").stdout.splitlines()]

    def logs(self):
        return "\n".join(path.read_text(errors="replace")[-3000:] for path in self.folder.glob("*.log"))

    def stop(self):
        """Ends the daemons, and what jobs may have left behind."""
        for name in self._daemons:
            self._end(name)
        for process, _ in self._processes():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def _processes(self):
        """Lists (process, its environment) of what was started in this cluster: jobs and their shepherds."""
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if int(entry) != os.getpid() and f"SLURM_CONF={self.folder}/slurm.conf".encode() in words:
                yield int(entry), words

    def _wait_for(self, *nodes):
        """Waits until these nodes are there, as srun does."""
        command = ["srun", f"--nodes={len(nodes)}", f"--nodelist={','.join(nodes)}", "--immediate=60", "true"]
        started = self.run(*command, check=False)
        if started.returncode != 0:
            pytest.fail(f"Slurm did not start: {started.stderr}\n{self.logs()}", pytrace=False)

    def _end(self, name):
        if self._daemons[name].poll() is None:
            self._daemons[name].kill()
            self._daemons[name].wait()

    def _daemon(self, name, command):
        with open(self.folder / f"{name}.log", "wb") as log:
            self._daemons[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.environment},
                start_new_session=True,
            )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"  # where Debian has the daemons
    missing = [command for command in COMMANDS if shutil.which(command, path=path) is None]
    if missing:
        pytest.skip(f"no Slurm: {', '.join(missing)} not found; tools/setup tests installs it")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", path)
        made = Cluster(tmp_path_factory.mktemp("slurm"))
        try:
            made.start()
            yield made
        finally:
            made.stop()
