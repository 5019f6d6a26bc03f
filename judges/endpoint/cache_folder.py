"""Where replies, captions and data are kept, and whose replies."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

CACHE_VARIABLE: Final = "LMMS_CAPTIONS_CACHE"
DEFAULT_CACHE: Final = "~/.cache/lmms-eval-captions"
StoreBy = Literal["model", "endpoint"]
"""Whose stored replies serve: those of the model's name, or of the endpoint that is asked."""


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder by itself, as captioners need it, to which other settings are nothing.

    Args:
        environ: Variables to read, by default the process's own.
    """
    env = os.environ if environ is None else environ
    return Path(env.get(CACHE_VARIABLE, "").strip() or DEFAULT_CACHE).expanduser()
