"""The head of the page: every score with how sure it is, what it cost, what must be known of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import Any, Final

from lmms_eval_captions.analysis.report.shape import measured_of
from lmms_eval_captions.analysis.report.sources import Sources, View
from lmms_eval_captions.analysis.report.tables import (
    NOTHING,
    Cell,
    Column,
    Table,
    cells,
    plural,
)
from lmms_eval_captions.analysis.verdicts.captioners import Captioner
from lmms_eval_captions.analysis.verdicts.verdicts import Verdicts
from lmms_eval_captions.judges.endpoint.request import is_offline
from lmms_eval_captions.judges.protocols.asking import NO_JUDGE
from lmms_eval_captions.lmms_eval_tasks.measured import Measured
from lmms_eval_captions.lmms_eval_tasks.reasons import help_against
from lmms_eval_captions.lmms_eval_tasks.results_folder import RunResults, TaskResults
from lmms_eval_captions.lmms_eval_tasks.signature import Share, Signature

FEW_VIDEOS: Final = 100
"""Fewer videos leave intervals so wide that captioners can hardly be told apart."""
_SCOPE: Final = {
    "limit": "the first {} documents (--limit)",
    "offset": "from document {} (--offset)",
}


def score_table(sources: Sources) -> Table:
    """A row for each task or group and captioner: the headline first, then the other metrics."""
    several = len(sources.captioners) > 1
    columns = [
        Column("task"),
        *([Column("captioner")] if several else []),
        Column("score [95%]", is_number=True),
        Column("metric"),
        Column("deviation of judge runs", is_number=True),
        Column("unscored", is_number=True),
        Column("empty", is_number=True),
        Column("no caption", is_number=True),
        Column("other metrics"),
    ]
    rows = []
    for view in sources.views:
        for captioner, run in zip(sources.captioners, view.runs, strict=True):
            # A group may be one of tasks alone, without numbers of its own.
            if run is not None and view.benchmark.headline in run.tasks[view.name].scores:
                name = [Cell(captioner.name)] if several else []
                rows.append([Cell(view.name), *name, *_numbers(view, run)])
    notes = [
        "[95%]: interval over videos.",
        "Deviation of judge runs: standard deviation, and their part of the interval's variance.",
        "Unscored: questions without a verdict that could be read, of all judge runs.",
    ]
    return Table("Every score", columns, rows, notes)


def run_table(sources: Sources) -> Table:
    """What was run, when, and what the judge was asked for it."""
    columns = [
        Column("captioner"), Column("model"), Column("judge"), Column("finished"),
        Column("judge calls", is_number=True), Column("replies from the store", is_number=True),
        Column("cost", is_number=True), Column("results"),
    ]  # fmt: skip
    rows = [
        cells(captioner.name, *_of_run(run, names))
        for captioner in sources.captioners
        for run, names in runs_of(captioner)
    ]
    return Table("Runs", columns, rows)


def signature_table(sources: Sources) -> Table:
    """Everything that moves a score, for who repeats it."""
    columns = [Column("task"), Column("captioner"), Column("signature")]
    rows = [
        cells(view.name, captioner.name, str(results.signature))
        for view in sources.views
        for captioner, results in zip(sources.captioners, view.results, strict=True)
        if results is not None and results.signature is not None
    ]
    return Table("Signatures", columns, rows)


def warnings_of(sources: Sources) -> list[str]:
    """What a reader of the scores must see, each once with the tasks that it is true of."""
    told: dict[str, dict[str, list[str]]] = {}
    leaves = [view for view in sources.views if len(view.tasks) == 1]  # a group says it by these
    for captioner in sources.captioners:
        for run, _ in runs_of(captioner):
            for warning in run.warnings:
                told.setdefault(warning, {})[captioner.name] = []
    for view in leaves:
        for name, warning in _warnings(sources.captioners, view):
            told.setdefault(warning, {}).setdefault(name, []).append(view.name)
    several = len(sources.captioners) > 1
    return [
        *sources.missing,
        *(
            f"{'; '.join(_whom(name, tasks, leaves, several) for name, tasks in of.items())}: "
            f"{warning}."
            for warning, of in told.items()
        ),
    ]


def _whom(name: str, tasks: Sequence[str], leaves: Sequence[View], several: bool) -> str:
    """What a warning is about: such as ``demo: vdc_camera, vdc_short``."""
    is_all = not tasks or len(tasks) == len(leaves)
    whom = "All tasks" if is_all else _listed(tasks)
    return whom if not several else name if is_all else f"{name} ({whom})"


def _numbers(view: View, run: RunResults) -> Iterator[Cell]:
    """The cells of a task behind its name."""
    results = run.tasks[view.name]
    measured = measured_of(view, run, view.name)
    headline = view.benchmark.headline
    own = measured.get(headline)
    others = [name for name in view.benchmark.metrics if name != headline]
    yield Cell("nan", "worse") if own is None else Cell(str(own), "main")
    yield Cell(headline)
    yield Cell((own.judge_part if own else "") or NOTHING)
    signature = results.signature
    yield Cell(_share(results, "unscored") or _told(signature.unscored if signature else None))
    yield Cell(_share(results, "empty") or NOTHING)
    yield Cell(_no_caption(results))
    shown = {name.partition(",")[0] for name in results.metrics}
    yield Cell(
        ", ".join(
            f"{name} {_other(results, measured.get(name), name)}"
            for name in others
            if name in shown
        )
    )


def _other(results: TaskResults, measured: Measured | None, name: str) -> str:
    if measured is not None:
        return str(measured)
    unavailable = results.signature.unavailable if results.signature else frozenset()
    return "N/A" if name in unavailable else "nan"


def _told(share: Share | None) -> str:
    return f"{share.n:,}/{share.of:,}" if share else NOTHING


def _share(results: TaskResults, name: str) -> str:
    """Such as ``3/1,200``; empty where nothing is said of it."""
    counted = results.judging.get(name)
    return f"{counted['n']:,}/{counted['of']:,}" if isinstance(counted, dict) else ""


def _no_caption(results: TaskResults) -> str:
    """Captions that are not there: counted as ones that say nothing, or left out."""
    words = []
    for name, what in (("missing", "missing"), ("dropped", "left out")):
        counted = results.judging.get(name)
        if isinstance(counted, dict) and counted["n"]:
            words.append(f"{counted['n']:,} {what}")
    return ", ".join(words) or NOTHING


def runs_of(captioner: Captioner) -> list[tuple[RunResults, list[str]]]:
    """The runs of a captioner with what is shown of each."""
    found: dict[str, tuple[RunResults, list[str]]] = {}
    for name, run in captioner.runs.items():
        found.setdefault(str(run.path), (run, []))[1].append(name)
    return list(found.values())


def _of_run(run: RunResults, names: Sequence[str]) -> Iterator[str]:
    document = run.judging
    totals = document.get("judging")
    totals = totals if isinstance(totals, dict) else {}
    stored = totals.get("from_store")
    judges = dict.fromkeys(
        str(run.tasks[name].judging.get("judge") or _judge(run.tasks[name])) for name in names
    )
    yield str(document.get("model") or run.document.get("model_name") or NOTHING)
    yield ", ".join(judges)
    yield str(document.get("finished") or run.document.get("date") or NOTHING)
    yield f"{totals['calls']:,}" if "calls" in totals else NOTHING
    yield f"{sum(stored.values()):,}" if isinstance(stored, dict) else NOTHING
    yield _cost(totals)
    yield run.path.name


def _cost(totals: Mapping[str, Any]) -> str:
    if "usd" not in totals:
        return NOTHING
    if totals["usd"] is None:
        of_models = totals.get("usd_by_model")
        costs = of_models.values() if isinstance(of_models, dict) else ()
        known = [usd for usd in costs if isinstance(usd, int | float)]
        return f"${sum(known):,.2f} and more" if known else "price unknown"
    return f"${totals['usd']:,.2f}"


def _judge(results: TaskResults) -> str:
    return results.signature.fields.get("judge", NOTHING) if results.signature else NOTHING


def _warnings(captioners: Sequence[Captioner], view: View) -> Iterator[tuple[str, str]]:
    """Captioner and what must be known of a task of it."""
    for captioner, verdicts, results in zip(captioners, view.verdicts, view.results, strict=True):
        if verdicts is None or results is None:
            continue
        of_judge = _of_judge(view, verdicts)
        for warning in (*of_judge, *_of_score(view, results), *_of_scope(verdicts, results)):
            yield captioner.name, warning


def _of_judge(view: View, verdicts: Verdicts) -> Iterator[str]:
    judges = {caption.judge for task in verdicts.tasks for caption in task.captions}
    judges.discard(NO_JUDGE.label)
    papers = str(view.benchmark.judge_defaults.get("model", ""))
    for judge in sorted(judges):
        name = judge.partition(" ")[0]
        if is_offline(name):
            yield f"judged by {judge}: it shows that the pipeline works, and is no score"
        elif papers and name != papers:
            yield f"judged by {judge}, and the paper's judge is {papers}: not the paper's numbers"


def _of_score(view: View, results: TaskResults) -> Iterator[str]:
    if isnan(results.scores.get(view.benchmark.headline, 0.0)):
        yield f"there is no score (nan): {help_against(results.unscored_reasons)}"
    elif results.unscored_reasons and (unscored := _share(results, "unscored")):
        yield f"{unscored} questions are unscored, and stand in no number"
    yield from results.doubts
    task = view.benchmark.tasks.get(view.name)
    if task is not None and task.note_level == "WARNING":
        yield task.note
    own = results.measured.get(view.benchmark.headline)
    if own is not None and own.note:
        of = "" if own.note.startswith("no interval") else "interval of the score: "
        yield f"{of}{own.note}"


def _of_scope(verdicts: Verdicts, results: TaskResults) -> Iterator[str]:
    n_videos = len({caption.video_id for task in verdicts.tasks for caption in task.captions})
    if n_videos < FEW_VIDEOS:
        yield f"{plural(n_videos, 'video')}: intervals are wide, and small differences are not seen"
    fields = (results.signature or Signature()).fields
    for name, words in _SCOPE.items():
        if name in fields:
            yield f"scored on {words.format(fields[name])} alone"
    empty = Share.parse(fields.get("empty", ""))
    if empty is not None and empty.n:
        yield f"{empty} captions are empty, and count as ones that say nothing"


def _listed(names: Sequence[str]) -> str:
    others = f" and {len(names) - 3} more" if len(names) > 4 else ""
    return ", ".join(names[:3] if others else names) + others
