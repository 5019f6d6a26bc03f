"""Stages of a build: each one writes a file, which a later run of the same build reads instead.

Within a stage every reply is stored by the engine, so that a stopped build sends nothing twice.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar

from loguru import logger

from lmms_eval_captions.construction.media import Frames, Shown, Video, check_is_no_link
from lmms_eval_captions.construction.models import ModelPool, Question, Tally
from lmms_eval_captions.judges.endpoint.progress import Totals
from lmms_eval_captions.judges.endpoint.request import Asked
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.files import write_atomically
from lmms_eval_captions.judges.protocols.prompt import Prompts
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.lmms_eval_tasks.data.files import read_jsonl
from lmms_eval_captions.lmms_eval_tasks.sampling.named_models import Model

T = TypeVar("T")

Row = dict[str, Any]
"""Line of a stage's file: a clip, or a question about one. ``dropped`` says why it was removed."""

VERSION: Final = 2
"""File format version; files of other versions are rebuilt."""
FOLDER: Final = "build"
"""Folder of the stages' files, in the benchmark's."""
_SPENDING: Final = "spending.jsonl"


Role = Literal["writer", "solver", "viewer"]
"""Writers see the clip and write; solvers read text only; viewers check by the frames."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Checked arguments of ``build KIND``."""

    kind: str
    videos: Path
    data: Path
    """Root of benchmark data, in which the benchmark's folder is made."""
    writers: tuple[Model, ...]
    solvers: tuple[Model, ...]
    viewers: tuple[Model, ...]
    per_video: int
    """Most questions per clip (per clip and aspect if the benchmark has aspects), >= 1."""
    limit: int | None = None
    """Number of clips, the first ones; ``None`` for all."""
    n_frames: int = 16
    frame_pixels: int = 512 * 512
    """Area to which larger frames are shrunk."""
    max_tokens: int = 16_384
    timeout_s: float = 600.0
    seed: int = 0
    max_cost_usd: float | None = None
    categories: Path | None = None
    license: str = ""
    labels: tuple[Path, ...] = ()
    """Files of people's answers, which replace the sighted check."""
    annotators: int = 1
    """Fewest people who must have answered each criterion of a question, >= 1."""
    until: str | None = None
    """Last stage to run; ``None`` for all stages and the benchmark's files."""
    stage: str | None = None
    """The only stage to run; ``None`` for all."""

    def models(self, role: Role) -> tuple[Model, ...]:
        """Return the models of a role."""
        return {"writer": self.writers, "solver": self.solvers, "viewer": self.viewers}[role]

    def names(self, roles: Iterable[Role]) -> dict[Role, list[str]]:
        """Return the names of the models of roles."""
        return {role: [model.name for model in self.models(role)] for role in roles}

    @property
    def folder(self) -> Path:
        """The benchmark's folder."""
        return self.data / self.kind


@dataclass(slots=True, kw_only=True)
class BuildContext:
    """State of a build in progress; ``tally`` counts the current stage."""

    options: Options
    settings: JudgeSettings
    prompts: Prompts
    videos: Sequence[Video]
    frames: Frames
    pool: ModelPool
    categories: Mapping[str, str]
    """Category of questions to its definition: the paper's, or custom ones."""
    rows: dict[str, list[Row]] = field(default_factory=dict)
    """Rows of each stage, dropped ones included."""
    tally: Tally = field(default_factory=Tally)
    by_id: dict[str, Video] = field(init=False)

    def __post_init__(self) -> None:
        self.by_id = {video.video_id: video for video in self.videos}

    def ask(self, questions: Iterable[Question[T]], *, n: int, what: str) -> list[Asked[T]]:
        """Send requests, as many at once as possible, and return their outcomes in order."""
        timeout_s, is_structured = self.options.timeout_s, self.settings.structured
        jobs = (each.job(timeout_s, is_structured=is_structured) for each in questions)
        return self.pool.run(jobs, self.tally, n=n, what=what)

    def expect(self, rows: Iterable[Row]) -> None:
        """Set the order in which clips are needed next, by their rows or their questions'."""
        names = dict.fromkeys(row["video"] for row in rows)
        self.frames.expect([self.by_id[name] for name in names])

    def shown(self, row: Row) -> Shown:
        """Return the frames of a row's clip."""
        return self.frames.of(self.by_id[row["video"]])

    def drawn(self, row: Row) -> float:
        """Return a random number in [0, 1) that depends on the row's id and the seed only."""
        return self.rng("drawn", row["id"]).random()

    def rng(self, *about: object) -> random.Random:
        """Return random numbers that are equal in every run of a build."""
        return random.Random(":".join(map(str, (self.options.seed, *about))))  # noqa: S311 - no secret # nosec B311


def kept(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that were not dropped."""
    return [row for row in rows if "dropped" not in row]


class Stage(NamedTuple):
    """A step of a pipeline, with all that affects it."""

    name: str
    does: str
    """One-line description without a full stop."""
    run: Callable[[BuildContext, list[Row]], list[Row]]
    """From the rows of the stage before to its own, in which dropped rows stay."""
    roles: tuple[Role, ...] = ()
    prompts: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class Planned(NamedTuple):
    """Requests of a stage per clip, for an estimate."""

    prompts: tuple[str, ...]
    """Prompt, then further files that fill its slots."""
    models: Sequence[Model]
    """Models among which the requests are divided."""
    n_requests: float
    input_chars: float
    """Characters that fill the prompt's slots."""
    output_chars: float
    has_frames: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A benchmark and the pipeline that makes its files."""

    name: str
    source: str
    tasks: tuple[str, ...]
    """Tasks that score captions with what was built."""
    per_video: int
    n_frames: int
    categories: Mapping[str, str]
    """Category to its definition; custom ones may replace them unless empty."""
    stages: Callable[[Options], Sequence[Stage]]
    plan: Callable[[Options, int], Iterable[Planned]]
    """Requests per clip by the options and the number of categories."""
    write: Callable[[BuildContext, list[Row]], Mapping[str, int]]
    """Writes the official files; returns the number of questions per file."""
    video_folder: str = "videos"
    """Folder of clips of the benchmark's reader, below its own."""
    task_files: Mapping[str, str] = field(default_factory=dict)
    """Task to the file that it reads, if a build may have no questions for one of several."""

    def tasks_of(self, files: Collection[str]) -> tuple[str, ...]:
        """Return the tasks that score captions with these files."""
        if all(name in files for name in self.task_files.values()):
            return self.tasks
        return tuple(task for task, name in self.task_files.items() if name in files)


class Done(NamedTuple):
    """A stage that was run now, or read from its file."""

    stage: Stage
    head: Mapping[str, Any]
    is_new: bool

    @property
    def n_lost(self) -> int:
        """Requests without a reply, which the next run sends again."""
        return int(self.head["requests"]["failures"].get("unavailable", 0))


def run_stages(stages: Sequence[Stage], context: BuildContext) -> list[Done]:
    """Run the stages of a pipeline, from the first without a valid file."""
    names = [stage.name for stage in stages]
    only, until = context.options.stage, context.options.until
    for option, name in (("--stage", only), ("--until", until)):
        if name not in (None, *names):
            raise SettingsError(f"{option}: expected one of {', '.join(names)}, got {name!r}")
    done: list[Done] = []
    rows: list[Row] = []
    before = ""
    for number, stage in enumerate(stages, 1):
        path = context.options.folder / FOLDER / f"{number:02d}-{stage.name}.jsonl"
        mark = fingerprint(stage, context, before)
        found = None if stage.name == only else _read(path, mark, context)
        if found is None and only not in (None, stage.name):
            raise SettingsError(
                f"--stage {only}: the stage {stage.name!r} before it has no file for these clips, "
                "models and options; run it first, or leave --stage out to run all"
            )
        if found is None:
            logger.info("stage {} of {}, {}: {}", number, len(stages), stage.name, stage.does)
        head, made = found or _run(stage, context, kept(rows), mark=mark, path=path)
        rows = context.rows[stage.name] = made
        done.append(Done(stage, head, found is None))
        if stage.name in (only, until):
            break
        # A stage that was run again may have other rows: later stages depend on these.
        before = _digest([mark, before, made])
    return done


def fingerprint(stage: Stage, context: BuildContext, before: str) -> str:
    """Return a digest of all that affects a stage's rows, such as those of earlier stages."""
    options = context.options
    content: dict[str, object] = {
        "version": VERSION,
        "stage": stage.name,
        "before": before,
        "models": options.names(stage.roles),
        "prompts": {name: context.prompts.read(name) for name in stage.prompts},
        "options": {name: str(getattr(options, name)) for name in stage.options},
        "categories": dict(context.categories),
        "labels": [path.read_bytes().hex() for path in options.labels if "labels" in stage.options],
    }
    if not before:
        content["videos"] = [
            (video.video_id, str(video.path), video.path.stat().st_size)
            for video in context.videos
            if video.path.exists()  # no broken link
        ]
    return _digest(content)


def _run(
    stage: Stage, context: BuildContext, rows: list[Row], *, mark: str, path: Path
) -> tuple[dict[str, Any], list[Row]]:
    context.tally = Tally()
    before = context.pool.totals
    try:
        made = stage.run(context, rows)
        context.tally.check(stage.name)
    finally:
        _add_spending(path.parent, stage.name, context.pool.totals.since(before))
    reasons = Counter(str(row["dropped"]) for row in made if "dropped" in row)
    head = {
        "stage": stage.name,
        "does": stage.does,
        "fingerprint": mark,
        "n_before": len(rows),
        "n_rows": len(made),
        "n_kept": len(kept(made)),
        "dropped": dict(sorted(reasons.items())),
        "models": context.options.names(stage.roles),
        "prompts": {name: _digest(context.prompts.read(name))[:8] for name in stage.prompts},
        "requests": dict(context.tally.to_json()),
    }
    write_rows(path, [head, *made])
    return head, made


def _read(path: Path, mark: str, context: BuildContext) -> tuple[dict[str, Any], list[Row]] | None:
    """Return a stage's file if it is of the same build and complete."""
    if not path.is_file():
        return None
    try:
        head, rows = read_stage(path)
        failures = head["requests"]["failures"]
        is_same = head["fingerprint"] == mark and head["n_rows"] == len(rows)
    except (DataError, KeyError, TypeError) as error:
        logger.warning("{}: cannot be read and is rebuilt: {!r}", path, error)
        return None
    is_open = failures.get("unavailable") or (
        context.settings.ask_again and failures.get("unreadable")
    )
    return (head, rows) if is_same and not is_open else None


def stage_files(folder: Path) -> list[Path]:
    """Return the files of a benchmark's stages, in order."""
    return sorted((folder / FOLDER).glob("[0-9][0-9]-*.jsonl"))


def read_stage(path: Path) -> tuple[dict[str, Any], list[Row]]:
    """Return the head and the rows of a stage's file; :class:`DataError` if it is not one."""
    lines = read_jsonl(path)
    if not lines or "fingerprint" not in lines[0]:
        raise DataError(f"{path}: expected the file of a build's stage, got no head")
    return lines[0], lines[1:]


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as JSON lines, in one step; :class:`DataError` if they cannot be written."""
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    try:
        write_atomically(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error}") from error


def write_official(
    folder: Path, name: str, rows: Sequence[Mapping[str, Any]], *, n: int
) -> dict[str, int]:
    """Write an official file and return its number of questions; without any remove it."""
    path = folder / name
    if n:
        write_rows(path, rows)
        return {name: n}
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"{path}: cannot be removed: {error}") from error
    return {}


def _add_spending(folder: Path, stage: str, cost: Totals) -> None:
    """Append the cost of a stage in a run, however the run ended."""
    if not cost.calls:
        return
    row = {
        "stage": stage,
        "calls": cost.calls,
        "tokens": {model: list(counts) for model, counts in cost.tokens.items()},
        "usd": cost.usd,
        "prices_date": cost.prices_date,
    }
    try:
        check_is_no_link(folder / _SPENDING)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / _SPENDING).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(row)}\n")
    except (DataError, OSError) as error:
        logger.warning("{}: cannot be written: {}", folder / _SPENDING, error)


def spent(folder: Path) -> str:
    """Return the cost of all runs of a build in a sentence, except what SIGKILL cut off."""
    path = folder / _SPENDING
    try:
        rows: list[Any] = read_jsonl(path) if path.is_file() else []
        tokens = [pair for row in rows for pair in row["tokens"].values()]
        n_in, n_out = (sum(pair[k] for pair in tokens) for k in (0, 1))
        calls, costs = sum(row["calls"] for row in rows), [row["usd"] for row in rows]
        dates = sorted({row["prices_date"] for row in rows if row["prices_date"]})
        text = f"Cost of all runs: {calls:,.0f} calls, {n_in:,.0f} tokens in, {n_out:,.0f} out"
        if None in costs:
            return f"{text}; price unknown (LMMS_CAPTIONS_PRICES)"
        price = f"; ${sum(costs):,.2f} by the prices of {', '.join(dates)}"
    except (DataError, KeyError, TypeError, AttributeError, IndexError) as error:
        return f"Cost: unknown, {path} cannot be read: {error}"
    return f"{text}{price if rows else ''}"


def _digest(content: object) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.blake2b(text.encode("ascii"), digest_size=8).hexdigest()
