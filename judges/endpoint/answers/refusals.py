"""Which parameter of a request an endpoint's error is about, where a request can do without it."""

from __future__ import annotations

import re
from typing import Final

_KIND: Final = (
    r"(?:(?:body|request|keyword|query) )?(?:parameter|argument|field|property|name|key)s?"
)
_QUOTE: Final = r"[\\'\"`]{1,2}"
_NOT_TAKEN: Final = (
    r"(?:not (?:yet )?(?:supported|allowed|permitted|recognized|accepted)"
    r"|unsupported|unknown|unexpected|unrecognized)\b"
)
_END: Final = r"(?=$|[.,;:)\]]| (?:in|for|with|by|is)\b)"
_SEED_REFUSED: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # Unknown name "seed": Cannot find field. / Unrecognized request argument supplied: seed
        rf"\b(?:unknown|unsupported|unexpected|unrecognized) {_KIND}(?: supplied)?:? ?"
        rf"(?:{_QUOTE}seed{_QUOTE}|seed{_END})",
        # 'seed' is not supported / 'seed' was unexpected / the parameter seed is not supported
        rf"(?:{_QUOTE}seed{_QUOTE}|\b{_KIND} seed)(?: {_KIND})?(?: is| was|:)? {_NOT_TAKEN}",
        # seed is not supported / Error: seed: Extra inputs are not permitted
        rf"^(?:\w*error:? )?seed(?: {_KIND})?(?: is|:) (?:{_NOT_TAKEN}|extra inputs are not perm)",
        # does not support parameters: ['seed'] / does not support the seed parameter
        rf"\bnot support (?:{_KIND}:? ?\[?{_QUOTE}seed{_QUOTE}|(?:the )?seed {_KIND}"
        rf"|{_QUOTE}seed{_QUOTE}|seed[.]?$)",
        # 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted'
        rf"{_QUOTE}seed{_QUOTE}[\])], {_QUOTE}msg{_QUOTE}: {_QUOTE}extra inputs are not permitted",
    )
)
"""What endpoints say that take no ``seed``. The word alone is not enough: an error may quote a
caption about seeds."""


_INSTEAD: Final = re.compile(r"\b(?:unsupported|not supported|not support|instead|use)\b")
"""What is said of ``max_tokens`` by who does not take it. vLLM names both where a prompt is too
long: "'max_tokens' or 'max_completion_tokens' is too large: 256"."""


def refused_parameter(words: str) -> str | None:
    """The parameter that a 4xx is about, ``None`` where it is about something else.

    Args:
        words: What the endpoint says.

    >>> refused_parameter('Unknown name "seed": Cannot find field.')
    'seed'
    >>> refused_parameter("flagged: 'a seed in an unknown field'") is None
    True
    """
    lower = words.lower()
    if "logprob" in lower:
        return "logprobs"
    # Reasoning models of OpenAI take neither of these.
    if "max_tokens" in lower and "max_completion_tokens" in lower and _INSTEAD.search(lower):
        return "max_tokens"
    if "temperature" in lower and ("unsupported" in lower or "not support" in lower):
        return "temperature"
    if any(pattern.search(words) for pattern in _SEED_REFUSED):
        return "seed"
    return None
