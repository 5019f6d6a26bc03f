"""Tokens that requests and replies take: the endpoint's count, or ours where that is odd."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Reply, Request

MOST_TOKENS: Final = 10_000_000
"""Of a request or a reply, above which a count is none: ten times the longest context there is."""
CHARS_PER_TOKEN: Final = 4.0
"""Characters of English prompts and captions that make a token in an estimate. T5's 32,000 pieces
make 3.9 to 4.7 of VDC's prompts and questions; judges have more, so that it is rather too high.
What is not ASCII is escaped, at 6 or more for one."""
_MOST_CHARS_PER_TOKEN: Final = 16
"""Letters of a text for a token at most: no text of words has 8. Fewer tokens are not believed."""
PICTURE_TOKENS: Final = 1_500
"""Of a picture in an estimate, as in ``prices.yaml``."""


def count_of(usage: object, name: str) -> int | None:
    """One count of a reply's ``usage``, ``None`` where it is no whole number of tokens.

    >>> count_of({"prompt_tokens": 12}, "prompt_tokens")
    12
    >>> count_of({"prompt_tokens": -3}, "prompt_tokens") is None
    True
    """
    value = usage.get(name) if isinstance(usage, dict) else None
    if type(value) is int and 0 <= value <= MOST_TOKENS:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # What is not a number is not between these.
    return int(value) if 0 <= value <= MOST_TOKENS and value == int(value) else None


def cached_of(usage: object) -> int:
    """Input tokens that a provider says it had in a cache; 0 where it says no such number.

    >>> cached_of({"prompt_tokens": 90, "prompt_tokens_details": {"cached_tokens": 64}})
    64
    >>> cached_of({"prompt_tokens": 90, "prompt_cache_hit_tokens": 64})
    64
    >>> cached_of({"prompt_tokens": 90, "prompt_tokens_details": {"cached_tokens": "64"}})
    0

    Source: OpenAI's "Prompt caching", which vLLM and most servers follow, and DeepSeek's "Context
    caching", which has a name of its own.
    """
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    n_cached = count_of(details, "cached_tokens")
    if n_cached is None:
        n_cached = count_of(usage, "prompt_cache_hit_tokens")
    return n_cached or 0


def counted(reply: Reply, request: Request, attempt: int) -> Reply:
    """A reply with an estimate of its tokens where the endpoint's count is odd, or too small.

    What is sent beside the request's own parameters, or left out of them, counts as asked. Of an
    input that is estimated nothing is taken to be from a cache: it could only make it too cheap.

    Args:
        reply: As it was read.
        request: The request that it answers.
        attempt: 0, and one more for each fresh sample.
    """
    n_asked = len(request.body(attempt))
    knows_output = _is_enough(reply.output_tokens, len(reply.text))
    if knows_output and not reply.is_estimated and _is_enough(reply.input_tokens, n_asked):
        return reply
    # Letters of pictures are no tokens. To tell them apart takes time: only where it may matter.
    n_pictures, n_letters = pictures_in(request.messages)
    n_chars = n_asked - n_letters
    knows_input = _is_enough(reply.input_tokens, n_chars)
    if knows_output and knows_input and not reply.is_estimated:
        return reply
    n_input = ceil(n_chars / CHARS_PER_TOKEN) + n_pictures * PICTURE_TOKENS
    n_output = ceil(len(json.dumps(reply.text)) / CHARS_PER_TOKEN)
    return replace(
        reply,
        input_tokens=reply.input_tokens if knows_input else n_input,
        output_tokens=reply.output_tokens if knows_output else n_output,
        is_estimated=True,
        cached_tokens=reply.cached_tokens if knows_input else 0,
    )


def pictures_in(messages: Sequence[Mapping[str, object]]) -> tuple[int, int]:
    """Pictures in a request's messages, and the letters that they are written with."""
    n_pictures = n_letters = 0
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if part.get("type") == "image_url":
                n_pictures += 1
                n_letters += len(part["image_url"]["url"])
    return n_pictures, n_letters


def _is_enough(n_tokens: int, n_chars: int) -> bool:
    return n_tokens * _MOST_CHARS_PER_TOKEN >= n_chars
