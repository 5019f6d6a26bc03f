"""Files that are there whole or not at all, whoever reads or is killed meanwhile."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file in one step, in the place of one that is there; its folder is made.

    Several processes may write the same file at once: one of them wins. A process that is killed
    leaves a hidden draft beside it at most. The content is in the operating system's hands when
    this returns, and may be lost in a power cut.

    Args:
        path: The file.
        content: All of it.

    Raises:
        OSError: If it cannot be written; what was there before is still there.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        draft.write_bytes(content)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
