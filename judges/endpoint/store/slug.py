"""Names of folders."""

from __future__ import annotations

import hashlib
import re

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def slug(name: str) -> str:
    """A name fit for a folder, different for different names.

    >>> slug("gpt-4o-2024-08-06")
    'gpt-4o-2024-08-06'
    >>> slug("meta-llama/Llama-3.1-8B-Instruct")
    'meta-llama-Llama-3.1-8B-Instruct-c6da5c'
    """
    safe = _UNSAFE.sub("-", name)[:80].strip(".-")
    if safe == name:
        return name
    encoded = name.encode("utf-8", "surrogatepass")
    return f"{safe}-{hashlib.blake2b(encoded, digest_size=3).hexdigest()}"
