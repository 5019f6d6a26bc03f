r"""Takes the secrets of a run out of what servers send: the API key, passwords in URLs and proxies.

Servers echo what they were sent, in any field of an answer. So every answer is searched whole, as
bytes, before anything reads it. What is found, and replaced by ``[key]``:

- the secret in upper, lower or mixed case;
- its base64, standard and URL-safe, alone or within something longer such as ``Bearer ...`` or
  ``user:password`` (three alignments), and its hexadecimal digits;
- each of these with characters written as ``%XX``, as ``\u00XX`` or behind a backslash, in JSON
  within JSON as well, and with null bytes in between, as UTF-16 has them.

What is not: parts of a secret, a secret with anything else between its characters, other codes. A
secret of fewer than 8 characters, or of fewer than 16 that are not letters and digits both, is
taken for a placeholder such as ``EMPTY`` or ``token``: judges write such words, and a reply must be
read as it came. Only from the words of errors it is taken, where it stands by itself.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Final
from urllib.parse import unquote, urlsplit

from lmms_eval_captions.judges.endpoint.urls import proxy_of
from lmms_eval_captions.judges.surrogates import whole_json

_SHOWN: Final = b"[key]"
_JSON_CODE: Final = re.compile(rb"\\u00([2-7][0-9a-fA-F])")
_URL_CODE: Final = re.compile(rb"%([2-7][0-9a-fA-F])")
_SHORT: Final = 8
_LONG: Final = 16
_MOST_BYTES: Final = 2**20
"""Longest answer that secrets are taken out of; a longer one that holds any is withheld whole."""


@dataclass(frozen=True, slots=True)
class Redactor:
    """Finds some secrets, and what encodes them; make it with :func:`redactor`."""

    forms: tuple[tuple[bytes, re.Pattern[bytes]], ...] = field(repr=False)
    """What is looked for, in lower case, and the same with each character in any spelling; nothing
    where there is no secret. The longest first, so that no part of it stays."""

    def body(self, raw: bytes) -> bytes:
        """An answer without the secrets: the very bytes where it holds none.

        JSON stays JSON. What holds a secret in a way that it cannot be taken out of is withheld.
        """
        patterns = self._patterns_in(raw)
        if not patterns:
            return raw
        clean = raw.replace(b"\0", b"")
        if len(clean) <= _MOST_BYTES:
            for pattern in patterns:
                clean = pattern.sub(_SHOWN, clean)
        return _SHOWN if self._patterns_in(clean) else clean

    def text(self, text: str) -> str:
        """A text without the secrets."""
        raw = text.encode("utf-8", "surrogatepass")
        clean = self.body(raw)
        return text if clean is raw else clean.decode("utf-8", "surrogatepass")

    def _patterns_in(self, raw: bytes) -> list[re.Pattern[bytes]]:
        """Patterns of the secrets that an answer holds; linear in its length."""
        if not self.forms:
            return []
        if b"\0" in raw:
            raw = raw.replace(b"\0", b"")
        patterns = self._patterns_in_plain(raw)
        plain = raw
        if b"\\u00" in plain:
            plain = _JSON_CODE.sub(_character, plain)
        if b"%" in plain:
            plain = _URL_CODE.sub(_character, plain)
        if plain is not raw or b"\\/" in plain:
            patterns += self._patterns_in_plain(plain.replace(b"\\", b""))
        return patterns

    def _patterns_in_plain(self, raw: bytes) -> list[re.Pattern[bytes]]:
        lower = raw.lower()
        return [pattern for form, pattern in self.forms if form in lower]


@lru_cache(maxsize=256)
def redactor(api_key: str | None, *urls: str) -> Redactor:
    """What takes a key out, and the passwords of URLs and of the proxies that lead to them.

    Args:
        api_key: The key, or ``None``.
        urls: Where it is sent.
    """
    proxies = [proxy for url in urls if (proxy := proxy_of(url))]
    passwords = [urlsplit(url).password for url in (*urls, *proxies)]
    secrets = [api_key, *(unquote(password) for password in passwords if password)]
    hidden = {secret for secret in secrets if secret and _is_secret(secret)}
    forms = set(chain.from_iterable(map(_forms, hidden)))
    return Redactor(
        tuple(
            (form, re.compile(b"".join(map(_spellings, form)), re.IGNORECASE))
            for form in sorted(forms, key=lambda form: (-len(form), form))
        )
    )


def scrub(text: str, api_key: str | None, *urls: str) -> str:
    """Words of an error without the key, however short, and without the passwords of the URLs.

    >>> scrub("wrong key: SK-ABC-0123456789", "sk-abc-0123456789")
    'wrong key: [key]'
    >>> scrub("wrong key: EMPTY, see EMPTYING", "EMPTY")
    'wrong key: [key], see EMPTYING'
    """
    text = redactor(api_key, *urls).text(text)
    if api_key and api_key in text:
        return re.sub(rf"(?<!\w){re.escape(api_key)}(?!\w)", _SHOWN.decode("ascii"), text)
    return text


def answer_text(raw: bytes, api_key: str | None, url: str, *, strictly: bool = False) -> str:
    """An answer as text: without secrets, and of whole characters. All that is read of one.

    Args:
        raw: Body as it came, in UTF-8, or in another encoding that JSON may have.
        api_key: The key that was sent, or ``None``.
        url: Where to.
        strictly: Whether bytes that are no characters are an error, not U+FFFD.

    Raises:
        ValueError: If it is to be read strictly and is no text.
    """
    clean = redactor(api_key, url).body(raw)
    # As JSON is decoded: half characters come through here, and are mended below.
    text = clean.decode(json.detect_encoding(clean), "surrogatepass" if strictly else "replace")
    return whole_json(text.removeprefix("\ufeff"))


def _is_secret(text: str) -> bool:
    has_both = any(map(str.isdigit, text)) and any(map(str.isalpha, text))
    return len(text) >= (_SHORT if has_both else _LONG)


def _forms(secret: str) -> list[bytes]:
    raw = secret.encode("utf-8", "replace")
    forms = [raw, json.dumps(secret)[1:-1].encode("ascii"), raw.hex().encode("ascii")]
    for shift in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            # What stands before and after shares the characters at both ends.
            first, end = -(-8 * shift // 6), 8 * (shift + len(raw)) // 6
            forms.append(encode(b"\0" * shift + raw)[first:end])
    return [form.lower() for form in forms]


def _spellings(character: int) -> bytes:
    plain = bytes([character])
    codes = b"|".join({plain.hex().encode("ascii"), plain.upper().hex().encode("ascii")})
    return rb"(?:\\{0,4}%b|%%(?:%b)|\\{1,4}u00(?:%b))" % (re.escape(plain), codes, codes)


def _character(code: re.Match[bytes]) -> bytes:
    return bytes([int(code[1], 16)])
