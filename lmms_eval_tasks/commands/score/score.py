"""From input shards to scores, lists of clips and a summary."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.files import write_atomically
from lmms_eval_captions.judges.protocols.prompt import Prompts
from lmms_eval_captions.judges.settings import JudgeSettings, read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.commands.score.counted import counted
from lmms_eval_captions.lmms_eval_tasks.commands.score.outputs import (
    SUMMARY_FILE,
    require_ours,
    without_ours,
)
from lmms_eval_captions.lmms_eval_tasks.commands.score.shards import (
    Failure,
    ScoreFile,
    Shard,
    find_shards,
    is_done,
    open_shard,
    score_files,
)
from lmms_eval_captions.lmms_eval_tasks.commands.score.spec import Captioning, ScoreSpec
from lmms_eval_captions.lmms_eval_tasks.commands.score.summary import (
    KEPT_FILE,
    WORST_FILE,
    Summary,
    summarise,
    words_of,
)
from lmms_eval_captions.lmms_eval_tasks.folder_lock import locked
from lmms_eval_captions.lmms_eval_tasks.scorer.protocols import protocol_of
from lmms_eval_captions.model_wrappers.caption_clips import captioner_class

if TYPE_CHECKING:
    from collections.abc import Mapping

EngineName = Literal["local", "ray"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the command was called with."""

    inputs: Sequence[str]
    folder: Path
    protocol: str
    names: Mapping[str, str]
    videos: Path | None
    captioner: str | None
    captioner_arguments: str
    prompt: str | None
    worst: float
    keep: float | None
    engine: EngineName
    address: str | None
    n_actors: int | None
    n_caption_actors: int
    n_gpus: float


def score(options: Options) -> int:
    """Score what is not scored yet, and sum all of it up.

    Returns:
        Exit status: 0, or 1 where a shard failed or too much is unscored.

    Raises:
        CaptionsError: If nothing can be scored, or the judge is asked nothing more.
    """
    settings = read_judge_settings()
    spec = ScoreSpec.of_settings(
        options.protocol,
        settings,
        names=options.names,
        videos=options.videos,
        captioning=_captioning(options, settings),
    )
    _check(options, spec)
    files_of = _score_files(options)
    with locked(options.folder, named=options.folder, doing="scores", option="--out"):
        shards, failures = _opened(files_of, spec)
        again = settings.ask_again
        open_ones = [shard for shard in shards if not is_done(shard, ask_again=again)]
        _say(_plan(shards, open_ones, failures))
        for failure in failures:
            _say(failure.why)
        if open_ones:
            failures += _scored(open_ones, spec, options)
        failed = {failure.path for failure in failures}
        files = [shard.scores for shard in shards if shard.path not in failed]
        if not files:
            raise DataError(
                f"no file of {len(files_of):,} could be scored; the first: {failures[0].why}"
            )
        summary = summarise(
            files,
            spec,
            options.folder,
            worst=options.worst,
            keep=options.keep,
            max_unscored=settings.max_unscored,
        )
        _put(summary, failures, options.folder)
    sys.stdout.write("\n".join(words_of(summary)) + "\n")
    for failure in failures:
        sys.stdout.write(f"not scored: {failure.why}\n")
    sys.stdout.write(f"scores of each clip: {options.folder / 'scores'}\n")
    is_short = summary.n_rows > 0 and summary.totals[summary.headline] is None
    return 1 if failures or is_short else 0


def _check(options: Options, spec: ScoreSpec) -> None:
    """Raise where arguments do not go together, before anything is read.

    Raises:
        SettingsError: If they do not, or a name is not known.
    """
    spec.protocol.task  # noqa: B018 - raises where there is none
    if options.engine != "ray" and (options.address or options.n_actors):
        raise SettingsError("--engine: expected ray with --address or --actors, got local")
    if options.captioner is None and options.n_gpus:
        raise SettingsError("--captioner: expected one for --gpus, got none")
    if options.captioner is not None and ":" not in options.captioner:
        captioner_class(options.captioner)


def _captioning(options: Options, settings: JudgeSettings) -> Captioning | None:
    """How captions are written that are not there.

    Raises:
        SettingsError: If there is no captioner for the arguments that are there.
    """
    if options.captioner is None:
        if options.captioner_arguments or options.prompt:
            raise SettingsError("--captioner: expected one for --captioner-args or --prompt")
        return None
    prompt = options.prompt
    if prompt is None:
        file, _, key = protocol_of(options.protocol).task.caption_prompt.partition(".")
        prompt = Prompts(settings.prompts).text(file, key)
    return Captioning(
        captioner=options.captioner, arguments=options.captioner_arguments, prompt=prompt
    )


def _score_files(options: Options) -> dict[Path, Path]:
    """The files to score, each with where its scores go.

    Raises:
        SettingsError: If there is none, or a file that is not ours would be written over.
    """
    require_ours(options.folder)
    found = dict.fromkeys(path for each in options.inputs for path in find_shards(each))
    paths = without_ours(list(found), options.folder)
    if not paths:
        raise SettingsError("--in: expected files to score, got those that this command wrote")
    files = score_files(paths, options.folder)
    require_ours(options.folder, files.values())
    return files


def _opened(files: Mapping[Path, Path], spec: ScoreSpec) -> tuple[list[Shard], list[Failure]]:
    shards: list[Shard] = []
    failures: list[Failure] = []
    for path, scores in files.items():
        try:
            shards.append(open_shard(path, scores, spec))
        except DataError as error:
            failures.append(Failure(path, str(error)))
    return shards, failures


def _scored(shards: Sequence[Shard], spec: ScoreSpec, options: Options) -> list[Failure]:
    """Score shards by the engine that was chosen; those that failed."""

    def on_done(file: ScoreFile) -> None:
        words = f"{counted(file.n_rows - file.n_unasked, 'row')} scored"
        if file.n_unasked:
            words += f", {file.n_unasked:,} could not be asked about"
        _say(f"{file.shard.path}: {words}")

    if options.engine == "ray":
        from lmms_eval_captions.lmms_eval_tasks.commands.score.on_ray import Cluster, score_on_ray

        where = Cluster(
            address=options.address,
            n_actors=options.n_actors,
            n_caption_actors=options.n_caption_actors,
            n_gpus=options.n_gpus,
        )
        return score_on_ray(shards, spec, on_done, where)
    from lmms_eval_captions.lmms_eval_tasks.commands.score.local_engine import score_here

    return score_here(shards, spec, on_done)


def _plan(shards: Sequence[Shard], todo: Sequence[Shard], failures: Sequence[Failure]) -> str:
    n_rows, n_todo = (sum(shard.n_rows for shard in each) for each in (shards, todo))
    words = f"{counted(n_rows, 'row')} in {counted(len(shards), 'file')}"
    if len(todo) < len(shards):
        words += (
            f", {n_todo:,} of them in {counted(len(todo), 'file')} to score, the others are scored"
        )
    return words + (f"; {counted(len(failures), 'file')} cannot be scored" if failures else "")


def _put(summary: Summary, failures: Sequence[Failure], folder: Path) -> None:
    """Write the summary; lists of an earlier run that has none in this one go.

    Raises:
        DataError: If it cannot be written.
    """
    path = folder / SUMMARY_FILE
    document = {
        **summary.as_json(),
        "failed": [{"file": str(each.path), "why": each.why} for each in failures],
    }
    try:
        for name, listed in ((WORST_FILE, summary.worst), (KEPT_FILE, summary.kept)):
            if listed is None:
                (folder / name).unlink(missing_ok=True)
        write_atomically(path, json.dumps(document, indent=1).encode("utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error}; make room, and run again") from error


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()
