"""Records of judges: the verdict on every anchor, in a file that is compared with later."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import parse_json, read_whole, write_atomically


@dataclass(frozen=True, slots=True)
class BenchmarkRecord:
    """Verdicts by the names of a benchmark's anchors, ``unreadable`` if there was none."""

    prompts: str
    """See :attr:`.anchors.Subject.prompts`."""
    verdicts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class JudgeRecord:
    """Verdicts of one judge on all anchors."""

    model: str
    made: str
    """ISO date and time."""
    benchmarks: Mapping[str, BenchmarkRecord]
    failed_probes: Sequence[str] = ()
    """Names of the probes that the judge failed."""


def read_record(path: Path) -> JudgeRecord:
    """Read a record; :class:`DataError` if the file is missing or not one."""
    try:
        document: Any = parse_json(read_whole(path))
        benchmarks = {
            str(name): BenchmarkRecord(
                str(each["prompts"]),
                {str(anchor): str(verdict) for anchor, verdict in each["verdicts"].items()},
            )
            for name, each in document["benchmarks"].items()
        }
        failed_probes = list(map(str, document["failed_probes"]))
        return JudgeRecord(str(document["model"]), str(document["made"]), benchmarks, failed_probes)
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise DataError(
            f"{path}: expected a record that `lmms-eval-captions judge verify -o FILE` wrote: "
            f"{error}"
        ) from error


def require_writable(path: Path) -> None:
    """Raise :class:`DataError` if a record cannot be written, before anything is paid for."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError("is a folder")
        with TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise DataError(f"{path}: the record cannot be written: {error}") from error


def write_record(path: Path, record: JudgeRecord) -> None:
    """Write a record; :class:`DataError` if it cannot be written."""
    try:
        write_atomically(path, json.dumps(asdict(record), indent=1).encode("utf-8"))
    except OSError as error:
        raise DataError(f"{path}: the record cannot be written: {error}") from error
