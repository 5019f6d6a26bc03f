"""Whether replies can be kept, asked before the first one is paid for."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from lmms_eval_captions.judges.endpoint.cache_folder import CACHE_VARIABLE
from lmms_eval_captions.judges.errors import StoreError


def require_writable(folder: Path) -> None:
    """Raise where a file cannot be written in a folder, which is made.

    Args:
        folder: The folder; nothing is left in it.

    Raises:
        StoreError: If not; the text says what to do.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder, buffering=0) as draft:
            os.write(draft.fileno(), b"0")
    except OSError as error:
        raise StoreError(
            f"replies cannot be kept in {folder} ({error.strerror or error}): nothing is asked, as "
            f"answers would be lost. Make it writable, or set {CACHE_VARIABLE} to a folder that is"
        ) from error
