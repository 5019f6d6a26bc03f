"""What replies to probes show, each kind by made-up replies."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import pytest

from lmms_eval_captions.judges.endpoint.http.completion_head import CompletionHead
from lmms_eval_captions.judges.endpoint.request import NumberToken, Reply
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.head_findings import (
    model_finding,
    with_heads,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.probe_facts import (
    ProbeFacts,
    compared_facts,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.probe_findings import ProbeReader
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.probes import (
    Probe,
    Probed,
    ProbeMaker,
)

PROBES: Final = ProbeMaker("judge", 60.0, random.Random(0)).all()
GOOD: Final = "ok"
Answer = Callable[[Probe], Reply | None]


def _honest(probe: Probe) -> Reply:
    """What a good endpoint says."""
    texts: Mapping[str, str] = {
        "codes": ", ".join(probe.codes),
        "echo": "".join(probe.codes),
        "greedy": "A lighthouse stands here and looks at all of the sea.",
        "sampled": f"Number {probe.name} of many sentences about an old lighthouse by the sea.",
        "sampled again": "Number 0 of many sentences about an old lighthouse by the sea.",
        "counting": " ".join(map(str, range(1, 81))),
        "tokens": "OK",
        "logprobs": "75",
    }
    tokens = [NumberToken(0, "75", {"75": -0.1, "74": -2.5})]
    return Reply(
        texts[probe.kind],
        "stop",
        input_tokens=probe.n_chars // 4 + 9,
        output_tokens=20,
        logprobs=tokens if probe.kind == "logprobs" else None,
    )


def _states(answer: Answer) -> dict[str, str]:
    reader = ProbeReader([Probed(probe, answer(probe)) for probe in PROBES])
    return {finding.name: finding.state for finding in reader.findings()}


def _but(kind: str, change: Callable[[Probe, Reply], Reply | None]) -> Answer:
    """The honest replies, but for one kind."""
    return lambda probe: change(probe, _honest(probe)) if probe.kind == kind else _honest(probe)


def _text(text: str) -> Callable[[Probe, Reply], Reply]:
    return lambda _, reply: replace(reply, text=text)


def test_a_good_endpoint_has_no_finding() -> None:
    """All of them are fine."""
    assert set(_states(_honest).values()) == {GOOD}


@pytest.mark.parametrize(
    ("answer", "name", "state"),
    [
        pytest.param(
            _but("codes", lambda p, r: replace(r, text=p.codes[0]) if p.name == "long" else r),
            "truncation", "differs", id="end of the long one unseen",
        ),
        pytest.param(
            _but("codes", lambda p, r: replace(r, text="") if p.name != "short" else r),
            "truncation", "differs", id="nothing of the longer ones seen",
        ),
        pytest.param(
            _but("codes", lambda _, r: replace(r, text="none")),
            "truncation", "note", id="a weak judge finds no code anywhere",
        ),
        pytest.param(
            _but("codes", lambda _, r: replace(r, input_tokens=min(r.input_tokens, 512))),
            "truncation", "differs", id="tokens stop at 512",
        ),
        pytest.param(
            _but("codes", lambda _, r: replace(r, input_tokens=min(r.input_tokens, 90))),
            "truncation", "differs", id="tokens stop early in all of them",
        ),
        pytest.param(
            _but("codes", lambda _, r: replace(r, input_tokens=r.input_tokens + 2000)),
            "truncation", "ok", id="a long system prompt is counted, too",
        ),
        pytest.param(
            _but("codes", lambda _, r: replace(r, input_tokens=0, is_estimated=True)),
            "truncation", "ok", id="tokens are not counted",
        ),
        pytest.param(
            _but("codes", lambda p, r: None if p.name == "long" else r),
            "truncation", "unknown", id="no reply to the long one",
        ),
        pytest.param(
            _but("counting", _text("1 2 3 4 5")), "output cut", "differs", id="a cut reply",
        ),
        pytest.param(
            _but("counting", lambda _, r: replace(r, text=f"<think>to 80</think>{r.text}")),
            "output cut", "ok", id="thoughts before a whole reply",
        ),
        pytest.param(
            _but("greedy", lambda p, r: replace(r, text=f"Variant {p.name} of it {r.text}")),
            "temperature", "differs", id="sampled at 0",
        ),
        pytest.param(
            _but("greedy", lambda p, r: replace(r, text=f"{r.text} And {p.name}.")),
            "temperature", "ok", id="a late difference, as honest servers have",
        ),
        pytest.param(
            _but("greedy", lambda p, r: replace(r, text=f"{p.name == '1'} {r.text}")),
            "temperature", "ok", id="one slip at temperature 0",
        ),
        pytest.param(
            _but("greedy", lambda _, r: replace(r, refused=("temperature",))),
            "temperature", "note", id="temperature refused",
        ),
        pytest.param(
            _but("sampled", _text("One and the same sentence.")),
            "cached replies", "differs", id="one text for all seeds",
        ),
        pytest.param(
            _but("echo", _text("12345")), "cached replies", "differs", id="an earlier number",
        ),
        pytest.param(
            _but("echo", _text("I do not know.")),
            "cached replies", "ok", id="a weak judge is no cache",
        ),
        pytest.param(
            _but("sampled again", _text("Another sentence altogether.")),
            "seed", "note", id="seed ignored",
        ),
        pytest.param(
            _but("tokens", lambda _, r: replace(r, refused=("seed",))), "seed", "note",
            id="seed refused",
        ),
        pytest.param(
            _but("logprobs", lambda _, r: replace(r, logprobs=None)), "logprobs", "note",
            id="no log-probabilities",
        ),
        pytest.param(
            _but(
                "logprobs",
                lambda _, r: replace(r, logprobs=[NumberToken(0, "75", {"75": 0.0, "74": 0.0})]),
            ),
            "logprobs", "differs", id="probabilities that sum to two",
        ),
    ],
)  # fmt: skip
def test_each_fault_has_its_finding(answer: Answer, name: str, state: str) -> None:
    """And no other one fails."""
    states = _states(answer)
    assert states[name] == state
    assert {other for other, each in states.items() if each == "differs"} <= {name}


def test_an_echo_of_another_request_is_a_cache() -> None:
    """Each description gets the number of the next one."""
    codes = [probe.codes[0] for probe in PROBES if probe.kind == "echo"]
    shifted = dict(zip(codes, [*codes[1:], codes[0]], strict=True))
    answer = _but("echo", lambda p, r: replace(r, text=shifted[p.codes[0]]))
    assert _states(answer)["cached replies"] == "differs"


def test_silence_says_nothing() -> None:
    """Where no probe is answered, nothing fails."""
    states = _states(lambda _: None)
    assert "differs" not in states.values()
    assert states["cached replies"] == states["truncation"] == "unknown"


@pytest.mark.parametrize("text", ["", "<think>Let me see. ", "A sentence that is not"])
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_thoughts_that_use_up_all_tokens_say_nothing(text: str, share: float) -> None:
    """Nothing fails, whether the replies are empty, hold thoughts alone or the first words."""

    def thinking(probe: Probe) -> Reply:
        allowed = int(str(probe.request.params["max_tokens"]))
        return replace(
            _honest(probe), text=text, finish_reason="length", output_tokens=allowed, logprobs=None
        )

    def some(probe: Probe) -> Reply:
        return thinking(probe) if share or probe.name in ("0", "1", "80") else _honest(probe)

    states = _states(some)
    assert "differs" not in states.values(), states
    assert states["output cut"] == "unknown"
    if share:
        assert set(states.values()) == {"unknown"}


def test_empty_replies_are_not_one_text() -> None:
    """Nor are they a temperature of 0, or a seed that is honoured."""
    states = _states(lambda probe: replace(_honest(probe), text=""))
    assert states["cached replies"] == states["temperature"] == states["seed"] == "unknown"


def test_a_cut_below_what_was_allowed_is_no_thought() -> None:
    """The endpoint ends the reply at a limit of its own."""
    answer = _but(
        "counting", lambda _, r: replace(r, text="", finish_reason="length", output_tokens=128)
    )
    assert _states(answer)["output cut"] == "differs"


def test_probes_may_take_as_many_tokens_as_the_benchmarks() -> None:
    """A judge that thinks first needs them; none may take fewer than before."""
    roomy = ProbeMaker("judge", 60.0, random.Random(0), least_tokens=300)
    limits = [int(str(probe.request.params["max_tokens"])) for probe in roomy.all()]
    own = [int(str(probe.request.params["max_tokens"])) for probe in PROBES]
    assert limits == [max(300, each) for each in own]


FACTS: Final = ProbeFacts({"prose": 90, "numbers": 200, "letters": 150}, "honoured", True)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        pytest.param(FACTS, {"tokenizer": "ok"}, id="the same"),
        pytest.param(
            replace(FACTS, tokens={"prose": 91, "numbers": 200, "letters": 150}),
            {"tokenizer": "differs"}, id="one text has another number",
        ),
        pytest.param(
            replace(FACTS, tokens={"prose": 100, "numbers": 210, "letters": 160}),
            {"tokenizer": "note"}, id="ten more each are a template",
        ),
        pytest.param(replace(FACTS, tokens={}), {"tokenizer": "unknown"}, id="no counts"),
        pytest.param(
            replace(FACTS, seed="ignored"), {"tokenizer": "ok", "seed": "note"}, id="seed",
        ),
        pytest.param(
            replace(FACTS, has_logprobs=False), {"tokenizer": "ok", "logprobs": "differs"},
            id="log-probabilities are gone",
        ),
    ],
)  # fmt: skip
def test_what_differs_from_a_record(now: ProbeFacts, expected: dict[str, str]) -> None:
    """Tokenizer, seed and log-probabilities."""
    assert {each.name: each.state for each in compared_facts(now, FACTS)} == expected


def test_facts_hold_what_the_endpoint_counts_alone() -> None:
    """Estimates of ours are no counts."""
    estimated = _but("tokens", lambda _, r: replace(r, is_estimated=True))
    reader = ProbeReader([Probed(probe, estimated(probe)) for probe in PROBES])
    assert reader.facts() == ProbeFacts({}, "honoured", True)


def test_one_id_for_several_answers_is_a_note_by_itself() -> None:
    """And evidence where texts show a cache."""
    good, bad = (
        ProbeReader([Probed(probe, answer(probe)) for probe in PROBES]).cached()
        for answer in (_honest, _but("sampled", _text("One sentence.")))
    )
    twice = [CompletionHead("ready", "judge", "cmpl-1", 7)] * 2
    assert (with_heads(good, twice).state, with_heads(bad, twice).state) == ("note", "differs")
    assert "one id" in with_heads(bad, twice).evidence
    other = [twice[0], replace(twice[0], created=8)]
    assert with_heads(good, other) == good


def test_replies_that_name_no_model_are_a_note() -> None:
    """They may be of any."""
    head = CompletionHead("ready", None, None, None)
    assert model_finding([head], "judge", is_same=True).state == "note"


def test_probes_are_other_ones_each_time() -> None:
    """No two makers draw the same words, and no two requests of one have the same key."""
    first, second = (ProbeMaker("judge", 60.0, random.Random(seed)).all() for seed in (1, 2))
    keys = [probe.request.key(probe.request.body(0)) for probe in (*first, *second)]
    assert len(set(keys)) == len(keys)
    fixed = {"tokens", "counting", "logprobs"}
    for one, other in zip(first, second, strict=True):
        assert (one.request.messages == other.request.messages) == (one.kind in fixed)
