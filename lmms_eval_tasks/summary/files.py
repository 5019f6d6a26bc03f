"""Where a run's files are, and what to do with them."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.request import is_offline
from lmms_eval_captions.judges.protocols.asking import NO_JUDGE
from lmms_eval_captions.lmms_eval_tasks.signature import Signature
from lmms_eval_captions.lmms_eval_tasks.summary.text import WIDTH, wrapped
from lmms_eval_captions.lmms_eval_tasks.this_run import FinishedRun

_KINDS: Final = ("results", "judging", "breakdown_*", "verdicts_*", "samples_*")
_DATA: Final = "LMMS_CAPTIONS_DATA"


def where_it_is(run: FinishedRun) -> Iterator[str]:
    """The paths of a run's files: those that are there."""
    if run.folder is None:
        yield from wrapped("files", "none; give lmms-eval --output_path FOLDER --log_samples")
    else:
        there = [kind for kind in _KINDS if any(run.folder.glob(f"{run.stamp}_{kind}.json*"))]
        yield f"files: {near(run.folder)}/{run.stamp}_..."
        yield f"  {', '.join(there) or 'none: lmms-eval could not save them, see above'}"
    captions = run.document["captions"]
    if captions is not None:
        yield f"captions: {near(Path(captions))}"


def next_steps(run: FinishedRun) -> Iterator[str]:
    """Commands that go on from here."""
    document = run.document
    judged = {
        name: task for name, task in document["tasks"].items() if task["judge"] != NO_JUDGE.label
    }
    if run.folder is not None:
        folder = shlex.quote(near(run.folder))
        # Those of other people's tasks hold no questions of ours.
        logs = (run.folder / f"{run.stamp}_samples_{task}.jsonl" for task in document["tasks"])
        samples = sorted(filter(Path.is_file, logs))
        program = typed("lmms-eval-captions")
        if samples and not _is_in_part(document["tasks"]):
            yield f"next: {program} report {folder} -o report.html"
            yield f"  see whether every score is whole: {program} check {folder}"
        else:
            yield f"next: {program} check {folder}"
        looks = f"less {shlex.quote(near(samples[0]))}" if samples else "run with --log_samples"
        what = "question, verdict and reply" if judged else "caption and what was measured"
        yield f"  see each {what}: {looks}"
    if _is_in_part(document["tasks"]):
        yield "  have the rest of the questions asked, and nothing twice: the same command with"
        yield "    LMMS_CAPTIONS_PRECISION= before it; report needs them"
    if document["captions"] is not None and judged:
        judges = {task["judge"].partition(" ")[0] for task in judged.values()}
        is_smoke = any(map(is_offline, judges))
        whose = "the papers' judges" if is_smoke else "another judge"
        yield f"  have the same captions judged by {whose}:"
        data = os.environ.get(_DATA)
        # The stand-in may be set in the shell, where the judge of the paper is then not asked.
        judge = (
            ["LMMS_CAPTIONS_JUDGE=", "OPENAI_API_KEY=..."]
            if is_smoke
            else ["LMMS_CAPTIONS_JUDGE=..."]
        )
        path = shlex.quote(near(Path(document["captions"])))
        words = [
            *([f"{_DATA}={shlex.quote(data)}"] if data else []),
            *judge,
            f"{typed('lmms-eval')} --model caption_file",
            f"--model_args path={path}{_missing(judged)}",
            f"--tasks {','.join(_selected(judged))}",
            *_selection(judged),
        ]
        yield from _command(words)


def _is_in_part(tasks: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether of some task a sample of the questions was judged."""
    samples = (task.get("sampled") for task in tasks.values())
    return any(sample and sample["asked"] < sample["questions"] for sample in samples)


def typed(program: str) -> str:
    """A program of this environment as it is typed here: by its path where the shell knows none."""
    own = Path(sys.executable).with_name(program)
    return program if shutil.which(program) or not own.is_file() else shlex.quote(near(own))


def near(path: Path) -> str:
    """A path as it is typed here: below the working directory without that."""
    try:
        return os.fspath(path.resolve().relative_to(Path.cwd()))
    except (OSError, ValueError):
        return os.fspath(path)


def _selected(tasks: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The fewest tasks and groups that are all of these."""
    leaves = {name: set(task["tasks"] or [name]) for name, task in tasks.items()}
    return [
        name for name, own in leaves.items() if not any(own < others for others in leaves.values())
    ]


def _missing(tasks: Mapping[str, Mapping[str, Any]]) -> str:
    """The argument without which captions that were not there are an error."""
    for share, argument in (("dropped", "drop"), ("missing", "skip")):
        if any(task[share]["n"] for task in tasks.values()):
            return f",missing={argument}"
    return ""


def _selection(tasks: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The options that chose these videos: others have no caption."""
    fields = [Signature.parse(task["signature"] or "").fields for task in tasks.values()]
    for name in ("limit", "offset"):
        value = next((each[name] for each in fields if name in each), None)
        if value is not None:
            yield f"--{name} {value}"


def _command(words: list[str]) -> Iterator[str]:
    """A command line, broken between its words where a shell goes on reading."""
    line = "   "
    for word in words:
        if len(line) + len(word) + 3 > WIDTH:
            yield f"{line} \\"
            line = "     "
        line += f" {word}"
    yield line
