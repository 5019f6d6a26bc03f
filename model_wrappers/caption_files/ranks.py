"""The caption files of a run of several processes: their names, and which are not there."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import starmap
from typing import Final

from lmms_eval_captions.judges.errors import CaptionError
from lmms_eval_captions.model_wrappers.caption_files.paths import files_of

_RANK_FILE: Final = re.compile(r"rank-(\d{1,6})-of-(\d{1,6})\.jsonl(\.gz)?")
_SHOWN: Final = 16


def rank_file(rank: int, world_size: int) -> str:
    """The name of the file of one process.

    >>> rank_file(3, 16)
    'rank-3-of-16.jsonl'
    """
    return f"rank-{rank}-of-{world_size}.jsonl"


def absent_ranks(text: str) -> str:
    """Which processes have no file among the others, in words; nothing where all are there.

    A process that was given no caption has no file, so that this explains captions that are
    missing, and is no error by itself.

    Args:
        text: ``path=`` as :func:`files_of` takes it.
    """
    try:
        names = [path.name for path in files_of(text)]
    except (CaptionError, OSError):
        return ""
    there: dict[int, set[int]] = defaultdict(set)
    for name in names:
        if parts := _RANK_FILE.fullmatch(name):
            there[int(parts[2])].add(int(parts[1]))
    return "; ".join(filter(None, starmap(_absent, sorted(there.items()))))


def _absent(n_ranks: int, there: set[int]) -> str:
    absent = [str(rank) for rank in range(n_ranks) if rank not in there]
    if not absent:
        return ""
    named = ", ".join(absent[:_SHOWN]) + (" and more" if len(absent) > _SHOWN else "")
    return f"of {n_ranks} processes that captioned, {len(absent)} have no file there: rank {named}"
