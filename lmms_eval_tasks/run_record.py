"""What a process that started lmms-eval reads of the runs that it finished."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from loguru import logger

from lmms_eval_captions.lmms_eval_tasks.this_run import FinishedRun

RUN_RECORD: Final = "LMMS_EVAL_CAPTIONS_RUN_RECORD"
"""Variable with the file that finished runs are appended to; ``lmms-eval-captions run`` sets it."""


def append_to_record(run: FinishedRun) -> None:
    """Append a finished run as one line of JSON, where that is asked for.

    Its results are named if lmms-eval could save them.
    """
    results = run.results
    line = {
        "results": str(results.resolve()) if results and results.is_file() else None,
        "judging": run.document,
    }
    _append(line)


def append_error(words: str) -> None:
    """Append why a run ended without results, where that is asked for."""
    _append({"error": words})


def _append(line: Mapping[str, object]) -> None:
    record = os.environ.get(RUN_RECORD)
    if not record:
        return
    try:
        with Path(record).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(line, default=str)}\n")
    except OSError as error:
        logger.error("the run cannot be added to {}: {}", record, error)
