"""The verdicts of one task of one run, as a file beside the results: ``<date>_verdicts_<task>``.

JSON lines, gzipped: the first says what was judged, each other is what a caption's breakdown item
holds. It is written whether or not samples are logged, and is a hundredth of a sample log.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import json_lines, write_atomically
from lmms_eval_captions.lmms_eval_tasks.records import Item

_LEVEL: Final = 6
"""Of gzip's compression; a higher one takes much longer for a few percent."""


def verdict_path(folder: Path, stamp: str, task: str) -> Path:
    """Where the verdicts of a task are.

    Args:
        folder: Where the run's results are.
        stamp: How the names of the run's files begin.
        task: Its name.
    """
    return folder / f"{stamp}_verdicts_{task}.jsonl.gz"


def write_verdicts(path: Path, head: Mapping[str, object], captions: Iterable[Item]) -> None:
    """Write the verdicts of a task.

    Args:
        path: See :func:`verdict_path`.
        head: What was judged.
        captions: Each caption's item of ``breakdown``.

    Raises:
        OSError: If the file cannot be written.
    """
    lines = (json.dumps(line, ensure_ascii=False) for line in (head, *captions))
    text = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    # Without a time in it, equal verdicts are equal files.
    write_atomically(path, gzip.compress(text, _LEVEL, mtime=0))


def read_verdict_items(path: Path) -> Iterator[Item]:
    """Each caption's item of ``breakdown``.

    Raises:
        DataError: If the file cannot be read to its end.
    """
    try:
        for number, item in json_lines(path):
            if not isinstance(item, dict):
                raise DataError(f"{path}, line {number}: expected a caption, got {item!r:.80}")
            if number > 1:
                yield item
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: expected the verdicts of a task, one JSON object per line: {error}; delete "
            "it, then the run's sample log is read in its place"
        ) from error
