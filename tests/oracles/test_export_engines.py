"""Tests `convert --to gguf` and `--to ctranslate2`: llama.cpp and CTranslate2 run decoders whose heads share."""

import json
import multiprocessing
import os
import urllib.request

import pytest
from conftest import run_command
from shared_decoders import HEAD, SIZES, TOKENIZER, write_decoder
from tokenize_tool import encode

numpy = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
gguf = pytest.importorskip("gguf")
from safetensors.torch import load_file  # noqa: E402

LLAMA = {"positions": "rotary", "norm": "rms", "feed-forward": "swiglu"}
SCALED = {
    "linear": {"rotary-scaling": "linear", "rotary-factor": 2.5},
    "llama3": {"rotary-scaling": "llama3", "rotary-factor": 4.0, "rotary-original-context": 32},
    "yarn": {"rotary-scaling": "yarn", "rotary-factor": 4.0, "rotary-original-context": 1024, "rotary-beta-fast": 4, "rotary-beta-slow": 2,
             "rotary-attention-factor": 1.3},
}
PROMPT = [7, 200, 31, 95, 4, 118]
NEW = 50
PRINTABLE = range(0x21, 0x7F)  # ids of bytes that are characters, which llama.cpp reports one by one


@pytest.fixture
def logits(build_dir, tmp_path):
    """Returns headshare's logits of one text."""

    def compute(directory, ids):
        (tmp_path / "ids.json").write_text(json.dumps(dict(ids=[ids])))
        tool = build_dir / "obj" / "models" / "model_tool"
        run_command([tool, directory, tmp_path / "ids.json", tmp_path / "out.safetensors"])
        return load_file(tmp_path / "out.safetensors")["logits"][0]

    return compute


def greedy(scores, written, of=None):
    """Tells whether each written token is the likeliest one, or as good as it, of all or of some tokens."""
    best = (scores if of is None else scores[:, of]).max(1).values
    return (best - scores.gather(1, torch.tensor(written)[:, None])[:, 0] < 1e-3).all()


SERVERS = []  # they last as long as their process


def llama_server(path):
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = params.n_batch = SIZES["context"]
    params.n_parallel = 1
    params.warmup = params.ui = False
    params.fit_params = False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    SERVERS.append(xllamacpp.Server(params))
    return SERVERS[-1]


def apart(function, *arguments):
    """Returns what the function returns, from a process that ends at once: llama.cpp's server sometimes waits for itself for
    ever when it is taken down."""
    pytest.importorskip("xllamacpp")
    spawn = multiprocessing.get_context("spawn")
    receiver, sender = spawn.Pipe(duplex=False)
    process = spawn.Process(target=send_and_end, args=(sender, function, arguments))
    process.start()
    sender.close()
    found = receiver.recv()  # EOFError where the process failed; its message stands above
    process.join()
    return found


def send_and_end(sender, function, arguments):
    sender.send(function(*arguments))
    os._exit(0)


def llama_tokens(path, texts):
    """Returns llama.cpp's ids of each text, with the token that begins texts."""
    server = llama_server(path)
    found = []
    for text in texts:
        ask = json.dumps({"content": text, "add_special": True}).encode()
        request = urllib.request.Request(server.listening_address + "/tokenize", ask, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            found.append(json.load(answer)["tokens"])
    return found


def llama_steps(path):
    """Returns what llama.cpp tells of each token that it writes behind the prompt."""
    ask = {"prompt": PROMPT, "n_predict": NEW, "n_probs": SIZES["vocabulary"], "temperature": 0, "cache_prompt": False}
    ask["logit_bias"] = [[i, False] for i in range(SIZES["vocabulary"]) if i not in PRINTABLE]
    return llama_server(path).handle_completions(ask)["choices"][0]["logprobs"]["content"]


def llama_answers(path):
    """Returns the tokens that llama.cpp writes behind the prompt, and the log-probabilities of all tokens at each."""
    steps = apart(llama_steps, path)
    found = torch.full((len(steps), SIZES["vocabulary"]), -torch.inf)
    for row, step in zip(found, steps, strict=True):
        for one in step["top_logprobs"]:
            row[one["id"]] = one["logprob"]
    return [step["id"] for step in steps], found


CASES = {
    "mhe_add": ("mhe_add", {}, "gpt2", 1),
    "gqa": ("gqa", {"groups": 2}, "gpt2", 2),
    "skv": ("skv", {}, "gpt2", 4),
    "starcoder": ("mhe_mul", {}, "starcoder", 1),
    "llama": ("gqa", {"groups": 2, **LLAMA}, "llama", 2),
    **{f"llama, {kind}": ("gqa", {"groups": 2, **LLAMA, **scaling}, "llama", 2) for kind, scaling in SCALED.items()},
}


@pytest.mark.parametrize("scheme, changes, architecture, heads", CASES.values(), ids=CASES.keys())
def test_llama_cpp_writes_what_headshare_would(run, logits, tmp_path, scheme, changes, architecture, heads):
    ours = write_decoder(tmp_path / "ours", scheme, **changes)
    done = run("convert", ours, tmp_path / "out", "--to", f"gguf:{architecture}", "--verify")
    assert "read back, outputs differ by" in done.stdout
    reader = gguf.GGUFReader(tmp_path / "out" / "model.gguf")
    fields = {name: field.contents() for name, field in reader.fields.items()}
    assert fields["general.architecture"] == architecture
    assert fields[f"{architecture}.attention.head_count_kv"] == heads
    assert fields["tokenizer.ggml.tokens"] == TOKENIZER["tokens"]
    caches = 2 * SIZES["layers"] * heads * HEAD * 2  # keys and values in float16
    assert f"caches {caches} bytes per token in float16" in done.stderr

    written, found = llama_answers(tmp_path / "out" / "model.gguf")
    expected = logits(ours, PROMPT + written)[len(PROMPT) - 1 : -1]
    assert len(written) == NEW and greedy(expected, written, PRINTABLE)
    assert (found - expected.log_softmax(1)).abs().max() < 5e-3
    assert expected.std() > 0.1, "too flat to show anything"


# Words that only some of the rules keep together, so that each cuts these texts in its own way.
MERGED = ["12", "123", "1234", "ab", "abC", "'S", "ab'", "\u01201", "\u0120\u0120", "/\u010a", "!/"]
CUT = ["ab12345 123 1 x", "abC's ab'S abCab  1\n", "!/\n/\n a/ab", "\u0665\u0664 \u65e5abC \u00e9'S", "  1  ab"]


@pytest.mark.parametrize("rule", ["digits", "llama3", "qwen2", "tekken"])
def test_llama_cpp_cuts_text_as_headshare_does(run, tool, tmp_path, rule):
    tokens = [*TOKENIZER["tokens"][:256], *MERGED, TOKENIZER["tokens"][256]]
    merges = [f"{one[:-1]} {one[-1]}" for one in MERGED]
    ours = write_decoder(tmp_path / "ours", "sha", vocabulary=len(tokens))
    tokenizer = dict(TOKENIZER, version=2, tokens=tokens, merges=merges, special=[len(tokens) - 1], split=rule)
    tokenizer["begin-of-text"] = len(tokens) - 1
    (ours / "tokenizer.json").write_text(json.dumps(tokenizer))
    run("convert", ours, tmp_path / "out", "--to", "gguf")
    found = apart(llama_tokens, tmp_path / "out" / "model.gguf", CUT)
    assert found == [[len(tokens) - 1, *ids] for ids in encode(tool, ours / "tokenizer.json", CUT)]


# Merges in the order of their results, with every pair that makes a result, as SentencePiece's vocabularies have them.
RESULTS = ["he", "\u2581t", "\u2581\u2581", "\u2581the", "aa", "in", "aaa", "\u2581\u2581\u2581", "aaaa", "the", "\u2581a", "e\u2581", "ing",
           "\u2581\u2581\u2581\u2581", "\u2581thing", "aaaaa", "n\u2581", "\u00e9\u00e8", ".\u2581"]  # fmt: skip
CHARACTERS = ["\u2581", *"abeghint.", "\u00e9", "\u00e8", "\n"]
TEXTS = ["the thing", "  the   aaaaaaa thing a", "aaa aaaaa aaaaaa in the", "the. then.  \u65e5 \u00e9\u00e8 x\n\n", "\u2581\u2581 a\u2581the", " ", "</s> the</s>  aa<s>",
         "in" * 40 + "a" * 41 + " " * 43]  # fmt: skip


@pytest.mark.parametrize("space_before", ["even-space", "never"])
def test_llama_cpp_merges_characters_as_headshare_does(run, tool, tmp_path, space_before):
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *CHARACTERS, *reversed(RESULTS)]
    ids = {token: at for at, token in enumerate(tokens)}
    pairs = [[(ids[one[:at]], ids[one[at:]]) for at in range(1, len(one)) if one[:at] in ids and one[at:] in ids] for one in RESULTS]
    tokenizer = {
        "format": "headshare-tokenizer", "version": 2, "kind": "character-bpe", "tokens": tokens, "merges": [pair for one in pairs for pair in sorted(one)],
        "special": [0, 1, 2], "space-before": space_before, "replaces-first": True, "strips-space": space_before != "never",
        "unknown": 0, "begin-of-text": 1, "end-of-text": 2,
    }  # fmt: skip
    ours = write_decoder(tmp_path / "ours", "gqa", vocabulary=len(tokens) + 1, **LLAMA)
    (ours / "tokenizer.json").write_text(json.dumps(tokenizer))
    run("convert", ours, tmp_path / "out", "--to", "gguf")
    found = apart(llama_tokens, tmp_path / "out" / "model.gguf", TEXTS)
    assert found == [[1, *ids] for ids in encode(tool, ours / "tokenizer.json", TEXTS, "special")]


def test_transformers_reads_the_gguf_file(run, logits, tmp_path):
    """A second reader, of the form with a key for each head; it takes GPT-2's context and width of feed-forward parts."""
    transformers = pytest.importorskip("transformers")
    ours = write_decoder(tmp_path / "ours", "skv", context=1024, **{"feed-forward-width": 4 * SIZES["d-model"]})
    run("convert", ours, tmp_path / "out", "--to", "gguf")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out", gguf_file="model.gguf").eval()
    with torch.no_grad():
        found = model(torch.tensor([PROMPT])).logits[0]
    assert (found - logits(ours, PROMPT)).abs().max() < 1e-4


def scored(generator, texts):
    return torch.from_numpy(numpy.array(generator.forward_batch(texts)))


CT2_CASES = {
    "mhe_mul": ("mhe_mul", {"activation": "gelu-erf"}),
    "mhe_add": ("mhe_add", {"activation": "relu"}),
    "gqa": ("gqa", {"groups": 2}),
    "mha, sinusoidal": ("mha", {"positions": "sinusoidal"}),
    "llama gqa": ("gqa", {"groups": 2, **LLAMA}),
    "llama mqa": ("mqa", LLAMA),
    "llama mqa, yarn": ("mqa", {**LLAMA, **SCALED["yarn"]}),  # all kinds are written as factors
}


@pytest.mark.parametrize("scheme, changes", CT2_CASES.values(), ids=CT2_CASES.keys())
def test_ctranslate2_writes_what_headshare_would(run, logits, tmp_path, scheme, changes):
    ctranslate2 = pytest.importorskip("ctranslate2")
    ours = write_decoder(tmp_path / "ours", scheme, **changes)
    done = run("convert", ours, tmp_path / "out", "--to", "ctranslate2", "--verify")
    assert "read back" in done.stdout and "CTranslate2 caches" in done.stderr
    tokens = json.loads((tmp_path / "out" / "vocabulary.json").read_text())
    assert tokens == TOKENIZER["tokens"]
    generator = ctranslate2.Generator(str(tmp_path / "out"), intra_threads=1)
    prompts = [[tokens[i] for i in PROMPT], [tokens[i] for i in PROMPT[:2]]]  # unequal: generation pads
    answers = generator.generate_batch(prompts, max_length=NEW, include_prompt_in_result=False, end_token=[], return_scores=False)
    for prompt, answer in zip((PROMPT, PROMPT[:2]), answers, strict=True):
        written = answer.sequences_ids[0]
        expected = logits(ours, prompt + written)[len(prompt) - 1 : -1]
        assert len(written) == NEW and greedy(expected, written)
    found = scored(generator, [prompts[0]] * 2)
    assert (found[1] - logits(ours, PROMPT)).abs().max() < 1e-5 * max(1, float(found.abs().max()))


def test_ctranslate2_scores_texts_of_unequal_length_with_all_heads_cached(run, logits, tmp_path):
    ctranslate2 = pytest.importorskip("ctranslate2")
    ours = write_decoder(tmp_path / "ours", "mhe_mul")
    texts = [PROMPT, PROMPT[:3]]
    for form in ("generation", "scoring"):
        done = run("convert", ours, tmp_path / form, "--to", f"ctranslate2:{form}")
        assert ("all 4 heads" in done.stderr) and ("forward_batch" in done.stderr) == (form == "generation")
        generator = ctranslate2.Generator(str(tmp_path / form), intra_threads=1)
        ids = [[TOKENIZER["tokens"][i] for i in text] for text in texts]
        if form == "generation":
            with pytest.raises(ValueError, match="shape"):
                generator.forward_batch(ids)
            continue
        found = scored(generator, ids)
        for row, text in zip(found, texts, strict=True):
            assert (row[: len(text)] - logits(ours, text)).abs().max() < 1e-4


def onnx_logits(folder, ids):
    """Returns what onnxruntime computes from a folder of transformers, which torch's exporter reads."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("onnxscript")
    onnxruntime = pytest.importorskip("onnxruntime")

    class Scorer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()

        def forward(self, ids):
            return self.model(ids, use_cache=False).logits

    scorer = Scorer()
    torch.onnx.export(scorer, (ids,), dynamo=True, verbose=False).save(str(folder / "model.onnx"))
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    (found,) = session.run(None, {session.get_inputs()[0].name: ids.numpy()})
    with torch.no_grad():
        assert (torch.from_numpy(found) - scorer(ids)).abs().max() < 1e-4
    return torch.from_numpy(found)[0]


def test_four_engines_write_the_same_text(run, logits, tmp_path):
    """One folded model in llama.cpp, transformers, onnxruntime and CTranslate2: the same 50 greedy tokens."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    ours = write_decoder(tmp_path / "ours", "mhe_add")
    for form in ("gguf", "hf", "ctranslate2"):
        run("convert", ours, tmp_path / form, "--to", form)
    written, _ = llama_answers(tmp_path / "gguf" / "model.gguf")
    text = PROMPT + written
    generator = ctranslate2.Generator(str(tmp_path / "ctranslate2"), intra_threads=1)
    engines = {
        "headshare": logits(ours, text),
        "onnxruntime": onnx_logits(tmp_path / "hf", torch.tensor([text])),
        "ctranslate2": scored(generator, [[TOKENIZER["tokens"][i] for i in text]])[0],
    }
    for name, scores in engines.items():
        best = scores[len(PROMPT) - 1 : -1, PRINTABLE].argmax(1) + PRINTABLE.start
        assert best.tolist() == written, name
