"""Stages of a build: each is a file, which a later run of the same build reads instead.

Within a stage every reply is kept by the engine: a build that was ended asks nothing twice.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from loguru import logger

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.files import write_atomically
from lmms_eval_captions.lmms_eval_tasks.commands.building.options import Role
from lmms_eval_captions.lmms_eval_tasks.commands.building.spending import add_spending
from lmms_eval_captions.lmms_eval_tasks.commands.building.tally import Tally
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Work, kept
from lmms_eval_captions.lmms_eval_tasks.data.files import read_jsonl

VERSION: Final = 1
"""Of the files: one of another version is made anew."""
FOLDER: Final = "build"
"""Folder of the stages' files, in the benchmark's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A step of a pipeline."""

    name: str
    does: str
    """What it does, in a sentence without an end."""
    run: Callable[[Work, list[Row]], list[Row]]
    """From the rows that the stage before left to its own; rows that are dropped stay in it."""
    roles: tuple[Role, ...] = ()
    """Whose models it asks."""
    prompts: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """Names of the further options that move it."""


@dataclass(frozen=True, slots=True)
class Done:
    """A stage that was run, or read from its file."""

    stage: Stage
    head: Mapping[str, Any]
    is_new: bool
    """Whether it was run now."""

    @property
    def n_lost(self) -> int:
        """Requests without a reply, which the next run asks again."""
        return int(self.head["requests"]["failures"].get("unavailable", 0))


def run_stages(stages: Sequence[Stage], work: Work, only: str | None = None) -> list[Done]:
    """Run the stages of a pipeline, from the first that is not there.

    Args:
        stages: In order.
        work: What they work with; gets their rows.
        only: Name of the one stage that is run, and run anew; ``None`` for all.

    Raises:
        SettingsError: If there is no stage of that name or of ``--until``'s, or one before it is
            not there.
        JudgeUnavailableError: If too many requests of a stage have no reply.
        JudgeStoppedError: If a model is asked nothing more.
    """
    names = [stage.name for stage in stages]
    until = work.options.until
    for option, name in (("--stage", only), ("--until", until)):
        if name not in (None, *names):
            raise SettingsError(f"{option}: expected one of {', '.join(names)}, got {name!r}")
    done: list[Done] = []
    rows: list[Row] = []
    before = ""
    for number, stage in enumerate(stages, 1):
        path = _path(work, number, stage)
        mark = fingerprint(stage, work, before)
        found = None if stage.name == only else _read(path, mark, work)
        if found is None and only not in (None, stage.name):
            raise SettingsError(
                f"--stage {only}: the stage {stage.name!r} before it is not there for these clips, "
                "models and options; run it first, or leave --stage out to run all"
            )
        if found is None and not work.is_rehearsal:
            logger.info("stage {} of {}, {}: {}", number, len(stages), stage.name, stage.does)
        head, made = found or _run(stage, work, kept(rows), mark=mark, path=path)
        rows = work.rows[stage.name] = made
        done.append(Done(stage, head, found is None))
        if stage.name in (only, until):
            break
        # A stage that was run anew may have other rows: what follows is of these.
        before = _digest([mark, before, made])
    return done


def stage_files(folder: Path) -> list[Path]:
    """The files of a benchmark's stages, in order."""
    return sorted((folder / FOLDER).glob("[0-9][0-9]-*.jsonl"))


def read_stage(path: Path) -> tuple[dict[str, Any], list[Row]]:
    """Head and rows of a stage's file.

    Raises:
        DataError: If it is none.
    """
    lines = read_jsonl(path)
    if not lines or "fingerprint" not in lines[0]:
        raise DataError(f"{path}: expected the file of a build's stage, got no head")
    return lines[0], lines[1:]


def fingerprint(stage: Stage, work: Work, before: str) -> str:
    """What all that moves a stage's rows is told from.

    Args:
        stage: The stage.
        work: Its options, prompts and clips.
        before: What the rows of all stages before it are told from.
    """
    options = work.options
    moved: dict[str, object] = {
        "version": VERSION,
        "stage": stage.name,
        "before": before,
        "models": {role: [model.name for model in options.models(role)] for role in stage.roles},
        "prompts": {name: work.prompts.read(name) for name in stage.prompts},
        "options": {name: str(getattr(options, name)) for name in stage.options},
        "categories": dict(work.categories),
        "labels": [_file_hash(path) for path in options.labels if "labels" in stage.options],
    }
    if not before:
        moved["videos"] = [
            (video.video_id, str(video.path), _n_bytes(video.path)) for video in work.videos
        ]
    return _digest(moved)


def _digest(content: object) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.blake2b(text.encode("ascii"), digest_size=8).hexdigest()


def _path(work: Work, number: int, stage: Stage) -> Path:
    return work.options.folder / FOLDER / f"{number:02d}-{stage.name}.jsonl"


def _read(path: Path, mark: str, work: Work) -> tuple[dict[str, Any], list[Row]] | None:
    """A stage's file, if it is of the same build and complete."""
    if not path.is_file():
        return None
    try:
        head, rows = read_stage(path)
        failures = head["requests"]["failures"]
        is_same = head["fingerprint"] == mark and head["n_rows"] == len(rows)
    except (DataError, KeyError, TypeError) as error:
        logger.warning("{}: cannot be read and is made anew: {!r}", path, error)
        return None
    asks_again = work.settings.ask_again and failures.get("unreadable")
    is_whole = not (failures.get("unavailable") or asks_again)
    return (head, rows) if is_same and is_whole else None


def _run(
    stage: Stage, work: Work, rows: list[Row], *, mark: str, path: Path
) -> tuple[dict[str, Any], list[Row]]:
    work.tally = Tally()
    before = work.crew.totals
    try:
        made = stage.run(work, rows)
        work.tally.raise_if_lost(stage.name)
    finally:
        cost = work.crew.totals.since(before)
        if cost.calls:
            add_spending(path.parent, stage.name, cost)
    work.tally.warn_of_refused(stage.name)
    reasons = Counter(str(row["dropped"]) for row in made if "dropped" in row)
    head = {
        "stage": stage.name,
        "does": stage.does,
        "fingerprint": mark,
        "n_before": len(rows),
        "n_rows": len(made),
        "n_kept": len(kept(made)),
        "dropped": dict(sorted(reasons.items())),
        "models": {
            role: [model.name for model in work.options.models(role)] for role in stage.roles
        },
        "prompts": {name: _digest(work.prompts.read(name))[:8] for name in stage.prompts},
        "requests": dict(work.tally.to_json()),
    }
    write_rows(path, [head, *made])
    return head, made


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as JSON lines, in one step.

    Raises:
        DataError: If the file cannot be written.
    """
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    try:
        write_atomically(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error}") from error


def _n_bytes(path: Path) -> int | None:
    """The size of a clip; ``None`` of one that is not there, such as a link to nothing."""
    try:
        return path.stat().st_size
    except OSError:
        return None


def _file_hash(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()
