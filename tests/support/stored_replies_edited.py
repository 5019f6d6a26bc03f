"""Changes stored replies, as if they had come from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lmms_eval_captions.judges.endpoint.store.line import read_line, write_line


def edit_store(folder: Path, edit: Callable[[int, dict[str, Any]], object]) -> None:
    """Change the judge's stored replies, each of which is handed over with its number.

    Args:
        folder: In which the cache folder is.
        edit: Changes a reply in place.
    """
    [path] = folder.glob("cache/replies/judge/*.jsonl")
    lines = []
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True)):
        key, value = read_line(line) or (b"", b"")
        reply = json.loads(value)
        edit(number, reply)
        lines.append(write_line(key, json.dumps(reply).encode("ascii")))
    path.write_bytes(b"".join(lines))
