"""The whole numbers that a judge might have written in a place, and how likely each is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import exp
from typing import Final

from lmms_eval_captions.judges.logprobs import NumberToken
from lmms_eval_captions.judges.verdict import ScoreDistribution

_PART: Final = re.compile(r"([^0-9]*)([0-9]+)([^0-9]*)")
_ENDED: Final = {"": 1.0}


def number_distribution(
    tokens: Sequence[NumberToken], number: str, start: int, *, lowest: int, highest: int
) -> ScoreDistribution | None:
    """Distribution over the complete numbers that could stand where a reply has its number.

    A number may be one token or several ("85", "8" + "5", "$8" + "5."); the token after it says how
    likely it is that it goes on. Probabilities of consecutive tokens are multiplied. For a token
    that the judge did not choose, the probabilities of what would have followed are unknown: a
    number that nothing can follow within the range is complete; what else followed is taken to be
    as likely as after the chosen token. Left out is the beginning of ``highest`` where the
    tokenizer splits numbers: after "1" in place of "8", "15" and "100" are equally possible.
    Numbers outside the range are left out, and the rest is scaled to 1.

    Args:
        tokens: The reply's number tokens.
        number: The digits that the judge wrote.
        start: Their position in the reply's text.
        lowest: Lowest number of the scale, >= 0.
        highest: Highest number of the scale.

    Returns:
        From the lowest number to the highest, ``None`` where the tokens do not hold the number.

    Source:
        G-VEval, section 3.4, equations 1-3. GPT-4o writes every number up to
        100 as one token, where this is the distribution of that token; other tokenizers are ours.

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
    splits = len(path) > 1 and path[1].start < start + len(number)
    splits = splits or all(len(re.sub("[^0-9]", "", name)) < 2 for name in path[0].alternatives)
    rest: dict[str, float] = _ENDED
    for index in reversed(range(len(path))):
        prefix = number[: max(0, path[index].start - start)]
        rest = _step(path[index], rest, prefix, first=index == 0, splits=splits, highest=highest)
    valid = {
        int(text): share
        for text, share in rest.items()
        if len(text) <= len(str(highest))
        and (text == "0" or not text.startswith("0"))
        and lowest <= int(text) <= highest
    }
    total = sum(valid.values())
    if not valid.get(int(number)):
        return None
    return tuple((value, valid[value] / total) for value in sorted(valid))


def _path(tokens: Sequence[NumberToken], number: str, start: int) -> list[NumberToken] | None:
    """The tokens that write the number, and the one after it where that could go on with it."""
    end = start + len(number)
    path = [one for one in tokens if one.start < end and one.start + len(one.text) > start]
    written = "".join(one.text[max(0, start - one.start) : max(0, end - one.start)] for one in path)
    parts = [_PART.fullmatch(one.text) for one in path]
    if written != number or not all(parts):
        return None
    if path[-1].start + len(path[-1].text) == end:
        path += [one for one in tokens if one.start == end][:1]
    return path


def _step(
    token: NumberToken,
    rest: Mapping[str, float],
    prefix: str,
    *,
    first: bool,
    splits: bool,
    highest: int,
) -> dict[str, float]:
    """What the number may be from one token on, given the digits chosen before it."""
    found: dict[str, float] = {}
    for name, logprob in token.alternatives.items():
        part = _PART.fullmatch(name)
        if part is None or (part[1] and not first):
            if not first:  # The number ended before this token.
                found[""] = found.get("", 0.0) + exp(logprob)
            continue
        digits = part[2]
        if part[3]:
            follows: Mapping[str, float] = _ENDED
        elif name == token.text:
            follows = rest
        else:
            follows = _unseen(prefix + digits, rest, splits=splits, highest=highest)
        for suffix, share in follows.items():
            text = digits + suffix
            found[text] = found.get(text, 0.0) + exp(logprob) * share
    return found


def _unseen(
    prefix: str, rest: Mapping[str, float], *, splits: bool, highest: int
) -> Mapping[str, float]:
    """What may follow digits that the judge did not choose."""
    if prefix == "0" or len(prefix) >= len(str(highest)) or int(prefix) * 10 > highest:
        return _ENDED
    if splits and prefix != str(highest) and str(highest).startswith(prefix):
        return {}
    return rest
