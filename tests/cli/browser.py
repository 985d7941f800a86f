"""Runs headless Chromium for the tests of report.html: what it says on its console, what it asks the network for."""

import base64
import json
import re
import shutil
import zlib

import pytest

FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --hide-scrollbars""".split()


class Page:
    def __init__(self, driver):
        self._driver = driver

    def open(self, path, *, width=1280, dark=False, media=""):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._cdp("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self._cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.logs("browser")
        self.logs("performance")
        self._driver.get(path.resolve().as_uri())
        return self

    def run(self, script, *arguments):
        return self._driver.execute_script(script, *arguments)

    def press(self, key):
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self._driver).send_keys(key).perform()

    def point_at(self, selector):
        from selenium.webdriver.common.action_chains import ActionChains

        [found] = self._driver.find_elements("css selector", selector)[:1]
        ActionChains(self._driver).move_to_element(found).perform()

    def pdf(self):
        return base64.b64decode(self._cdp("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])

    def printed(self):
        """Counts the characters of each printed page. Chromium writes text as strings of two-byte glyphs,
        "<0024003D>"."""
        objects = {number: body for number, body in re.findall(rb"\n(\d+) 0 obj\n(.*?)\nendobj", self.pdf(), re.DOTALL)}
        pages = [body for body in objects.values() if re.match(rb"<</Type /Page\b(?!s)", body)]
        contents = [objects[re.search(rb"/Contents (\d+) 0 R", page)[1]] for page in pages]
        streams = [zlib.decompress(one[one.index(b"stream\n") + 7 : one.rindex(b"\nendstream")]) for one in contents]
        return [sum(len(text) // 4 for text in re.findall(rb"<([0-9A-Fa-f]+)>", stream)) for stream in streams]

    def logs(self, kind):
        return self._driver.get_log(kind)

    def requests(self):
        """Returns the addresses that were asked for since open()."""
        events = [json.loads(entry["message"])["message"] for entry in self.logs("performance")]
        return [
            event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"
        ]

    def _cdp(self, command, **parameters):
        return self._driver.execute_cdp_cmd(command, parameters)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Opens a browser window; it needs the Debian packages chromium and chromium-driver."""
    binaries = [shutil.which("chromium"), shutil.which("chromedriver")]
    if None in binaries:
        pytest.skip("no chromium with chromedriver: apt-get install chromium chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = binaries[0]
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    # Both binaries are named, so that selenium looks for none itself.
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(binaries[1]))
    yield Page(driver)
    driver.quit()
