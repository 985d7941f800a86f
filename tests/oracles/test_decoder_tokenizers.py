"""Tests the tokenizers of today's decoders against Hugging Face tokenizers: ids, decoded text, and what is refused.

Tiny tokenizers are trained with the parts that the families' tokenizer.json files have. Drives
headshare/text/tokenize_tool of the build under test (tokenize_tool.py).
"""

import gzip
import json
import random
import subprocess

import pytest
from tokenize_tool import decode, encode, encode_with_spans, first_difference, random_texts, run_tool

tokenizers = pytest.importorskip("tokenizers")
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers  # noqa: E402

CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"
SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
CAPITALS, SMALL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
SIGN = r"[^\r\n\p{L}\p{N}]?"
LLAMA3 = rf"(?i:{CONTRACTIONS})|{SIGN}\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*{SPACES}"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
TEKKEN = rf"{SIGN}{CAPITALS}*{SMALL}+|{SIGN}{CAPITALS}+{SMALL}*|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*{SPACES}"
GPT4O = (
    rf"{SIGN}{CAPITALS}*{SMALL}+(?i:{CONTRACTIONS})?|{SIGN}{CAPITALS}+{SMALL}*(?i:{CONTRACTIONS})?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*{SPACES}"
)

NASTY = [
    "",
    " ",
    "\n",
    "a",
    "I'LL don't we'Re it'\u017f THEY'VE x'd y'D '\u017fs",
    "1 12 123 1234 12345 \u0663\u0664 \u00bd\u2167 x1y22z 1,234.50 a1 2b",
    "line\r\nline\n\n\r\r\n  \r\n x\t\t\n \n",
    "  two  three   four    \u00a0nbsp\u00a0 \u3000\u2028\u2029\u0085x\u180e\u200b",
    "e\u0301 \u00e9 \u212b \u0958 \u0344 q\u0323\u0307 q\u0307\u0323 \u1e69 s\u0323\u0307 \u0f73\u0f71\u0f72 \u2126",
    "\u1100\u1161\u11a8 \uac00\u11a8 \uac01 \u1112\u1161\u11ab\uae00 \u0915\u093c\u094d \u0b47\u0b3e \u30ab\u3099",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f3f3\ufe0f\u200d\U0001f308 \U0001f1e9\U0001f1ea \u2764\ufe0f",
    "CamelCaseHTTPServer iPhone McDonald \u01c5\u02b0\u65e5\u672c\u8a9eABC \u0421\u041b\u041e\u0432\u043e",
    "http://x.y/z//\n/ a/b/\r\n?! ...\n\n--\n",
    "\u2581 \u2581a \u2581\u2581b \u2581",
    "<s> a </s><s>b [INST] c [/INST]  d<unk> <pad>",
    "<|begin_of_text|>a<|end_of_text|> <|im_start|>user\n",
    "a b<x\u0958> <x\u0915\u093c>x a b  a b<x>  y",
    "abc" * 400,
    " " * 300,
    "A" * 300 + "b",
]


@pytest.fixture(scope="module")
def corpus(data):
    many = json.loads(gzip.decompress((data / "tokenizers" / "multilingual_inputs.json.gz").read_bytes()))
    english = gzip.decompress((data / "wikitext-2" / "valid.txt.gz").read_bytes()).decode()[:80000]
    return [entry["text"] for entry in many] + english.splitlines(keepends=True)


@pytest.fixture(scope="module")
def texts(corpus):
    generator = random.Random(7)
    spliced = ["".join(generator.choice(NASTY + corpus)[:40] for _ in range(4)) for _ in range(500)]
    return NASTY + corpus[:300] + spliced + random_texts(1500, seed=6)


def split_and_bytes(pattern):
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def digits_and_bytes():
    digits = pre_tokenizers.Digits(individual_digits=True)
    return pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])


def begin(token, number, second="{token}:1 $B:1"):
    return processors.TemplateProcessing(
        single=f"{token} $A", pair=f"{token} $A " + second.format(token=token), special_tokens=[(token, number)]
    )


LLAMA3_SPECIAL = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"]
BYTE_LEVEL = {
    # Each has a pre-tokenizer, a normalizer, special tokens, the one that begins texts, and ignore_merges.
    "llama3": (split_and_bytes(LLAMA3), None, LLAMA3_SPECIAL, "<|begin_of_text|>", True),
    "qwen2": (split_and_bytes(QWEN2), normalizers.NFC(), ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], None, False),
    "tekken": (split_and_bytes(TEKKEN), None, ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"], "<s>", True),
    "gpt-4o": (split_and_bytes(GPT4O), None, ["<|endoftext|>"], None, False),
    "starcoder": (digits_and_bytes(), None, ["<|endoftext|>", "<fim_prefix>"], None, False),
    "olmo": (pre_tokenizers.ByteLevel(add_prefix_space=False), normalizers.NFC(), ["<|endoftext|>", "<|padding|>"], None, False),
}


def trained_on_bytes(corpus, pre_tokenizer, normalizer, special):
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        made.normalizer = normalizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=1000, show_progress=False, special_tokens=special, initial_alphabet=alphabet)
    made.train_from_iterator(corpus, trainer)
    made.decoder = decoders.ByteLevel()
    return made


@pytest.fixture(scope="module")
def byte_level(corpus):
    """Returns Hugging Face's tokenizers by name."""
    made = {}
    for name, (pre_tokenizer, normalizer, special, first, ignore_merges) in BYTE_LEVEL.items():
        one = trained_on_bytes(corpus, pre_tokenizer, normalizer, special)
        if first is not None:
            template = begin(first, one.token_to_id(first))
            one.post_processor = processors.Sequence([processors.ByteLevel(), template])
        one.add_tokens([AddedToken("<x\u0958>", normalized=True), AddedToken("   ", normalized=True)])
        parts = json.loads(one.to_str())
        parts["model"]["ignore_merges"] = ignore_merges
        if ignore_merges:  # whole words that no merge makes
            size = len(parts["model"]["vocab"]) + len(parts["added_tokens"])
            for word in ("\u0120zebra", "CamelCaseHTTPServer", "abcabcabc"):
                parts["model"]["vocab"][word] = size
                size += 1
        made[name] = Tokenizer.from_str(json.dumps(renumbered(parts)))
    return made


def renumbered(parts):
    """Gives the added tokens the last ids, so that no id is missing."""
    vocabulary = parts["model"]["vocab"]
    behind = len(vocabulary)
    vocabulary.update({token: number for number, token in enumerate(sorted(vocabulary, key=vocabulary.get))})
    for token in parts["added_tokens"]:
        if token["content"] not in vocabulary:
            token["id"], behind = behind, behind + 1
    return parts


def saved(tokenizer, folder, **settings):
    tokenizer.save(str(folder / "tokenizer.json"))
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def assert_same(tool, path, texts, theirs):
    expected = [one.ids for one in theirs.encode_batch(texts, add_special_tokens=False)]
    assert first_difference(texts, encode(tool, path, texts, "special"), expected) is None
    decoded = [text.encode() for text in theirs.decode_batch(expected, skip_special_tokens=False)]
    ours = decode(tool, path, expected)
    assert first_difference(texts, ours, decoded) is None
    return expected


def assert_spans(tool, path, texts):
    """Spans are within the text and ascend; the ids are those of encode."""
    for text, ids, tokens in zip(texts, encode(tool, path, texts), encode_with_spans(tool, path, texts)):
        assert ids == [number for number, _, _ in tokens]
        places = [(first, last) for _, first, last in tokens]
        assert places == sorted(places) and all(0 <= first <= last <= len(text.encode()) for first, last in places)


def assert_exported(tool, path, texts, theirs, folder):
    """Reads a tokenizer that headshare wrote for Hugging Face there and here: it is the same."""
    exported = folder / "exported.json"
    exported.write_bytes(run_tool(tool, "export", path))
    again = Tokenizer.from_file(str(exported))
    for special in (False, True):
        expected = [one.ids for one in theirs.encode_batch(texts, add_special_tokens=special)]
        assert first_difference(texts, [one.ids for one in again.encode_batch(texts, add_special_tokens=special)], expected) is None
    ours, expected = again.encode("a b", "c"), theirs.encode("a b", "c")
    assert (ours.ids, ours.type_ids) == (expected.ids, expected.type_ids)


@pytest.mark.parametrize("name", BYTE_LEVEL)
def test_byte_level(tool, byte_level, texts, tmp_path, name):
    theirs = byte_level[name]
    path = saved(theirs, tmp_path)
    assert_same(tool, path, texts, theirs)
    assert_spans(tool, path, texts[:600])
    assert_exported(tool, path, texts[:600], theirs, tmp_path)


def test_modernbert(tool, corpus, texts, tmp_path):
    special = ["[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]", "<|endoftext|>"]
    theirs = trained_on_bytes(corpus, pre_tokenizers.ByteLevel(add_prefix_space=False), normalizers.NFC(), special)
    theirs.add_special_tokens([AddedToken("[MASK]", lstrip=True)])
    theirs.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 1)]
    )
    path = saved(theirs, tmp_path)
    assert_same(tool, path, [*texts, "a  [MASK]. [CLS][SEP]"], theirs)
    assert_exported(tool, path, texts[:600], theirs, tmp_path)


SECONDS = ["{token}:1 $B:1", "{token} $B", "$B:1", "$B"]


@pytest.mark.parametrize("second", SECONDS)
def test_every_pair_behind_a_token_that_begins_texts(tool, corpus, tmp_path, second):
    theirs = trained_on_bytes(corpus, pre_tokenizers.ByteLevel(add_prefix_space=False), None, ["<s>", "</s>"])
    theirs.post_processor = begin("<s>", theirs.token_to_id("<s>"), second)
    assert_exported(tool, saved(theirs, tmp_path), NASTY, theirs, tmp_path)


def test_a_decoder_that_adds_nothing(tool, corpus, tmp_path):
    theirs = trained_on_bytes(corpus, pre_tokenizers.ByteLevel(add_prefix_space=False), None, ["<s>", "</s>"])
    theirs.post_processor = begin("<s>", theirs.token_to_id("<s>"))
    path = saved(theirs, tmp_path, add_bos_token=False)
    theirs.post_processor = processors.TemplateProcessing(single="$A", pair="$A $B:1", special_tokens=[])
    assert_exported(tool, path, NASTY, theirs, tmp_path)


def test_byte_fallback_does_nothing_in_byte_level_bpe(tool, byte_level, tmp_path):
    parts = json.loads(byte_level["qwen2"].to_str())
    parts["model"]["byte_fallback"] = True
    theirs = Tokenizer.from_str(json.dumps(parts))
    assert_same(tool, saved(theirs, tmp_path), NASTY, theirs)


# ------------------------------------------------------------------------------------------- characters

REPLACE = normalizers.Replace(" ", "\u2581")
STRIP = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
CHARACTERS = {
    # Each has a normalizer, a pre-tokenizer, and a decoder.
    "llama2": (normalizers.Sequence([normalizers.Prepend("\u2581"), REPLACE]), None, STRIP),
    "mistral": (None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False), STRIP),
    "always": (None, pre_tokenizers.Metaspace(prepend_scheme="always", split=False), STRIP),
    "never": (None, pre_tokenizers.Metaspace(prepend_scheme="never", split=False), STRIP[:3]),
    "gemma": (REPLACE, pre_tokenizers.Split(" ", "merged_with_previous"), STRIP[:3]),
}


@pytest.fixture(scope="module")
def character_parts(corpus):
    """Returns a tokenizer.json that is trained on words, which is fast, with merges across them."""
    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    special = ["<unk>", "<s>", "</s>", "<pad>", "[INST]"] + [f"<0x{byte:02X}>" for byte in range(256)]
    words.train_from_iterator(
        corpus, trainers.BpeTrainer(vocab_size=1200, limit_alphabet=300, show_progress=False, special_tokens=special)
    )
    parts = json.loads(words.to_str())
    vocabulary, merges = parts["model"]["vocab"], parts["model"]["merges"]
    for left, right in (("\u2581", "\u2581"), ("\u2581\u2581", "\u2581\u2581"), ("e", "\u2581t"), (".", "\u2581"), ("a", "a"), ("aa", "aa")):
        if left in vocabulary and right in vocabulary and left + right not in vocabulary:
            vocabulary[left + right] = len(vocabulary)
            merges.append([left, right])
    parts["model"].update(byte_fallback=True, fuse_unk=True, unk_token="<unk>")
    parts["added_tokens"] = [token for token in parts["added_tokens"] if not token["content"].startswith("<0x")]
    return dict(parts, pre_tokenizer=None)


def with_parts(character_parts, name):
    """Returns Hugging Face's tokenizer with the parts of such a model."""
    normalizer, pre_tokenizer, decoder = CHARACTERS[name]
    made = Tokenizer.from_str(json.dumps(character_parts))
    if normalizer is not None:
        made.normalizer = normalizer
    if pre_tokenizer is not None:
        made.pre_tokenizer = pre_tokenizer
    made.decoder = decoders.Sequence(decoder)
    made.post_processor = begin("<s>", made.token_to_id("<s>"))
    return made


@pytest.mark.parametrize("name", CHARACTERS)
def test_characters(tool, character_parts, texts, tmp_path, name):
    theirs = with_parts(character_parts, name)
    theirs.add_tokens([AddedToken("\u2581\u2581\u2581", normalized=False), AddedToken("a b", normalized=True), AddedToken("<x>", rstrip=True)])
    path = saved(theirs, tmp_path)
    assert_same(tool, path, texts, theirs)
    assert_spans(tool, path, texts[:600])
    assert_exported(tool, path, texts[:600], theirs, tmp_path)


def test_a_long_text_without_spaces(tool, corpus, byte_level, character_parts, tmp_path):
    text = "".join(corpus).replace(" ", "")[:100_000]
    for name, theirs in (("llama3", byte_level["llama3"]), ("llama2", with_parts(character_parts, "llama2"))):
        folder = tmp_path / name
        folder.mkdir()
        assert encode(tool, saved(theirs, folder), [text], "special") == [theirs.encode(text, add_special_tokens=False).ids]


def test_bytes_that_are_no_text_survive(tool, character_parts, tmp_path):
    path = saved(with_parts(character_parts, "llama2"), tmp_path)
    generator = random.Random(8)
    texts = [generator.randbytes(generator.randrange(60)) for _ in range(300)]
    assert decode(tool, path, encode(tool, path, texts)) == texts


# ------------------------------------------------------------------------------------------- refusals


def refusal(tool, folder, parts):
    (folder / "tokenizer.json").write_text(json.dumps(parts))
    done = subprocess.run([tool, "encode", str(folder)], input=b"", capture_output=True, timeout=60)
    assert done.returncode != 0
    return done.stderr.decode()


def test_what_is_not_the_same_is_refused_by_name(tool, byte_level, character_parts, tmp_path):
    llama3 = json.loads(byte_level["llama3"].to_str())
    split = llama3["pre_tokenizer"]["pretokenizers"][0]
    cases = [
        (dict(split, pattern={"Regex": r"\w+|\d"}), r"\w+|\d"),
        (dict(split, pattern={"String": " "}), '{"String":" "}'),
        (dict(split, behavior="Removed"), "behavior"),
        (dict(split, invert=True), "invert"),
    ]
    for changed, wanted in cases:
        parts = json.loads(json.dumps(llama3))
        parts["pre_tokenizer"]["pretokenizers"][0] = changed
        assert wanted in refusal(tool, tmp_path, parts)
    llama2 = json.loads(with_parts(character_parts, "llama2").to_str())
    for key, value, wanted in [
        ("normalizer", {"type": "Lowercase"}, "normalizer"),
        ("decoder", {"type": "WordPiece"}, "decoder"),
        ("decoder", {"type": "ByteLevel"}, "normalizer"),  # bytes, then
        ("pre_tokenizer", {"type": "Whitespace"}, "pre_tokenizer"),
        ("model", dict(llama2["model"], ignore_merges=True), "ignore_merges"),
    ]:
        assert wanted in refusal(tool, tmp_path, dict(llama2, **{key: value}))
    llama2["model"]["vocab"]["A byte less"] = llama2["model"]["vocab"].pop("<0x41>")
    assert "no token <0x41>" in refusal(tool, tmp_path, llama2)
