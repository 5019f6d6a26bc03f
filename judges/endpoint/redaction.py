"""Removes API keys and URL passwords from everything that servers send.

A secret is replaced as it is and as JSON escapes it. One of fewer than 8 characters, or of fewer
than 16 that are not both letters and digits, is taken for a placeholder such as ``EMPTY``: judges
write such words, so it is removed from error messages only, as a word.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Final

from lmms_eval_captions.judges.endpoint.urls import proxy_of, secrets_in
from lmms_eval_captions.judges.surrogates import whole_json

SHOWN: Final = "[key]"
_SHORT: Final = 8
_LONG: Final = 16


class Key(str):
    """A key whose ``repr`` hides it, in records and tracebacks.

    >>> [Key("sk-secret")], f"Bearer {Key('sk-secret')}"
    ([[key]], 'Bearer sk-secret')
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return SHOWN


@lru_cache(maxsize=256)
def _forms(api_key: str | None, urls: tuple[str, ...]) -> tuple[str, ...]:
    """Return the secrets of an endpoint in all forms that are replaced, the longest first."""
    proxies = [proxy for url in urls if (proxy := proxy_of(url))]
    found = [api_key or "", *(secret for url in (*urls, *proxies) for secret in secrets_in(url))]
    secrets = filter(_is_secret, found)
    forms = {form for secret in secrets for form in (secret, json.dumps(secret)[1:-1])}
    return tuple(sorted(forms, key=len, reverse=True))


def scrub(text: str, api_key: str | None, *urls: str) -> str:
    """Return an error's text without the key, however short, and the passwords of URLs.

    >>> scrub("wrong key: sk-abc-0123456789", "sk-abc-0123456789")
    'wrong key: [key]'
    >>> scrub("wrong key: EMPTY, see EMPTYING", "EMPTY")
    'wrong key: [key], see EMPTYING'
    """
    for form in _forms(api_key, urls):
        text = text.replace(form, SHOWN)
    if api_key and api_key in text:
        text = re.sub(rf"(?<!\w){re.escape(api_key)}(?!\w)", SHOWN, text)
    return text


def answer_text(raw: bytes, api_key: str | None, *urls: str, strictly: bool = False) -> str:
    """Decode an answer, without secrets and lone surrogates.

    Args:
        raw: Body, in UTF-8 or another encoding of JSON.
        api_key: The key that was sent.
        urls: Addresses of the endpoint.
        strictly: Whether invalid bytes are an error instead of U+FFFD.

    Raises:
        ValueError: If it is to be read strictly and is not text.
    """
    text = raw.decode(json.detect_encoding(raw), "surrogatepass" if strictly else "replace")
    for form in _forms(api_key, urls):
        if form in text:
            text = text.replace(form, SHOWN)
    return whole_json(text.removeprefix("\ufeff"))


def _is_secret(text: str) -> bool:
    has_both = any(map(str.isdigit, text)) and any(map(str.isalpha, text))
    return len(text) >= (_SHORT if has_both else _LONG)
