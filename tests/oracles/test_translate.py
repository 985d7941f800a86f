"""Tests `headshare translate` against transformers: imported MarianMT and BART models, their tokenizers, greedy and
beam."""

import json
import subprocess

import pytest
import sentencepiece
import torch
import transformers

LINES = ["Ein Mann schläft auf einer Bank.", "Zwei Hunde spielen im grünen Gras", "Eine Frau liest ein Buch im Park.",
         "Kinder rennen über eine Straße, während ein Auto vorbei fährt.", "Hund", "Der Junge wirft den Ball."]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Uses one thread: for models so small, threads that wait for one another on a busy machine take most of the
    time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def sentences():
    nouns = ["Mann", "Hund", "Ball", "Park", "Auto", "Bank", "Buch", "Straße", "Gras", "Junge", "Frau", "Kind"]
    verbs = ["schläft", "spielt", "liest", "rennt", "wirft", "sieht", "fährt", "steht"]
    return [f"Ein {nouns[i % 12]} {verbs[i * 7 % 8]} und {verbs[i * 3 % 8]} den {nouns[i * 5 % 12]} im "
            f"{nouns[i * 11 % 12]}, während eine {nouns[(i + 3) % 12]} über {i % 17} Hunde {verbs[(i + 2) % 8]}."
            for i in range(400)] + LINES


def write_marian_tokenizers(folder, sentences, shared):
    """Writes source.spm, target.spm and vocab.json as MarianMT has them."""
    pieces = []
    for side, kind in (("source", "unigram"), ("target", "bpe")):
        lines = sentences if side == "source" else [line.upper() for line in sentences]
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_prefix=str(folder / side), vocab_size=120, model_type=kind,
            hard_vocab_limit=False, minloglevel=2)
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
        pieces.append([model.id_to_piece(i) for i in range(model.get_piece_size())])
    names = ["</s>", "<unk>"] + [p for p in dict.fromkeys(pieces[0] + pieces[1]) if p not in ("<s>", "</s>", "<unk>")]
    vocabulary = {name: i for i, name in enumerate([*names, ">>fra<<", "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"source_lang": "de", "target_lang": "en",
                                                              "tokenizer_class": "MarianTokenizer"}))
    assert shared
    return vocabulary


@pytest.fixture(scope="module")
def marian(tmp_path_factory, sentences):
    folder = tmp_path_factory.mktemp("marian")
    vocabulary = write_marian_tokenizers(folder, sentences, shared=True)
    torch.manual_seed(3)
    config = transformers.MarianConfig(
        vocab_size=len(vocabulary), d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64,
        pad_token_id=vocabulary["<pad>"], eos_token_id=0, decoder_start_token_id=vocabulary["<pad>"],
        forced_eos_token_id=0, scale_embedding=True, activation_function="swish", init_std=0.4)
    model = transformers.MarianMTModel(config).eval()
    model.generation_config.bad_words_ids = [[vocabulary["<pad>"]]]
    model.save_pretrained(folder)
    return folder, model, transformers.MarianTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def ours(run, marian, tmp_path_factory):
    out = tmp_path_factory.mktemp("ours") / "model"
    run("convert", "--from", "hf", marian[0], out)
    return out


def translated(program, model, lines, *words):
    done = subprocess.run([str(w) for w in (program, "translate", model, "--threads", 1, "--json", *words)],
                          input="\n".join(lines).encode() + b"\n", capture_output=True, timeout=300, check=True)
    return [json.loads(line)["translations"] for line in done.stdout.decode().splitlines()]


def wanted(model, tokenizer, line, **options):
    """Translates each line alone: what is translated together must not matter."""
    batch = tokenizer([line], return_tensors="pt")
    with torch.no_grad():
        found = model.generate(**batch, return_dict_in_generate=True, output_scores=True, **options)
    return found


def test_source_ids(run, marian, ours):
    _, _, tokenizer = marian
    info = json.loads(run("info", ours, "--json").stdout)
    assert info["kind"] == "encoder-decoder"
    codes = [">>fra<< ", ">>fra<<", ">>eng<< ", ">>fra ", " >>fra<< ", ">>fra<< >>fra<< ", ">>ein Hund<<"]
    lines = LINES + [code + LINES[0] for code in codes] + [LINES[0] + " >>fra<<", ">>fra<<"]
    done = run("tokenize", "--tokenizer", ours / "source_tokenizer.json", "--json", text_in="\n".join(lines) + "\n")
    for line, found in zip(lines, done.stdout.splitlines(), strict=True):
        assert [*json.loads(found)["ids"], 0] == tokenizer([line])["input_ids"][0], line


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("penalty", [1.0, 0.6])
def test_marian(program, marian, ours, beam, penalty):
    _, model, tokenizer = marian
    n_best = min(beam, 2)
    found = translated(program, ours, LINES, "--beam", beam, "--n-best", n_best, "--length-penalty", penalty,
                       "--max-length", 20)
    for line, mine in zip(LINES, found):
        theirs = wanted(model, tokenizer, line, num_beams=beam, num_return_sequences=n_best, length_penalty=penalty,
                        max_new_tokens=20, do_sample=False)
        for k in range(n_best):
            ids = [i for i in theirs.sequences[k].tolist()[1:] if i != model.config.pad_token_id]
            assert mine[k]["tokens"] == ids, line
            assert mine[k]["text"] == tokenizer.decode(ids, skip_special_tokens=True), line
            if beam > 1:
                assert mine[k]["score"] == pytest.approx(theirs.sequences_scores[k].item(), abs=1e-4)


def test_no_repeated_pairs_and_minimum(program, marian, ours):
    _, model, tokenizer = marian
    found = translated(program, ours, LINES, "--beam", 3, "--no-repeat-ngram", 2, "--min-length", 6, "--max-length", 15)
    for line, mine in zip(LINES, found):
        theirs = wanted(model, tokenizer, line, num_beams=3, no_repeat_ngram_size=2, min_new_tokens=6,
                        max_new_tokens=15, do_sample=False)
        assert mine[0]["tokens"] == [i for i in theirs.sequences[0].tolist()[1:] if i != model.config.pad_token_id]


def bart_of(folder, sentences):
    """Makes a random BART with a byte-level tokenizer of its own, in vocab.json and merges.txt as it was first
    published."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.train_from_iterator(sentences, trainers.BpeTrainer(
        vocab_size=330, show_progress=False, special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    saved = json.loads(trained.to_str())["model"]
    vocabulary = saved["vocab"] | {"<|endoftext|>": len(saved["vocab"]), "<mask>": len(saved["vocab"]) + 1}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(" ".join(merge) + "\n" for merge in saved["merges"]))
    torch.manual_seed(5)
    config = transformers.BartConfig(
        vocab_size=len(vocabulary), d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64, init_std=0.4,
        pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, forced_bos_token_id=0,
        forced_eos_token_id=2)
    model = transformers.BartForConditionalGeneration(config).eval()
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("files", ["the pair", "tokenizer.json"])
def test_bart_with_its_own_tokenizer(program, run, tmp_path, sentences, files):
    """Puts <s> and </s> around the source; targets have them too."""
    (tmp_path / "theirs").mkdir()
    model = bart_of(tmp_path / "theirs", sentences)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    if files == "tokenizer.json":
        tokenizer.save_pretrained(tmp_path / "theirs")
        (tmp_path / "theirs" / "vocab.json").unlink()
    ours = tmp_path / "ours"
    run("convert", "--from", "hf", tmp_path / "theirs", ours)
    found = translated(program, ours, LINES, "--beam", 3, "--n-best", 2, "--max-length", 20)
    for line, mine in zip(LINES, found, strict=True):
        theirs = wanted(model, tokenizer, line, num_beams=3, num_return_sequences=2, max_new_tokens=20, do_sample=False)
        for k in range(2):
            ids = [i for i in theirs.sequences[k].tolist()[1:] if i != 1]
            assert mine[k]["tokens"] == ids, line
            assert mine[k]["text"] == tokenizer.decode(ids, skip_special_tokens=True), line
    (tmp_path / "source").write_text("\n".join(LINES) + "\n")
    (tmp_path / "target").write_text("\n".join(reversed(LINES)) + "\n")
    pairs = ("--source", tmp_path / "source", "--target", tmp_path / "target")
    assert evaluated_loss(run, ours, pairs) == pytest.approx(loss_of_pairs(model, tokenizer), abs=1e-4)


def mbart_of(folder, sentences, name):
    """Makes a random mBART and its tokenizer, from a SentencePiece model, in the files that transformers writes."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_prefix=str(folder / "sentencepiece.bpe"), vocab_size=120,
        model_type="unigram", hard_vocab_limit=False, minloglevel=2)
    tokenizer = getattr(transformers, name).from_pretrained(folder, src_lang="de_DE", tgt_lang="ro_RO")
    for file in folder.iterdir():
        file.unlink()
    tokenizer.save_pretrained(folder)
    language = tokenizer.convert_tokens_to_ids("ro_RO")
    torch.manual_seed(7)
    model = transformers.MBartForConditionalGeneration(transformers.MBartConfig(
        vocab_size=len(tokenizer), d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64, init_std=0.4,
        decoder_start_token_id=None if name == "MBartTokenizer" else 2, forced_eos_token_id=2)).eval()
    languages = [i for i in range(len(tokenizer)) if tokenizer.convert_ids_to_tokens(i)[2:3] == "_"]
    assert language in languages and len(languages) >= 25
    model.final_logits_bias[0, [0, 1, 3, *languages, len(tokenizer) - 1]] = -100  # tokens of no text
    model.save_pretrained(folder)
    marks = {"decoder_start_token_id": language} if name == "MBartTokenizer" else {"forced_bos_token_id": language}
    return model, tokenizer, marks


@pytest.mark.parametrize("name", ["MBartTokenizer", "MBart50Tokenizer"])
def test_mbart_as_transformers_writes_it(program, run, tmp_path, sentences, name):
    """A source has its language behind </s> or before it, and a target begins with its own, which only tgt_lang names."""
    (tmp_path / "theirs").mkdir()
    model, tokenizer, marks = mbart_of(tmp_path / "theirs", sentences, name)
    done = run("convert", "--from", "hf", tmp_path / "theirs", tmp_path / "ours")
    assert "targets are in ro_RO" in done.stderr and "sources are in de_DE" in done.stderr
    found = translated(program, tmp_path / "ours", LINES, "--beam", 3, "--n-best", 2, "--max-length", 20)
    for line, mine in zip(LINES, found, strict=True):
        theirs = wanted(model, tokenizer, line, num_beams=3, num_return_sequences=2, max_new_tokens=20, do_sample=False,
                        **marks)
        for k in range(2):
            ids = [i for i in theirs.sequences[k].tolist()[1:] if i != 1]
            assert mine[k]["tokens"] == ids, line
            assert mine[k]["text"] == tokenizer.decode(ids, skip_special_tokens=True), line
    aligned = translated(program, tmp_path / "ours", LINES, "--prefix", "Ein", "--alignment", "--max-length", 9)
    assert len(aligned) == len(LINES)
    # Another language is the configuration's to name.
    path = tmp_path / "theirs" / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"src_lang": "fr_XX"}))
    run("convert", "--from", "hf", tmp_path / "theirs", tmp_path / "french")
    tokenizer.src_lang = "fr_XX"
    [[mine]] = translated(program, tmp_path / "french", LINES[:1], "--beam", 1, "--max-length", 20)
    theirs = wanted(model, tokenizer, LINES[0], max_new_tokens=20, num_beams=1, do_sample=False, **marks)
    assert mine["tokens"] == theirs.sequences[0].tolist()[1:]


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_bart_with_another_tokenizer(program, run, tmp_path, sentences, kind):
    """Uses [CLS] A [SEP] of BERT's, as Chinese BARTs have it, and <s> A </s> of XLM-RoBERTa's."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    if kind == "wordpiece":
        words = dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz.,ßäüö0123456789"])
        words.update(dict.fromkeys(["##" + word for word in list(words)[5:]] + ["ein", "der", "im", "und", "ball"]))
        (theirs / "vocab.txt").write_text("".join(word + "\n" for word in words))
        tokenizer = transformers.BertTokenizer.from_pretrained(theirs)
    else:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences), model_prefix=str(theirs / "sentencepiece.bpe"), vocab_size=120,
            model_type="unigram", hard_vocab_limit=False, minloglevel=2)
        tokenizer = transformers.XLMRobertaTokenizer.from_pretrained(theirs)
    tokenizer.save_pretrained(theirs)
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    torch.manual_seed(9)
    model = transformers.BartForConditionalGeneration(transformers.BartConfig(
        vocab_size=len(tokenizer), d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64, init_std=0.4,
        pad_token_id=tokenizer.pad_token_id, bos_token_id=first, eos_token_id=last, decoder_start_token_id=last,
        forced_bos_token_id=first, forced_eos_token_id=last)).eval()
    model.save_pretrained(theirs)
    run("convert", "--from", "hf", theirs, tmp_path / "ours")
    found = translated(program, tmp_path / "ours", LINES, "--beam", 2, "--max-length", 20)
    for line, [mine] in zip(LINES, found, strict=True):
        batch = {"input_ids": tokenizer(line, return_tensors="pt")["input_ids"]}
        with torch.no_grad():
            theirs = model.generate(**batch, num_beams=2, max_new_tokens=20, do_sample=False)
        assert mine["tokens"] == [i for i in theirs[0].tolist()[1:] if i != tokenizer.pad_token_id], line
    (tmp_path / "source").write_text("\n".join(LINES) + "\n")
    assert 0 < evaluated_loss(run, tmp_path / "ours", ("--source", tmp_path / "source", "--target", tmp_path / "source"))


def evaluated_loss(run, model, pairs):
    return json.loads(run("evaluate", model, *pairs, "--json").stdout)["loss"]


def loss_of_pairs(model, tokenizer):
    """Returns the loss of all target tokens, each pair alone; transformers puts the start before the targets."""
    total, tokens = 0.0, 0
    for source, target in zip(LINES, reversed(LINES), strict=True):
        labels = tokenizer(target, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            total += model(**tokenizer(source, return_tensors="pt"), labels=labels).loss.item() * labels.numel()
        tokens += labels.numel()
    return total / tokens
