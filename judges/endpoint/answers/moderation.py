"""Whether a 403 is about what one request says, not about who may ask.

Moderated endpoints (OpenRouter, xAI, gateways with guardrails) answer 403 to an input that they
flag; others answer it to a key without permission, to a country or to an account that was closed.
"""

from __future__ import annotations

import json
import re
from typing import Final

_CONTENT: Final = re.compile(
    r"\b(?:content|input|prompt|message|request|text|image|output|completion|response)s?\b"
    r"[^.]{0,60}?\b(?:flagged|moderat\w+|violat\w+|unsafe|harmful|inappropriate|disallowed)\b"
    r"|\b(?:requires|failed|blocked by|rejected by|violat\w+)\b[^.]{0,40}?\bmoderation\b"
    r"|\bviolat\w+\b[^.]{0,40}?\b(?:content|safety|usage) (?:polic(?:y|ies)|guidelines?|rules?)\b"
    r"|\bcontent[ _-](?:filter|moderation|safety|policy[ _-]violation|management policy)"
    r"|\b(?:unsafe|harmful|inappropriate|prohibited|disallowed)[ _]content\b"
    r"|\bsafety[ _-](?:check|filter|system)|\bmoderation_(?:blocked|error)|\bguardrails?\b",
    re.IGNORECASE,
)
_ASKER: Final = re.compile(
    r"\b(?:accounts?|organi[sz]ations?|subscriptions?|workspaces?|keys?|projects?|users?|access)\b"
    r"[^.]{0,80}?\b(?:flagged|suspended|banned|blocked|disabled|deactivated|terminated|closed"
    r"|restricted|revoked|limited)\b"
    r"|\b(?:keys?|accounts?|organi[sz]ations?|projects?)\b[^.]{0,60}?"
    r"\b(?:insufficient|must|permissions?|scopes?|do(?:es)? not (?:have|allow)|cannot)\b"
    r"|\b(?:no|not|missing|insufficient|invalid|lacks?|requires?)\b[^.]{0,60}?"
    r"\b(?:keys?|permissions?|scopes?|approval)\b"
    r"|\benabled (?:on|for) your\b|\brequires? a (?:\w+ )?key\b"
    r"|\byou have violated\b|\byour ip\b",
    re.IGNORECASE,
)
_SENTENCE_ENDS: Final = re.compile(r"(?<=[.!;\n])\s+")
_WARNING: Final = re.compile(r"\b(?:may|might|could|repeated|further)\b", re.IGNORECASE)
"""What a sentence says that is about another time ("Your account may be suspended")."""
_MOST: Final = 2000
"""Characters of the words that are looked at."""


def is_about_content(body: str) -> bool:
    """Whether the body of a 403 says that this one request was flagged.

    What the endpoint quotes of the request (``flagged_input``) is not looked at: it is a caption.

    >>> is_about_content('{"error": {"message": "Your input was flagged for violence"}}')
    True
    >>> is_about_content('{"error": {"message": "Your account was flagged; contact support"}}')
    False
    """
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        payload = body
    error = payload.get("error", payload) if isinstance(payload, dict) else payload
    named = error if isinstance(error, dict) else {}
    metadata = named.get("metadata")
    if isinstance(metadata, dict) and "flagged_input" in metadata:
        return True
    words = [named.get(name) for name in ("message", "code", "type")] if named else [error]
    text = "\n".join(word[:_MOST] for word in words if isinstance(word, str))
    if _CONTENT.search(text) is None:
        return False
    sentences = _SENTENCE_ENDS.split(text)
    said = (sentence for sentence in sentences if not _WARNING.search(sentence))
    return not any(map(_ASKER.search, said))
