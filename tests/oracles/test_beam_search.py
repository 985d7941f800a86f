"""Tests beam search against transformers' generate(), with the same table of scores in both.

The table gives the scores of the next token for (sentence, the two tokens before it). transformers gets it as a tiny
encoder-decoder model whose encoder passes the sentence's number on. Its topk has no rule for equal scores (CPU and GPU
differ), so that it is replaced by a stable one here; ours keeps the order. Everything is compared with ==: tokens and
scores are the same float32 numbers.
"""

import json
import random

import pytest
from conftest import run_command

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

VOCABULARY, ROWS, START, END, PAD = 40, 997, 0, 1, 2
# Where fewer hypotheses exist than beams (a forced token as the only one), transformers fills up with scores from -1e9.
PLACEHOLDER = -1e5
TOKEN_FACTORS = (7919, 104729, 1299709)  # beam_tool.cc


class SentenceNumbers(torch.nn.Module):
    main_input_name = "input_ids"

    def forward(self, input_ids=None, **_):
        output = transformers.modeling_outputs.BaseModelOutput
        return output(last_hidden_state=input_ids[:, :, None].to(torch.float32))


class TableModel(transformers.PreTrainedModel, transformers.GenerationMixin):
    config_class = transformers.PretrainedConfig
    main_input_name = "input_ids"
    _supports_cache_class = False

    def __init__(self, table):
        config = transformers.PretrainedConfig(is_encoder_decoder=True, vocab_size=VOCABULARY)
        super().__init__(config)
        self.encoder = SentenceNumbers()
        self.table = table
        self.anchor = torch.nn.Parameter(torch.zeros(1))  # transformers asks a parameter for the device

    def get_encoder(self, *_, **__):
        return self.encoder

    def prepare_inputs_for_generation(self, decoder_input_ids, encoder_outputs=None, **_):
        return {"decoder_input_ids": decoder_input_ids, "encoder_outputs": encoder_outputs}

    def forward(self, input_ids=None, decoder_input_ids=None, encoder_outputs=None, **_):
        sentence = encoder_outputs.last_hidden_state[:, 0, 0].long()
        before = decoder_input_ids[:, -2] if decoder_input_ids.shape[1] > 1 else torch.zeros_like(sentence)
        first, second, third = TOKEN_FACTORS
        row = (first * sentence + second * before + third * decoder_input_ids[:, -1]) % ROWS
        return transformers.modeling_outputs.Seq2SeqLMOutput(logits=self.table[row][:, None])


def stable_topk(scores, k):
    values, indices = torch.sort(scores, dim=-1, descending=True, stable=True)
    return values[..., :k], indices[..., :k]


def random_table(levels):
    """Returns `levels` distinct scores: few make ties, within a row and between hypotheses."""
    generator = torch.Generator().manual_seed(levels)
    table = torch.randint(levels, (ROWS, VOCABULARY), generator=generator).float() * (8 / levels)
    table[:, END] += 1.5  # hypotheses end at many lengths
    return table


def random_cases(count):
    dice = random.Random(0)
    cases = []
    for _ in range(count):
        options = {"beam": dice.choice([1, 2, 3, 4, 5, 8])}
        options["n-best"] = dice.choice([1, options["beam"]])
        options["length-penalty"] = dice.choice([0.0, 0.6, 1.0, 2.0, -0.5])
        options["early-stopping"] = dice.choice(["false", "true", "never"])
        options["max-length"] = dice.choice([1, 2, 5, 12, 30])
        options["min-length"] = dice.choice([0, 0, 1, min(4, options["max-length"])])
        options["no-repeat-ngram"] = dice.choice([0, 0, 1, 2, 3])
        # No hypothesis runs out of allowed tokens.
        if options["no-repeat-ngram"] == 1:
            options["max-length"] = min(options["max-length"], 12)
        prefix = [dice.randrange(3, VOCABULARY) for _ in range(dice.choice([0, 0, 0, 1, 3]))]
        cases.append(
            {
                "options": options,
                "start": START,
                "end_of_text": END,
                "suppressed": dice.choice([[], [PAD], [PAD, 7, 8]]),
                "forced_first": dice.choice([None, None, 5]),
                "forced_last": dice.choice([None, None, END]),
                "sentences": [{"id": dice.randrange(1000), "prefix": prefix} for _ in range(dice.randrange(1, 6))],
            }
        )
    return cases


def early_stopping(name):
    return {"false": False, "true": True, "never": "never"}[name]


def reference(model, case):
    """Returns the hypotheses of each sentence: (tokens behind the prefix with the end, score, or None for greedy)."""
    options = case["options"]
    beam = options["beam"]
    prompts = [[START, *sentence["prefix"]] for sentence in case["sentences"]]
    beams = {}
    if beam > 1:
        beams = {"length_penalty": options["length-penalty"], "early_stopping": early_stopping(options["early-stopping"])}
    config = transformers.GenerationConfig(
        num_beams=beam,
        num_return_sequences=options["n-best"],
        max_length=len(prompts[0]) + options["max-length"],
        min_new_tokens=options["min-length"],
        no_repeat_ngram_size=options["no-repeat-ngram"],
        suppress_tokens=case["suppressed"] or None,
        forced_bos_token_id=case["forced_first"],
        forced_eos_token_id=case["forced_last"],
        decoder_start_token_id=START,
        eos_token_id=END,
        pad_token_id=PAD,
        do_sample=False,
        use_cache=False,
        return_dict_in_generate=True,
        output_scores=True,
        **beams,
    )
    result = model.generate(
        torch.tensor([[sentence["id"]] for sentence in case["sentences"]]),
        decoder_input_ids=torch.tensor(prompts),
        generation_config=config,
    )
    hypotheses = []
    for i, sequence in enumerate(result.sequences.tolist()):
        tokens = sequence[len(prompts[0]) :]
        # Padding stands behind the end, and behind a hypothesis that was cut before the longest one.
        tokens = tokens[: tokens.index(END) + 1] if END in tokens else tokens[: options["max-length"]]
        hypotheses.append((tokens, result.sequences_scores[i].item() if beam > 1 else None))
    n = options["n-best"]
    groups = [hypotheses[i : i + n] for i in range(0, len(hypotheses), n)]
    return [[one for one in group if one[1] is None or one[1] > PLACEHOLDER] for group in groups]


@pytest.mark.parametrize("levels", [1 << 20, 4], ids=["distinct", "ties"])
def test_agrees_with_transformers(build_dir, tmp_path, monkeypatch, levels):
    table = random_table(levels)
    (tmp_path / "table").write_bytes(table.numpy().tobytes())
    cases = random_cases(400)
    request = {"table": str(tmp_path / "table"), "rows": ROWS, "vocabulary": VOCABULARY, "cases": cases}
    done = run_command([build_dir / "obj" / "decode" / "beam_tool"], text_in=json.dumps(request))
    monkeypatch.setattr(torch, "topk", stable_topk)
    model = TableModel(table)
    lengths = set()
    for case, ours in zip(cases, json.loads(done.stdout), strict=True):
        for mine, theirs in zip(ours, reference(model, case), strict=True):
            assert [one["tokens"] for one in mine] == [tokens for tokens, _ in theirs], case
            for one, (tokens, score) in zip(mine, theirs, strict=True):
                assert score is None or one["score"] == score, case
                assert one["ended"] == (tokens[-1:] == [END])
                assert one["sum"] == pytest.approx(sum(one["token_scores"]), abs=1e-4)
                lengths.add(len(tokens))
    assert len(lengths) > 10  # the cases are no trivial ones


def test_distinct_scores_need_no_rule_for_ties(build_dir, tmp_path):
    """Compares with transformers as it is, with its own topk."""
    table = random_table(1 << 20)
    (tmp_path / "table").write_bytes(table.numpy().tobytes())
    cases = random_cases(40)
    request = {"table": str(tmp_path / "table"), "rows": ROWS, "vocabulary": VOCABULARY, "cases": cases}
    done = run_command([build_dir / "obj" / "decode" / "beam_tool"], text_in=json.dumps(request))
    model = TableModel(table)
    for case, ours in zip(cases, json.loads(done.stdout), strict=True):
        theirs = reference(model, case)
        assert [[one["tokens"] for one in mine] for mine in ours] == [[t for t, _ in each] for each in theirs], case
