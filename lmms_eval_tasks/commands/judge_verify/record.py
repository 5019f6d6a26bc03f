"""The record of a verification: what a judge said of every anchor, to compare others with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files.atomic_write import write_atomically
from lmms_eval_captions.judges.files.bounded_files import parse_json, read_whole
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.benchmark_record import (
    BenchmarkRecord,
    benchmark_record,
    fingerprint,
    probe_facts,
    text,
    texts,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.probe_facts import ProbeFacts

FORMAT: Final = "lmms-eval-captions judge record"
VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRecord:
    """What is known of one judge at one endpoint."""

    model: str
    served: tuple[str, ...]
    """Names under which it answered, where they say more than what was asked for."""
    endpoints: tuple[str, ...]
    """Names of its addresses, without secrets."""
    made: str
    """When, as ISO 8601 has it."""
    probes: ProbeFacts
    benchmarks: Mapping[str, BenchmarkRecord]
    fingerprints: Mapping[str, str]
    """Benchmark to the fingerprint of the judge: its own, or that of the record before it, with
    which it was found to be the same."""

    def to_json(self) -> dict[str, object]:
        """As an object of JSON; it holds no secret."""
        return {"format": FORMAT, "version": VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, document: object, where: str) -> JudgeRecord:
        """The inverse of :meth:`to_json`.

        Args:
            document: What was read.
            where: Where from, for the message.

        Raises:
            DataError: If it is no record of this version.
        """
        try:
            found: Any = document
            _require_version(found)
            benchmarks = {
                str(name): benchmark_record(each) for name, each in found["benchmarks"].items()
            }
            return cls(
                model=text(found["model"]),
                served=texts(found["served"]),
                endpoints=texts(found["endpoints"]),
                made=text(found["made"]),
                probes=probe_facts(found["probes"]),
                benchmarks=benchmarks,
                fingerprints={
                    name: fingerprint(found["fingerprints"][name]) for name in benchmarks
                },
            )
        except (TypeError, LookupError, ValueError, AttributeError) as error:
            raise DataError(
                f"{where}: expected a record that `lmms-eval-captions judge verify -o FILE` wrote "
                f"(version {VERSION}): {error}; write it again with this version"
            ) from error


def _require_version(found: Mapping[str, object]) -> None:
    if found["format"] != FORMAT or found["version"] != VERSION:
        raise ValueError(f"it is version {found['version']!r:.20} of {found['format']!r:.60}")


def read_record(path: Path) -> JudgeRecord:
    """A record from its file.

    Raises:
        DataError: If there is none, or it is none.
    """
    try:
        document = parse_json(read_whole(path))
    except (OSError, ValueError) as error:
        raise DataError(
            f"--against {path}: expected a record that `lmms-eval-captions judge verify -o FILE` "
            f"wrote: {error}"
        ) from error
    return JudgeRecord.from_json(document, f"--against {path}")


def require_writable(path: Path) -> None:
    """Find out whether a record can be written, before anything is asked for it.

    Raises:
        DataError: If it cannot.
    """
    where = path.expanduser()
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        if where.is_dir():
            raise IsADirectoryError("it is a folder")
        with TemporaryFile(dir=where.parent):
            pass
    except OSError as error:
        raise DataError(f"-o {path}: cannot be written: {error}") from error


def write_record(path: Path, record: JudgeRecord) -> None:
    """Write a record.

    Raises:
        DataError: If the file cannot be written.
    """
    try:
        raw = json.dumps(record.to_json(), indent=1)
        write_atomically(path.expanduser(), f"{raw}\n".encode("ascii"))
    except OSError as error:
        raise DataError(f"-o {path}: cannot be written: {error}") from error
