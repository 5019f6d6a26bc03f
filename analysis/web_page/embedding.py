"""Data within a page of HTML: as text that ends no element, and packed."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from typing import Final

_LEVEL: Final = 9
"""Of gzip's compression: a page is made once and passed around."""


def json_in_html(data: object) -> str:
    r"""JSON that cannot end the element it stands in, nor begin a comment.

    >>> json_in_html({"caption": "</script><!--&"})
    '{"caption": "\\u003c/script\\u003e\\u003c!--\\u0026"}'
    """
    text = json.dumps(data)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def packed(data: bytes) -> str:
    """Bytes compressed by gzip, in letters and digits, which the browser unpacks."""
    return base64.b64encode(gzip.compress(data, _LEVEL, mtime=0)).decode("ascii")


def packed_json(data: object) -> str:
    """A value of JSON's types, packed; it holds no ``NaN``."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return packed(text.encode("utf-8", "replace"))


def source_hash(text: str) -> str:
    """What a page's policy knows its own style and script by; nothing else runs."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode()}"
