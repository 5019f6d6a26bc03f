"""The whole numbers that a judge might have written in a place, and how likely each is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import exp
from typing import Final

from lmms_eval_captions.judges.endpoint.request import NumberToken
from lmms_eval_captions.judges.verdict import ScoreDistribution

_PART: Final = re.compile(r"([^0-9]*)([0-9]+)([^0-9]*)")
_SEVERAL_DIGITS: Final = re.compile("[0-9]{2}")
_ENDED: Final = {"": 1.0}


def number_distribution(
    tokens: Sequence[NumberToken], number: str, start: int, *, lowest: int, highest: int
) -> ScoreDistribution | None:
    """Distribution over the complete numbers that could stand where a reply has its number.

    A number may be one token or several ("85", "8" + "5", "$8" + "5."); the token after it says how
    likely it is that it goes on. At each token, what leads to no number of the scale is left out,
    and what is listed of the rest is scaled to 1: listed alternatives stand for the unlisted ones.
    Then the probabilities of consecutive tokens are multiplied.

    For a token that the judge did not choose, the probabilities of what would have followed are
    unknown. A number that nothing can follow within the scale is complete, and so is any where the
    reply has a token of several digits, or lists one: that tokenizer does not split such numbers.
    Otherwise what followed is taken to be as likely as after the chosen token, except after the
    beginning of ``highest``: after "1" in place of "8", "15" and "100" are equally possible. There
    only the share counts that ended, as the chosen number did.

    Args:
        tokens: The reply's number tokens, all of them.
        number: The digits that the judge wrote.
        start: Their position in the reply's text.
        lowest: Lowest number of the scale, >= 0.
        highest: Highest number of the scale.

    Returns:
        From the lowest number to the highest, ``None`` where the tokens do not hold the number.

    Source:
        G-VEval, section 3.4, equations 1-3; ztangaj/gveval@fee3fd7:evaluation/gveval/scorer.py.
        Parity: of a number in one token this is what that code does, the listed
        numbers of the scale scaled to 1. Equation 1 needs probabilities that sum to 1, and of the
        ways to fill in what is not listed, scaling has no bias. GPT-4o writes every number up to
        100 as one token. Deviation: that code knows no numbers of several tokens, no number whose
        token holds a space or a marker as well, and five alternatives in place of ten.

    >>> tokens = [
    ...     NumberToken(0, "8", {"8": -0.223144, "9": -1.609438}),
    ...     NumberToken(1, "5", {"5": -0.693147, "0": -0.693147}),
    ... ]
    >>> [(n, round(p, 3)) for n, p in number_distribution(tokens, "85", 0, lowest=0, highest=100)]
    [(80, 0.4), (85, 0.4), (90, 0.1), (95, 0.1)]
    """
    path = _path(tokens, number, start)
    if path is None:
        return None
    in_one = len(path) == 1 or path[1].start >= start + len(number)
    whole = in_one and any(map(_has_several_digits, tokens))
    rest: Mapping[str, float] = _ENDED
    for index in reversed(range(len(path))):
        prefix = number[: max(0, path[index].start - start)]
        shares = _step(path[index], rest, prefix, first=index == 0, whole=whole, highest=highest)
        rest = _on_scale(shares, prefix, lowest=lowest, highest=highest)
    if not rest.get(number):
        return None
    return tuple(sorted((int(text), share) for text, share in rest.items()))


def _path(tokens: Sequence[NumberToken], number: str, start: int) -> list[NumberToken] | None:
    """The tokens that write the number, and the one after it where that could go on with it."""
    end = start + len(number)
    path = [
        token for token in tokens if token.start < end and token.start + len(token.text) > start
    ]
    written = "".join(
        token.text[max(0, start - token.start) : max(0, end - token.start)] for token in path
    )
    parts = [_PART.fullmatch(token.text) for token in path]
    if written != number or not all(parts):
        return None
    if path[-1].start + len(path[-1].text) == end:
        path += [token for token in tokens if token.start == end][:1]
    return path


def _has_several_digits(token: NumberToken) -> bool:
    return any(_SEVERAL_DIGITS.search(name) for name in (token.text, *token.alternatives))


def _step(
    token: NumberToken,
    rest: Mapping[str, float],
    prefix: str,
    *,
    first: bool,
    whole: bool,
    highest: int,
) -> dict[str, float]:
    """What the number may be from one token on, given the digits chosen before it."""
    shares: dict[str, float] = {}
    for name, logprob in token.alternatives.items():
        part = _PART.fullmatch(name)
        if part is None or (part[1] and not first):
            if not first:  # The number ended before this token.
                shares[""] = shares.get("", 0.0) + exp(logprob)
            continue
        digits = part[2]
        if part[3]:
            follows: Mapping[str, float] = _ENDED
        elif name == token.text:
            follows = rest
        elif whole:
            follows = _ENDED
        else:
            follows = _unseen(prefix + digits, rest, highest=highest)
        for suffix, share in follows.items():
            text = digits + suffix
            shares[text] = shares.get(text, 0.0) + exp(logprob) * share
    return shares


def _unseen(prefix: str, rest: Mapping[str, float], *, highest: int) -> Mapping[str, float]:
    """What may follow digits that the judge did not choose."""
    if len(prefix) >= len(str(highest)) or prefix.startswith("0"):
        return _ENDED
    if str(highest).startswith(prefix):
        return {"": rest.get("", 0.0)}
    return _on_scale(rest, prefix, lowest=0, highest=highest) or _ENDED


def _on_scale(
    shares: Mapping[str, float], prefix: str, *, lowest: int, highest: int
) -> dict[str, float]:
    """What makes a number of the scale after the digits before it, scaled to 1."""
    valid = {
        suffix: share
        for suffix, share in shares.items()
        if share > 0.0 and _is_on_scale(prefix + suffix, lowest=lowest, highest=highest)
    }
    total = sum(valid.values())
    return {suffix: share / total for suffix, share in valid.items()}


def _is_on_scale(text: str, *, lowest: int, highest: int) -> bool:
    if not 0 < len(text) <= len(str(highest)) or (text.startswith("0") and text != "0"):
        return False
    return lowest <= int(text) <= highest
