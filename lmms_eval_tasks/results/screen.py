"""Summary of a run, printed when its process ends: after lmms-eval's tables and every log line."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final, TextIO

from lmms_eval_captions.judges.endpoint.progress import cost_words
from lmms_eval_captions.judges.protocols.asking import NO_JUDGE
from lmms_eval_captions.lmms_eval_tasks.judging.reasons import why_unscored
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN, FinishedRun
from lmms_eval_captions.lmms_eval_tasks.results.intervals import Measured
from lmms_eval_captions.lmms_eval_tasks.results.text_table import text_table
from lmms_eval_captions.lmms_eval_tasks.signature import Signature

_KINDS: Final = ("results", "judging", "breakdown_*", "verdicts_*", "samples_*")
_MOST_WARNINGS: Final = 6
"""Lines of warnings; the judging file holds all."""
_GAP: Final = 2

Tasks = Mapping[str, Mapping[str, Any]]
"""Tasks and groups of a judging document by name."""


def print_runs() -> None:
    """Print the summary of every finished run of this process, and errors that ended others."""
    # The reader may be gone, as behind `| head`.
    with suppress(OSError, ValueError):
        for run in THIS_RUN.finished:
            _write(sys.stdout, f"{screen_of(run)}\n")
        for error in dict.fromkeys(THIS_RUN.errors):
            _write(sys.stderr, f"{error}\n")


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:
        return
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()


def screen_of(run: FinishedRun, width: int | None = None) -> str:
    """Return the summary of a run in ``width`` columns (default: the terminal's)."""
    document = run.document
    if document.get("predict_only"):
        where = "" if run.folder is None else f" --model_args path={near(run.folder)}"
        return f"Captions are written, not judged. Judge them: --model caption_file{where}"
    width = max(60, min(width or shutil.get_terminal_size().columns, 120))
    tasks = document["tasks"]
    warnings = list(_warnings(document, width))
    if len(warnings) > _MOST_WARNINGS:
        n_more = len(warnings) - _MOST_WARNINGS
        more = f"  {n_more} more lines of warnings and doubts are in the judging file"
        warnings = [*warnings[:_MOST_WARNINGS], more]
    blocks = [
        [""],
        _title(document, width),
        table_lines(tasks, width),
        _notes(tasks, width),
        [""],
        _judging(document, width),
        _unscored(tasks, width),
        warnings,
        _files(run),
        _next_steps(run),
    ]
    return "\n".join(chain.from_iterable(blocks))


def _wrapped(label: str, text: str, width: int) -> list[str]:
    """Return a text behind its label, broken between words, later lines indented."""
    head = f"{label}: " if label else ""
    return textwrap.wrap(
        " ".join(text.split()), width, initial_indent=head, subsequent_indent="  ",
        break_on_hyphens=False, break_long_words=False,
    )  # fmt: skip


def _title(document: Mapping[str, Any], width: int) -> list[str]:
    judges = dict.fromkeys(task["judge"] for task in document["tasks"].values())
    judges.pop(NO_JUDGE.label, None)
    how = f"judged by {', '.join(judges)}" if judges else "measured without a judge"
    return _wrapped("", f"Captions of {_captioner(document)}, {how}", width)


def _captioner(document: Mapping[str, Any]) -> str:
    """Return the name of the caption file, class or checkpoint, else the model's."""
    given = document.get("model_args") or {}
    if not isinstance(given, dict):
        given = dict(pair.partition("=")[::2] for pair in str(given).split(","))
    named = given.get("path") or given.get("captioner") or given.get("pretrained")
    return Path(str(named)).name if named else str(document["model"])


def table_lines(tasks: Tasks, width: int) -> list[str]:
    """Return a line for each task and group with a metric: the headline, then others that fit."""
    shown = {name: task for name, task in tasks.items() if task["metrics"]}
    groups = [task["tasks"] for task in shown.values()]
    judges = [task["judge"] for task in shown.values()]
    columns = {
        "task": [
            " " * (0 if task["tasks"] else 2 * sum(name in group for group in groups)) + name
            for name, task in shown.items()
        ],
        "score [95% CI]": [_value(task, _headline(task)) for task in shown.values()],
        "others": [],
        "judge runs": [_measured(task).judge_part for task in shown.values()],
    }
    for share in ("unscored", "empty", "missing", "dropped"):
        counts = [task[share] for task in shown.values()]
        if share == "unscored" or any(count["n"] for count in counts):
            columns[share] = [f"{count['n']:,}/{count['of']:,}" for count in counts]
    if len(set(judges)) > 1:  # else the title names it
        columns["judge"] = [judge.partition(" ")[0].rpartition("/")[2][:20] for judge in judges]
    filled = [(name, *cells) for name, cells in columns.items() if any(cells)]
    room = width - sum(max(map(len, cells)) + _GAP for cells in filled)
    columns["others"] = [_others(task, room) for task in shown.values()]
    table = [(name, *cells) for name, cells in columns.items() if any(cells)]
    return text_table([*zip(*table, strict=True)], n_left=3 if any(columns["others"]) else 2)


def _headline(task: Mapping[str, Any]) -> str:
    metrics: list[str] = list(task["metrics"])
    return task["headline"] if task["headline"] in metrics else metrics[0]


def _measured(task: Mapping[str, Any]) -> Measured:
    return Measured.read(task["metrics"][_headline(task)])


def _others(task: Mapping[str, Any], room: int) -> str:
    """Return the other metrics, as many as fit."""
    texts = [_value(task, name) for name in task["metrics"] if name != _headline(task)]
    while texts and len("  ".join(texts)) > room:
        texts.pop()
    return "  ".join(texts)


def _value(task: Mapping[str, Any], name: str) -> str:
    """Return a metric: ``N/A`` if it cannot be computed here, ``nan`` without a score."""
    measured = Measured.read(task["metrics"][name])
    if measured.value is None:
        is_unavailable = name in Signature.parse(task["signature"] or "").unavailable
        return f"{name} {'N/A' if is_unavailable else 'nan'}"
    return f"{name} {measured}" if name == _headline(task) else f"{name} {measured.value:.2f}"


def _notes(tasks: Tasks, width: int) -> Iterator[str]:
    """Explain headlines and intervals, each once."""
    meanings = {task["headline"]: task["headline_means"] for task in tasks.values()}
    if len(meanings) == 1:
        for name, meaning in meanings.items():
            yield from _wrapped(name, meaning, width) if meaning else ()
    by_note: dict[str, list[str]] = {}
    for name, task in tasks.items():
        if task["metrics"] and (note := _measured(task).note):
            by_note.setdefault(note, []).append(name)
    for note, names in by_note.items():
        yield from _wrapped(_first(names), note, width)


def _first(names: Sequence[str]) -> str:
    """Return the first of some tasks, and how many more there are."""
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


def _judging(document: Mapping[str, Any], width: int) -> list[str]:
    """Return calls, stored replies, failed attempts, time, tokens and cost."""
    totals = document["judging"]
    n_stored = sum(totals["from_store"].values())
    retried = Counter(totals["retried"])
    parts = [f"{totals['calls']:,} calls, {n_stored:,} replies from the store"]
    if retried:
        causes = ", ".join(f"{n:,} x {cause}" for cause, n in retried.most_common())
        parts.append(f"{retried.total():,} attempts failed ({causes})")
    parts.append(f"{totals['seconds']:,.0f} s, the whole run {document['seconds']:,.0f} s")
    tokens = {model: counts for model, counts in totals["tokens"].items() if any(counts)}
    for name, (n_input, n_output) in tokens.items():
        n_cached = totals["cached_tokens"].get(name, 0)
        cached = f" ({n_cached / n_input:.1%} cached by the endpoint)" if n_cached else ""
        parts.append(f"{name} {n_input:,} tokens in{cached}, {n_output:,} out")
    if tokens:
        parts.append(cost_words(totals["usd_by_model"], totals["prices_date"]))
    return _wrapped("judging", "; ".join(parts), width)


def _unscored(tasks: Tasks, width: int) -> list[str]:
    """Return why questions are unscored, and what helps."""
    reasons, kinds = Counter[str](), Counter[Any]()
    for task in tasks.values():
        if not task["tasks"]:
            reasons.update(task["unscored"]["reasons"])
            kinds.update(task["unscored"].get("reasons_by_kind", {}))
    return _wrapped("unscored", why_unscored(reasons, kinds), width) if reasons else []


def _warnings(document: Mapping[str, Any], width: int) -> Iterator[str]:
    """Warnings of the run, and doubts about its judges."""
    for warning in document["warnings"]:
        yield from _wrapped("warning", warning, width)
    # Doubts about several tasks differ in figures: those of the first stand for all.
    doubts: dict[str, tuple[str, list[str]]] = {}
    for name, task in document["tasks"].items():
        for doubt in task["doubts"]:
            doubts.setdefault(re.sub(r"\d+", "#", doubt), (doubt, []))[1].append(name)
    for doubt, names in doubts.values():
        yield from _wrapped(f"doubt about {_first(names)}", doubt, width)


def _files(run: FinishedRun) -> Iterator[str]:
    if run.folder is None:
        yield "files: none; give -o FOLDER (lmms-eval: --output_path FOLDER --log_samples)"
    else:
        kinds = [kind for kind in _KINDS if any(run.folder.glob(f"{run.stamp}_{kind}.*"))]
        found = ", ".join(kinds) or "none: lmms-eval could not save them, see above"
        yield f"files: {near(run.folder)}/{run.stamp}_...: {found}"
    captions = run.document["captions"]
    if captions is not None:
        yield f"captions: {near(Path(captions))}"


def _next_steps(run: FinishedRun) -> Iterator[str]:
    """Commands that are useful now; none of them asks a judge."""
    if run.folder is None:
        return
    folder, others = shlex.quote(near(run.folder)), list(map(shlex.quote, _comparable(run)))
    has_samples = any(run.folder.glob(f"{run.stamp}_samples_*.jsonl"))
    lines = [
        *([f"compare {' '.join(others)} {folder}"] if others else []),
        *([f"report {' '.join([*others, folder])} -o report.html"] if has_samples else []),
        f"check {folder}",
    ]
    for label, line in zip(("next: ", *["      "] * 2), lines, strict=False):
        yield f"{label}{_typed('lmms-eval-captions')} {line}"


def _comparable(run: FinishedRun) -> list[str]:
    """Return up to three folders next to this one with a task of it, as they are typed here."""
    found: set[Path] = set()
    for path in run.folder.parent.glob("*/*_judging.json") if run.folder else ():
        with suppress(OSError, ValueError, TypeError, LookupError):
            document: Any = json.loads(path.read_bytes())
            if path.parent != run.folder and set(document["tasks"]) & set(run.document["tasks"]):
                found.add(path.parent)
    return sorted(map(near, found))[:3]


def _typed(program: str) -> str:
    """Return a program of this environment as it is typed: by its path if not on the PATH."""
    own = Path(sys.executable).with_name(program)
    return program if shutil.which(program) or not own.is_file() else shlex.quote(near(own))


def near(path: Path) -> str:
    """Return a path as it is typed in the working directory."""
    try:
        return os.fspath(path.resolve().relative_to(Path.cwd()))
    except (OSError, ValueError):
        return os.fspath(path)
