"""Log-probabilities of a reply, cut down to the tokens that write its numbers.

A reply of 500 tokens with 20 alternatives each is 300 KB; what a score needs of it is a few.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import exp, log
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.request import NumberToken

_DIGIT: Final = re.compile("[0-9]")


def number_tokens(logprobs: object, text: str) -> tuple[NumberToken, ...] | None:
    """The tokens of a chat completion that write the numbers of its text.

    The tokens' digits are laid over the text's, from the end: digits are single bytes whatever the
    tokenizer, while other characters may be split, escaped, or left out of the text (special
    tokens, reasoning).

    Args:
        logprobs: ``choices[0].logprobs`` as it came.
        text: ``choices[0].message.content``.

    Returns:
        In the order of the text, or ``None`` where tokens and text do not fit, or where no
        alternatives came.

    >>> top = [{"token": "85", "logprob": -0.1}, {"token": "90", "logprob": -2.4}]
    >>> content = [{"token": "85", "logprob": -0.1, "top_logprobs": top}]
    >>> number_tokens({"content": content}, "85")
    (NumberToken(start=0, text='85', alternatives={'85': -0.1, '90': -2.4}),)
    """
    try:
        entries = logprobs["content"]  # type: ignore[index]  # checked by what follows
        if not entries or not any(entry["top_logprobs"] for entry in entries):
            return None
        tokens = [_text(entry) for entry in entries]
        starts = _starts(tokens, text)
        if starts is None:
            return None
        return tuple(
            NumberToken(start, tokens[index], _alternatives(entries[index]))
            for index, start in starts
        )
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return None  # They are an extra: the reply itself is as good without.


def _starts(tokens: Sequence[str], text: str) -> list[tuple[int, int]] | None:
    """Index and start in the text of every token to keep, ``None`` where the digits differ."""
    places = [match.start() for match in _DIGIT.finditer(text)]
    written = [
        (index, match.start(), match[0])
        for index, token in enumerate(tokens)
        for match in _DIGIT.finditer(token)
    ]
    written = written[len(written) - len(places) :] if places else []
    if [text[place] for place in places] != [digit for *_, digit in written]:
        return None
    starts: dict[int, int] = {}
    for place, (index, within, _) in zip(places, written, strict=True):
        starts.setdefault(index, place - within)
    for index, start in list(starts.items()):
        if index + 1 < len(tokens):
            starts.setdefault(index + 1, start + len(tokens[index]))
    return sorted(starts.items())


def _text(entry: Mapping[str, Any]) -> str:
    """A token as text, from its bytes where they came: ``token`` may be escaped."""
    raw = entry.get("bytes")
    if isinstance(raw, list):
        return bytes(raw).decode("utf-8", "replace")
    return str(entry["token"])


def _alternatives(entry: Mapping[str, Any]) -> dict[str, float]:
    listed = entry["top_logprobs"]
    logs = {_text(each): float(each["logprob"]) for each in listed}
    logs.setdefault(_text(entry), float(entry["logprob"]))
    shares: dict[str, float] = {}
    for token, value in logs.items():
        name = token if _DIGIT.search(token) else ""
        shares[name] = shares.get(name, 0.0) + exp(min(value, 0.0))
    return {name: round(log(share), 6) for name, share in shares.items() if share > 0.0}
