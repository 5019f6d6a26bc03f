"""From the log-probabilities of tokens to the numbers they might have written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from judge_server import logprobs_of
from lmms_eval_captions.judges.endpoint.replies import number_tokens
from lmms_eval_captions.judges.endpoint.request import NumberToken, Reply
from lmms_eval_captions.judges.protocols.gveval import number_distribution
from lmms_eval_captions.metrics.gveval import gveval_expectation

Slots = Sequence[tuple[str, Mapping[str, float]]]


def _tokens(places: Slots, start: int = 0) -> list[NumberToken]:
    """Tokens from (chosen text, alternative to probability) pairs."""
    tokens = []
    for text, shares in places:
        logs = {name: log(share) for name, share in shares.items()}
        tokens.append(NumberToken(start, text, logs))
        start += len(text)
    return tokens


def _read(places: Slots, number: str, *, start: int = 0) -> dict[float, float] | None:
    lead = len(places[0][0]) - len(places[0][0].lstrip(" $α"))
    found = number_distribution(_tokens(places, start - lead), number, start)
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
                      _END], "100", {10: 0.4, 90: 0.2, 100: 0.4}, id="100-as-three"),
        pytest.param([("10", {"10": 0.8, "95": 0.2}), ("0", {"0": 1.0}), _END], "100",
                     {95: 0.2, 100: 0.8}, id="100-as-two"),
        pytest.param([("10", {"10": 0.8, "95": 0.2}), ("α", {"": 0.5, "0": 0.5})], "10",
                     {10: 0.4, 95: 0.2, 100: 0.4}, id="10-might-have-become-100"),
        pytest.param([("3", {"3": 0.4, "1": 0.3, "5": 0.3}), _END], "3",
                     {1: 0.3, 3: 0.4, 5: 0.3}, id="1-ends-as-the-chosen-3-did"),
        pytest.param([("3", {"3": 0.4, "1": 0.3, "5": 0.3})], "3",
                     {1: 0.3, 3: 0.4, 5: 0.3}, id="1-where-the-reply-ends-after-3"),
        pytest.param([("3", {"3": 0.5, "1": 0.5}), ("α", {"": 0.8, "5": 0.2})], "3",
                     {1: 0.444444, 3: 0.444444, 35: 0.111111}, id="1-that-may-go-on-counts-less"),
        pytest.param([("3", {"3": 0.4, "1": 0.4, "12": 0.2}), ("α", {"": 0.75, "5": 0.25})], "3",
                     {1: 0.4, 3: 0.3, 12: 0.2, 35: 0.1}, id="12-in-one-token-so-1-is-complete"),
        pytest.param([("80", {"80": 0.5, "60": 0.5}), ("α", {"": 0.7})], "80",
                     {60: 0.5, 80: 0.5}, id="0.7-listed-after-it"),
        pytest.param([("80", {"80": 0.5, "60": 0.5}), ("α", {"": 0.7, "0": 0.3})], "80",
                     {60: 0.5, 80: 0.5}, id="800-is-no-number-and-costs-80-nothing"),
        pytest.param([("8", {"8": 0.4, "0": 0.1}), ("5", {"5": 0.3, "0": 0.2}), ("α", {"": 0.1})],
                     "85", {0: 0.2, 80: 0.32, 85: 0.48}, id="every-place-is-scaled-by-itself"),
    ],
)  # fmt: skip
def test_hand_worked_distributions(
    places: Slots, number: str, expected: Mapping[float, float]
) -> None:
    """The probabilities of the tokens give those of the complete numbers."""
    assert _read(places, number) == expected


@pytest.mark.parametrize(
    ("places", "number"),
    [
        pytest.param([("85", {"85": 1.0}), _END], "86", id="another-number"),
        pytest.param([("8", {"8": 1.0}), _END], "85", id="half-of-it"),
        pytest.param([("85/100", {"85/100": 1.0})], "85", id="two-numbers-in-a-token"),
    ],
)
def test_tokens_that_do_not_hold_the_number_give_nothing(places: Slots, number: str) -> None:
    """A score is then its plain number."""
    assert _read(places, number) is None


_SHARES = st.dictionaries(
    st.integers(0, 130).map(str), st.floats(0.001, 1.0), min_size=1, max_size=20
)


_DIGITS = st.dictionaries(
    st.sampled_from([*"0123456789", "10", "35", "100", "", " 7", "$4", "8."]),
    st.floats(0.001, 1.0),
    min_size=1,
    max_size=10,
)


@given(st.sampled_from(["3", "10", "47", "100"]), st.lists(_DIGITS, min_size=4, max_size=4))
def test_split_numbers_are_within_bounds_and_sum_to_1(
    number: str, listed: list[dict[str, float]]
) -> None:
    """However the places of a number are listed, nothing leaves the scale."""
    places = [(text, {**shares, text: 0.5}) for text, shares in zip(number, listed, strict=False)]
    tokens = _tokens([*places, ("α", {**listed[-1], "": 0.5})])
    found = number_distribution(tokens, number, 0)
    assert found is not None
    assert sum(share for _, share in found) == pytest.approx(1.0)
    assert all(0 <= value <= 100 and share > 0 for value, share in found)
    assert 0 <= gveval_expectation(found) <= 100


@given(_SHARES, st.dictionaries(st.sampled_from(["", "0", "5", "00"]), st.floats(0.01, 1.0)),
       st.floats(0.01, 1.0), st.data())  # fmt: skip
def test_a_number_in_one_token_is_scored_as_the_released_code_does(
    shares: dict[str, float], after: dict[str, float], end: float, data: st.DataObject
) -> None:
    """The listed numbers of the scale, scaled to 1, whatever is listed after the number."""
    number = data.draw(st.sampled_from(sorted(shares)))
    assume(int(number) <= 100)
    if int(number) <= 10:  # It could go on, which the released code does not ask.
        after = {}
    tokens = _tokens([(number, shares), ("α", {**after, "": end})])
    found = number_distribution(tokens, number, 0)
    assert found is not None
    scale = {str(value) for value in range(101)}
    on_scale = {text: share for text, share in shares.items() if text in scale}
    total = sum(on_scale.values())
    expected = sum(int(text) * share / total for text, share in on_scale.items())
    assert gveval_expectation(found) == pytest.approx(expected)


@given(st.integers(0, 100), st.data())
def test_a_certain_judge_gives_the_plain_number(number: int, data: st.DataObject) -> None:
    """However the tokenizer splits it, a number that is sure is itself."""
    text = str(number)
    cuts = sorted(data.draw(st.sets(st.integers(1, 2))) & set(range(1, len(text))))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    places = [*((piece, {piece: 1.0}) for piece in pieces), _END]
    found = number_distribution(_tokens(places), text, 0)
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
        number_distribution(_tokens([*places, _END]), number, 0)
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


@pytest.mark.parametrize(
    ("shares", "after", "expected"),
    [
        pytest.param({"3": 0.4, "1": 0.3, "5": 0.3}, {"α": 1.0}, 3.0, id="digits-alone"),
        pytest.param({"80": 0.5, "60": 0.5}, {"α": 0.4, "α.": 0.2, " α": 0.1}, 70.0,
                     id="many-ways-to-end"),
    ],
)  # fmt: skip
def test_scores_from_the_wire_are_the_released_codes(
    shares: dict[str, float], after: dict[str, float], expected: float
) -> None:
    number = next(iter(shares))
    content = [
        _entry(text, {name: log(share) for name, share in listed.items()})
        for text, listed in [("α", {"α": 1.0}), (number, shares), ("α", after)]
    ]
    text = f"α{number}α"
    tokens = number_tokens({"content": content}, text)
    assert tokens is not None
    found = number_distribution(tokens, number, 1)
    assert found is not None
    assert gveval_expectation(found) == pytest.approx(expected)


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


def test_replies_with_logprobs_survive_the_store() -> None:
    tokens = number_tokens({"content": logprobs_of(_TEXT, "digits")}, _TEXT)
    reply = Reply(_TEXT, "stop", 1, 2, tokens)
    assert Reply.from_json(reply.to_json()) == reply
    old = b'{"text":"x","finish_reason":"stop","input_tokens":1,"output_tokens":2}'
    assert Reply.from_json(old) == Reply("x", "stop", 1, 2)
    assert Reply.from_json(old).to_json() == old
