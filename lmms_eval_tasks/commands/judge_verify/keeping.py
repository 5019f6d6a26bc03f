"""What is kept of a verification: for runs of the judge, and for the next verification."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.outcome import Verified
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.record import JudgeRecord
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.subjects import Subject
from lmms_eval_captions.lmms_eval_tasks.verified_judges import (
    VerifiedBenchmark,
    kept_path,
    read_kept,
    write_kept,
)

_SESSION: Final = ".session"
_FIRST_SESSION: Final = ".first.session"
_LOCK_S: Final = 60.0
"""How long another process that reads and writes a small file is waited for."""


@dataclass(frozen=True, slots=True)
class KeptJudge:
    """What earlier verifications of a model at an endpoint have left."""

    path: Path
    model: str
    settings: JudgeSettings
    benchmarks: Mapping[str, VerifiedBenchmark]
    record: JudgeRecord | None
    """What the judge said when it was first verified; ``None`` where it never passed."""
    is_first: bool = False
    """Whether all of that is put aside as soon as the judge passes."""

    @classmethod
    def of(cls, model: str, settings: JudgeSettings, *, is_first: bool = False) -> KeptJudge:
        """What is kept.

        Args:
            model: Name of the judge.
            settings: Where it is asked.
            is_first: Whether what is kept is put aside as soon as the judge passes.

        Raises:
            DataError: If it cannot be read, unless it is put aside.
        """
        path = kept_path(settings.cache, model, settings.endpoint.names)
        try:
            benchmarks, document = read_kept(path)
            record = None if document is None else JudgeRecord.from_json(document, str(path))
        except DataError:
            if not is_first:
                raise
            benchmarks, record = {}, None
        return cls(path, model, settings, benchmarks, record, is_first)

    @property
    def session(self) -> Path:
        """Where the verification that is under way is written down.

        One that takes a new record goes on with none that is compared with what is kept.
        """
        return self.path.with_suffix(_FIRST_SESSION if self.is_first else _SESSION)

    def keep(
        self, verified: Verified, subjects: Sequence[Subject], trusted: JudgeRecord | None
    ) -> None:
        """Add a verification; nothing is changed of benchmarks that it did not decide.

        One judge answers for all benchmarks: where it fails one, or is another one by its name,
        what was kept of the others is failed, too.

        Args:
            verified: What it came to.
            subjects: The benchmarks.
            trusted: The record that it was compared with, ``None`` where there was none.

        Raises:
            DataError: If it cannot be written.
        """
        decided = _decided(verified, subjects)
        with self._locked():
            # Others may have kept something since this verification began.
            now = KeptJudge.of(self.model, self.settings, is_first=self.is_first)
            now._write(verified, decided, trusted)
        if verified.state != "undecided":
            self._end_sessions()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from reading and writing what is kept."""
        from filelock import FileLock, Timeout

        path = self.path.with_suffix(".lock")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(path)
            lock.acquire(timeout=_LOCK_S)
        except (OSError, Timeout) as error:
            raise DataError(
                f"{path}: what was found out about the judge cannot be kept: {error}; see whether "
                "another verification hangs, or set LMMS_CAPTIONS_CACHE to a folder that can be "
                "written"
            ) from error
        try:
            yield
        finally:
            lock.release()

    def _write(
        self,
        verified: Verified,
        decided: Mapping[str, VerifiedBenchmark],
        trusted: JudgeRecord | None,
    ) -> None:
        benchmarks = {**self.benchmarks, **decided}
        if verified.state == "failed":
            benchmarks = {name: _failed(each, verified) for name, each in benchmarks.items()}
        passed = [name for name, each in decided.items() if each.state == "passed"]
        base = self.record
        if self.is_first and passed:
            # Nothing of the judge before is true of this one, nor that it passed elsewhere.
            benchmarks, base = dict(decided), None
        record = _with(_with(base, verified.record, passed), trusted, passed)
        write_kept(
            self.path,
            model=self.model,
            endpoints=self.settings.endpoint.names,
            benchmarks=benchmarks,
            record=None if record is None else record.to_json(),
        )

    def _end_sessions(self) -> None:
        """A verification that is decided is not gone on with: the next one asks the judge."""
        for path in (self.path.with_suffix(each) for each in (_SESSION, _FIRST_SESSION)):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise DataError(
                    f"{path}: the verification cannot be ended: {error}; delete it, else the next "
                    "one goes on with this one's replies"
                ) from error


def _decided(verified: Verified, subjects: Sequence[Subject]) -> dict[str, VerifiedBenchmark]:
    """What is known by a verification of its own benchmarks."""
    outcomes = {each.name: each for each in verified.benchmarks}
    found: dict[str, VerifiedBenchmark] = {}
    for subject in subjects:
        outcome = outcomes.get(subject.name)
        is_passed = outcome is not None and outcome.state == "passed"
        if verified.state == "failed" or is_passed:
            found[subject.name] = VerifiedBenchmark(
                state="failed" if verified.state == "failed" else "passed",
                fingerprint="" if outcome is None else outcome.fingerprint,
                verified_s=time.time(),
                protocol=subject.config.protocol,
                prompts=subject.prompts,
            )
    return found


def _failed(kept: VerifiedBenchmark, verified: Verified) -> VerifiedBenchmark:
    """What is kept of a benchmark once the judge has failed."""
    differs = "; ".join(verified.failures)
    return replace(kept, state="failed", verified_s=time.time(), differs=differs)


def _with(
    base: JudgeRecord | None, source: JudgeRecord | None, names: Sequence[str]
) -> JudgeRecord | None:
    """A record with some benchmarks of another one in the place of its own."""
    chosen = [name for name in names if source is not None and name in source.benchmarks]
    if source is None or not chosen:
        return base
    benchmarks = {name: source.benchmarks[name] for name in chosen}
    fingerprints = {name: source.fingerprints[name] for name in chosen}
    if base is None:
        return replace(source, benchmarks=benchmarks, fingerprints=fingerprints)
    return replace(
        base,
        benchmarks={**base.benchmarks, **benchmarks},
        fingerprints={**base.fingerprints, **fingerprints},
    )
