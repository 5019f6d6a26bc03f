"""Requests that show something, and what endpoints say whose model cannot see it.

Such words come with any status: llama.cpp and Ollama say 500, which is an outage elsewhere,
OpenRouter 404, which stops everything. What they say of one picture alone (its format, its size, a
damaged file) is another matter, and that of its own question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

from lmms_eval_captions.judges.endpoint.request import Message

Shown = Literal["", "pictures", "a video"]
"""What a request shows beside its words."""
SHOWN: Final[tuple[Shown, ...]] = ("", "pictures", "a video")

_MEDIUM: Final = r"(?:image|picture|vision|visual|video|multi-?modal)"
_INPUT: Final = (
    r"(?: (?:(?:input|understanding|modality)s?|content(?: (?:block|part)s?)?|messages?"
    r"|support|capabilit(?:y|ies)))"
)
_NOT: Final = r"(?:not|never) (?:currently |yet )?(?:supported|enabled)"
# "not allowed" and "not available" are said of one picture as well, and of the next minute.
_NOT_BY_MODEL: Final = (
    r"(?:not|never) (?:currently |yet )?(?:supported|enabled|allowed|accepted|available) "
    r"(?:by|for|with|on|in) (?:this|the|your|that|model)\b"
    r"(?! (?:region|country|image|picture|format))"
)
_CLAUSE_ENDS: Final = r"(?= *(?:$|[.,;:!(\[{}]|-|(?:and|but|by|for|please)\b))"
_BLIND: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # image input is not supported - hint: ... / Image input modality is not enabled for ...
        rf"\b{_MEDIUM} inputs?(?: modality)? (?:is|are) {_NOT}{_CLAUSE_ENDS}",
        rf"\b{_MEDIUM}s?{_INPUT}? (?:is|are) {_NOT_BY_MODEL}",
        # Images are not supported by this model / part type image_url is not supported
        rf"(?:^|[.:;,{{] ?|\btype ){_MEDIUM}(?:s|_url)? (?:is|are) {_NOT}{_CLAUSE_ENDS}",
        # Model does not support images. / this model does not support image input (ref: ...)
        rf"\b(?:not|cannot|doesnt|cant) (?:currently |yet )?(?:support|accept|take) (?:any )?"
        rf"{_MEDIUM}(?:s|_urls?)?{_INPUT}?{_CLAUSE_ENDS}",
        rf"\b(?:not|doesnt) have (?:any )?{_MEDIUM}{_INPUT}{_CLAUSE_ENDS}",
        rf"\b(?:cannot|cant|unable to|not capable of) process(?:ing)? {_MEDIUM}s{_CLAUSE_ENDS}",
        # No endpoints found that support image input
        rf"\bno \w+ (?:found |available )?(?:that |which )?supports? {_MEDIUM}{_INPUT}?"
        rf"{_CLAUSE_ENDS}",
        # ... is not a multimodal model / ... is a text-only model
        r"\bnot a (?:multi-?modal|vision|visual|vlm?)\b|\bnot multi-?modal\b",
        r"\btext[- ]only model\b",
        # Only text content type is supported. / this model supports only text
        r"\bonly text(?: \w+)?(?: \w+)? (?:is|are) (?:supported|allowed|accepted)",
        r"\bsupports? (?:only text|text only|text-only)\b|\bonly supports? text\b",
        # At most 0 image(s) may be provided in one prompt.
        rf"\bat most 0 {_MEDIUM}\S* (?:may|can|are|is)\b",
        # this model is missing data required for image input
        rf"\bmissing data required for {_MEDIUM}",
        # Invalid content type. image_url is only supported by certain models.
        rf"\b{_MEDIUM}(?:s|_url)?(?: input)?s? (?:is|are) only supported (?:by|for|with|on|in)\b",
        # unknown variant image_url, expected text / Unsupported content part type: image_url
        r"\b(?:unknown|unsupported|invalid) (?:variant|(?:content )?(?:part )?type|value):? "
        r"(?:image|video)_url\b(?!\.\w|\[| (?:must|should))",
        r"\binput tag (?:image|video)_url\b|\bunsupported content\[\]\.type",
        # messages[0].content must be a string
        r"\bcontent must be (?:a )?string\b(?! (?:or|when|if)\b)",
        # 'NoneType' object has no attribute 'process_mm_data_async' (SGLang, a text model)
        r"\bno attribute process_mm_data",
    )
)
"""What endpoints say, with their quotation marks taken out."""
_QUOTES: Final = re.compile(r"[\\'\"`]+")


def shown_in(messages: Sequence[Message]) -> Shown:
    """What the messages of a request show beside their words.

    >>> shown_in([{"role": "user", "content": "Look."}])
    ''
    """
    types = {
        part.get("type")
        for message in messages
        if isinstance(content := message.get("content"), list)
        for part in content
    }
    if "video_url" in types:
        return "a video"
    return "pictures" if "image_url" in types else ""


def cannot_see(words: str) -> bool:
    """Whether an error's words say that the model takes no pictures or videos, whichever they are.

    Args:
        words: An error that a request which shows something ended with.

    >>> cannot_see("image input is not supported - hint: you may need to provide the mmproj")
    True
    >>> cannot_see("The image format is not supported")
    False
    """
    plain = _QUOTES.sub("", words)
    return any(pattern.search(plain) for pattern in _BLIND)
