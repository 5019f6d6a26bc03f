"""From the log-probabilities of tokens to the numbers they might have written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from judge_server import logprobs_of
from lmms_eval_captions.judges.logprobs import NumberToken, number_tokens
from lmms_eval_captions.judges.number_distribution import number_distribution
from lmms_eval_captions.judges.request import Reply
from lmms_eval_captions.metrics.gveval_expectation import gveval_expectation

Places = Sequence[tuple[str, Mapping[str, float]]]


def _tokens(places: Places, start: int = 0) -> list[NumberToken]:
    """Tokens from (chosen text, alternative to probability) pairs."""
    tokens = []
    for text, shares in places:
        logs = {name: log(share) for name, share in shares.items()}
        tokens.append(NumberToken(start, text, logs))
        start += len(text)
    return tokens


def _read(
    places: Places, number: str, *, start: int = 0, lowest: int = 0, highest: int = 100
) -> dict[float, float] | None:
    lead = len(places[0][0]) - len(places[0][0].lstrip(" $α"))
    found = number_distribution(
        _tokens(places, start - lead), number, start, lowest=lowest, highest=highest
    )
    return None if found is None else {n: round(p, 6) for n, p in found}


_END = ("α", {"": 1.0})


@pytest.mark.parametrize(
    ("places", "number", "expected"),
    [
        pytest.param([("85", {"85": 0.6, "80": 0.3, "90": 0.1}), _END], "85",
                     {80: 0.3, 85: 0.6, 90: 0.1}, id="one-token"),
        pytest.param([("85", {"85": 0.6, "80": 0.2}), _END], "85",
                     {80: 0.25, 85: 0.75}, id="the-rest-is-unknown-and-scaled-away"),
        pytest.param([("85", {"85": 0.6, "The": 0.2, "": 0.2}), _END], "85",
                     {85: 1.0}, id="words-are-no-numbers"),
        pytest.param([("85", {"85": 0.5, "850": 0.3, "185": 0.2}), _END], "85",
                     {85: 1.0}, id="off-the-scale"),
        pytest.param([("85", {"85": 0.5, "085": 0.5}), _END], "85", {85: 1.0}, id="leading-zero"),
        pytest.param([("85", {"85": 0.5, "9" * 5000: 0.5}), ("α", {"": 0.5, "9" * 5000: 0.5})],
                     "85", {85: 1.0}, id="absurd"),
        pytest.param([("100", {"100": 0.5, "95": 0.5}), _END], "100",
                     {95: 0.5, 100: 0.5}, id="100-as-one-token"),
        pytest.param([("95", {"95": 0.5, "100": 0.5})], "95",
                     {95: 0.5, 100: 0.5}, id="nothing-follows"),
        pytest.param([(" 85", {" 85": 0.5, "80": 0.25, " 90": 0.25}), _END], "85",
                     {80: 0.25, 85: 0.5, 90: 0.25}, id="space-in-the-token"),
        pytest.param([("$85", {"$85": 0.5, "$90": 0.5}), _END], "85",
                     {85: 0.5, 90: 0.5}, id="marker-in-the-token"),
        pytest.param([("85.", {"85.": 0.5, "8": 0.1, "90.": 0.4})], "85",
                     {8: 0.1, 85: 0.5, 90: 0.4}, id="point-in-the-token"),
        pytest.param([("8", {"8": 1.0}), ("5", {"5": 0.6, "0": 0.4}), _END], "85",
                     {80: 0.4, 85: 0.6}, id="two-tokens"),
        pytest.param([("8", {"8": 0.7, "9": 0.3}), ("5", {"5": 0.6, "0": 0.4}), _END], "85",
                     {80: 0.28, 85: 0.42, 90: 0.12, 95: 0.18}, id="product-of-both-places"),
        pytest.param([("8", {"8": 0.9, "1": 0.1}), ("5", {"5": 1.0}), _END], "85",
                     {85: 1.0}, id="1-could-be-15-or-100"),
        pytest.param([("8", {"8": 0.9, "0": 0.1}), ("5", {"5": 1.0}), _END], "85",
                     {0: 0.1, 85: 0.9}, id="nothing-follows-0"),
        pytest.param([("8", {"8": 1.0}), ("5", {"5": 0.6, "": 0.4}), _END], "85",
                     {8: 0.4, 85: 0.6}, id="it-might-have-ended"),
        pytest.param([("8", {"8": 1.0}), ("α", {"": 0.6, "5": 0.4})], "8",
                     {8: 0.6, 85: 0.4}, id="it-might-have-gone-on"),
        pytest.param([("1", {"1": 0.8, "9": 0.2}), ("0", {"0": 1.0}), ("0", {"0": 0.5, "": 0.5}),
                      _END], "100", {10: 0.444444, 90: 0.111111, 100: 0.444444}, id="100-as-three"),
        pytest.param([("10", {"10": 0.8, "95": 0.2}), ("0", {"0": 1.0}), _END], "100",
                     {95: 0.2, 100: 0.8}, id="100-as-two"),
        pytest.param([("10", {"10": 0.8, "95": 0.2}), ("α", {"": 0.5, "0": 0.5})], "10",
                     {10: 0.4, 95: 0.2, 100: 0.4}, id="10-might-have-become-100"),
    ],
)  # fmt: skip
def test_hand_worked_distributions(
    places: Places, number: str, expected: Mapping[float, float]
) -> None:
    """The probabilities of the tokens give those of the complete numbers."""
    assert _read(places, number) == expected


def test_ratings_have_their_own_bounds() -> None:
    """On the scale of 1 to 5, nothing follows a digit, and 0 and 6 are no ratings."""
    places = [("4", {"4": 0.5, "5": 0.2, "1": 0.1, "0": 0.1, "6": 0.1}), _END]
    expected = {1: 0.125, 4: 0.625, 5: 0.25}
    assert _read(places, "4", lowest=1, highest=5) == expected


@pytest.mark.parametrize(
    ("places", "number"),
    [
        pytest.param([("85", {"85": 1.0}), _END], "86", id="another-number"),
        pytest.param([("8", {"8": 1.0}), _END], "85", id="half-of-it"),
        pytest.param([("85/100", {"85/100": 1.0})], "85", id="two-numbers-in-a-token"),
    ],
)
def test_tokens_that_do_not_hold_the_number_give_nothing(places: Places, number: str) -> None:
    """A score is then its plain number."""
    assert _read(places, number) is None


_SHARES = st.dictionaries(
    st.integers(0, 130).map(str), st.floats(0.001, 1.0), min_size=1, max_size=20
)


@given(_SHARES, st.data())
def test_expectations_are_within_bounds(shares: dict[str, float], data: st.DataObject) -> None:
    """Whatever the probabilities are, the score is one of the scale."""
    number = data.draw(st.sampled_from(sorted(shares)))
    assume(int(number) <= 100)
    found = number_distribution(_tokens([(number, shares), _END]), number, 0, lowest=0, highest=100)
    assert found is not None
    assert sum(share for _, share in found) == pytest.approx(1.0)
    assert 0.0 <= gveval_expectation(found) <= 100.0


@given(st.integers(0, 100), st.data())
def test_a_certain_judge_gives_the_plain_number(number: int, data: st.DataObject) -> None:
    """However the tokenizer splits it, a number that is sure is itself."""
    text = str(number)
    cuts = sorted(data.draw(st.sets(st.integers(1, 2))) & set(range(1, len(text))))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    places = [*((piece, {piece: 1.0}) for piece in pieces), _END]
    found = number_distribution(_tokens(places), text, 0, lowest=0, highest=100)
    assert found == ((number, 1.0),)


@given(
    st.dictionaries(st.integers(2, 9), st.floats(0.01, 1.0), min_size=1),
    st.dictionaries(st.integers(0, 9), st.floats(0.01, 1.0), min_size=1),
    st.data(),
)
def test_the_tokenizer_does_not_matter(
    tens: dict[int, float], ones: dict[int, float], data: st.DataObject
) -> None:
    """Independent digits give the same expectation as one token or as two."""
    first = data.draw(st.sampled_from(sorted(tens)))
    second = data.draw(st.sampled_from(sorted(ones)))
    tens = {digit: share / sum(tens.values()) for digit, share in tens.items()}
    ones = {digit: share / sum(ones.values()) for digit, share in ones.items()}
    number = f"{first}{second}"
    whole = {f"{a}{b}": p * q for a, p in tens.items() for b, q in ones.items()}
    split = [
        (str(first), {str(a): p for a, p in tens.items()}),
        (str(second), {str(b): q for b, q in ones.items()}),
    ]
    together, apart = (
        number_distribution(_tokens([*places, _END]), number, 0, lowest=0, highest=100)
        for places in ([(number, whole)], split)
    )
    assert together is not None
    assert apart is not None
    assert gveval_expectation(apart) == pytest.approx(gveval_expectation(together))


_TEXT = "Frame 1 of 3. The Accuracy score is α85α, no 86."


def _entry(text: str, top: Mapping[str, float], *, raw: bool = True) -> dict[str, Any]:
    def one(name: str, value: float) -> dict[str, Any]:
        return {"token": name, "logprob": value, "bytes": list(name.encode()) if raw else None}

    return {**one(text, top.get(text, -0.5)), "top_logprobs": [one(k, v) for k, v in top.items()]}


@pytest.mark.parametrize("tokenizer", ["whole", "digits"])
@pytest.mark.parametrize("raw", [True, False], ids=["bytes", "no-bytes"])
def test_tokens_are_found_in_the_text(tokenizer: str, raw: bool) -> None:
    """Every kept token stands where it says, and only numbers and what follows are kept."""
    content = logprobs_of(_TEXT, tokenizer)
    if not raw:
        content = [{**one, "bytes": None} for one in content]
    tokens = number_tokens({"content": content}, _TEXT)
    assert tokens is not None
    assert all(_TEXT[one.start : one.start + len(one.text)] == one.text for one in tokens)
    assert [one.text for one in tokens if one.text.isdecimal()] == (
        ["1", "3", "85", "86"] if tokenizer == "whole" else ["1", "3", "8", "5", "8", "6"]
    )


def test_reasoning_and_special_tokens_that_are_not_in_the_text_do_not_matter() -> None:
    """Servers that hand reasoning over elsewhere still list its tokens."""
    content = [
        *logprobs_of("<think>40 or 50?</think>", "whole"),
        *logprobs_of(_TEXT, "whole"),
        {"token": "<|end|>", "logprob": 0.0, "bytes": None, "top_logprobs": []},
    ]
    tokens = number_tokens({"content": content}, _TEXT)
    assert tokens == number_tokens({"content": logprobs_of(_TEXT, "whole")}, _TEXT)


def test_markers_split_in_the_middle_of_a_letter_do_not_matter() -> None:
    """A Greek letter may be two tokens of one byte each, shown escaped."""
    half = {"logprob": 0.0, "top_logprobs": [{"token": "x", "logprob": -1.0, "bytes": [120]}]}
    content = [
        {"token": "\\xce", "bytes": [0xCE], **half},
        {"token": "\\xb1", "bytes": [0xB1], **half},
        _entry("85", {"85": -0.1, "80": -2.4}),
    ]
    tokens = number_tokens({"content": content}, "α85")
    assert tokens == (NumberToken(1, "85", {"85": -0.1, "80": -2.4}),)


def test_what_holds_no_digit_is_counted_together() -> None:
    """Alternatives without a digit are one, the sum of their probabilities."""
    content = [_entry("8", {"8": -0.1}), _entry("α", {"α": log(0.5), ".": log(0.2), "5": log(0.3)})]
    tokens = number_tokens({"content": content}, "8α")
    assert tokens is not None
    assert {name: round(exp(value), 6) for name, value in tokens[1].alternatives.items()} == {
        "": 0.7,
        "5": 0.3,
    }


@pytest.mark.parametrize(
    "logprobs",
    [
        pytest.param({"content": []}, id="empty"),
        pytest.param({"content": None}, id="null"),
        pytest.param({}, id="nothing"),
        pytest.param([], id="list"),
        pytest.param({"content": [{"token": "85", "logprob": 0.0, "top_logprobs": []}]},
                     id="no-alternatives"),
        pytest.param({"content": [{"token": "86", "logprob": 0.0, "top_logprobs": [
            {"token": "86", "logprob": 0.0}]}]}, id="another-text"),
        pytest.param({"content": ["85"]}, id="strings"),
        pytest.param({"tokens": ["85"], "token_logprobs": [0.0]}, id="completions-form"),
    ],
)  # fmt: skip
def test_logprobs_that_cannot_be_used_are_none(logprobs: object) -> None:
    """The reply counts as if it had come without."""
    assert number_tokens(logprobs, "85") is None


def test_infinite_and_positive_logprobs_are_harmless() -> None:
    """Servers round, and write -9999 or minus infinity for what cannot be."""
    top = {"85": 1e-9, "80": float("-inf"), "90": -9999.0}
    tokens = number_tokens({"content": [_entry("85", top)]}, "85")
    assert tokens == (NumberToken(0, "85", {"85": 0.0}),)


def test_replies_with_logprobs_survive_the_store() -> None:
    """What is stored is what is read, and lines from before logprobs are read, too."""
    tokens = number_tokens({"content": logprobs_of(_TEXT, "digits")}, _TEXT)
    reply = Reply(_TEXT, "stop", 1, 2, tokens)
    assert Reply.from_json(reply.to_json()) == reply
    old = b'{"text":"x","finish_reason":"stop","input_tokens":1,"output_tokens":2}'
    assert Reply.from_json(old) == Reply("x", "stop", 1, 2)
    assert Reply.from_json(old).to_json() == old
