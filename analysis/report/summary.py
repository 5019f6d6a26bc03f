"""Scores, comparisons and warnings of a report, as the page reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite, isnan
from typing import Any, Final

from lmms_eval_captions.analysis.captioners import Captioner
from lmms_eval_captions.analysis.compare.comparison import Comparer
from lmms_eval_captions.analysis.compare.report import answer
from lmms_eval_captions.analysis.report.columns import LENGTHS
from lmms_eval_captions.analysis.report.sources import Sources, View, without_folders
from lmms_eval_captions.analysis.results_folder import RunResults, TaskResults
from lmms_eval_captions.analysis.tables import listed, plural
from lmms_eval_captions.judges.endpoint.request import is_offline
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.judges.protocols.asking import NO_JUDGE
from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL
from lmms_eval_captions.lmms_eval_tasks.breakdown import N_QUESTIONS
from lmms_eval_captions.lmms_eval_tasks.intervals import BESIDE, CI_HIGH, CI_LOW
from lmms_eval_captions.lmms_eval_tasks.reasons import help_against
from lmms_eval_captions.lmms_eval_tasks.signature import Share, Signature

Document = dict[str, Any]
Figure = list[float | None]
"""A value and the ends of its interval."""

TASKS: Final = "tasks"
FEW_VIDEOS: Final = 100
"""With fewer videos, intervals are so wide that captioners can hardly be told apart."""
MAX_GROUPS: Final = 20
_SCOPE: Final = {
    "limit": "scored on the first {} documents only (--limit)",
    "offset": "scored from document {} on (--offset)",
}


def view_documents(sources: Sources, missing: list[str]) -> list[Document]:
    """Return what the page shows of each task and group.

    Args:
        sources: The runs.
        missing: Collects what cannot be read.
    """
    comparers: dict[tuple[int, ...], Comparer] = {}
    return [_view_document(view, sources.captioners, comparers, missing) for view in sources.views]


def _view_document(
    view: View,
    captioners: Sequence[Captioner],
    comparers: dict[tuple[int, ...], Comparer],
    missing: list[str],
) -> Document:
    benchmark = view.benchmark
    captions = [t.captions() for v in view.verdicts if v is not None for t in v.tables]
    return {
        "name": view.name,
        "benchmark": benchmark.name,
        "headline": benchmark.headline,
        "headline_means": benchmark.headline_means,
        "has_misses": bool(benchmark.missed or benchmark.wrong),
        "tells_wrong": bool(benchmark.wrong),
        "metrics": [
            {
                "name": name, "lowest": metric.lowest, "highest": metric.highest,
                "higher_is_better": metric.higher_is_better,
            }
            for name, metric in benchmark.metrics.items()
        ],
        "scores": [None if r is None else _scores(view, r) for r in view.results],
        "signatures": [
            None if r is None or r.signature is None else str(r.signature) for r in view.results
        ],
        **_compared(view, captioners, comparers),
        "sections": list(_sections(view, missing)),
        "lengths": [
            name for name, column in LENGTHS.items()
            if any(column in of and of[column].notna().any() for of in captions)
        ],
    }  # fmt: skip


def run_documents(captioners: Sequence[Captioner]) -> list[Document]:
    """Return what was run, by which judge, and at what cost."""
    found = []
    for captioner in captioners:
        runs = {str(run.path): run for run in captioner.runs.values()}
        for path, run in runs.items():
            names = [name for name, of in captioner.runs.items() if str(of.path) == path]
            totals = run.judging.get("judging")
            totals = totals if isinstance(totals, dict) else {}
            stored, retried = totals.get("from_store"), totals.get("retried")
            judges = dict.fromkeys(_judge(run.tasks[name]) for name in names)
            found.append(
                {
                    "captioner": captioner.name,
                    "model": str(run.judging.get("model") or run.document.get("model_name") or ""),
                    "judge": ", ".join(filter(None, judges)),
                    "finished": str(run.judging.get("finished") or run.document.get("date") or ""),
                    "calls": totals.get("calls"),
                    "cached": sum(stored.values()) if isinstance(stored, dict) else None,
                    "cost": _cost(totals),
                    "retried": ", ".join(f"{n:,} {why}" for why, n in retried.items())
                    if isinstance(retried, dict)
                    else "",
                    "file": run.path.name,
                }
            )
    return found


def warnings_of(sources: Sources) -> list[str]:
    """Return what a reader must know, each warning once with whom it is about."""
    owners: dict[str, dict[str, list[str]]] = {}
    leaves = [view for view in sources.views if len(view.tasks) == 1]
    for captioner in sources.captioners:
        for run in {id(run): run for run in captioner.runs.values()}.values():
            for warning in run.warnings:
                owners.setdefault(warning, {})[captioner.name] = []
    for view in leaves:
        sides = zip(sources.captioners, view.verdicts, view.results, strict=True)
        for captioner, verdicts, results in sides:
            if verdicts is not None and results is not None:
                videos = {video for table in verdicts.tables for video in table.rows["video"]}
                for warning in _warnings(view, results, len(videos)):
                    owners.setdefault(warning, {}).setdefault(captioner.name, []).append(view.name)
    found = [*sources.missing]
    for warning, tasks_of in owners.items():
        of_each = {name: _tasks(tasks, len(leaves)) for name, tasks in tasks_of.items()}
        whom = "; ".join(f"{name} ({of})" if of else name for name, of in of_each.items())
        if len(of_each) == len(sources.captioners) and len(set(of_each.values())) == 1:
            whom = next(iter(of_each.values())) or "All runs"
        found.append(f"{whom}: {warning}.")
    return [whole(warning) for warning in found]


def _tasks(tasks: Sequence[str], n_tasks: int) -> str:
    """Return which tasks a warning is about, empty for all of a run."""
    if not tasks or len(tasks) == n_tasks:
        return ""
    return listed([*tasks[:3], f"{len(tasks) - 3} more"] if len(tasks) > 4 else tasks)


def _warnings(view: View, results: TaskResults, n_videos: int) -> Iterator[str]:
    defaults = view.benchmark.judge_defaults
    published = defaults.get("as_published")
    paper = str(defaults.get("model", ""))
    papers = (paper, published.get("model") if isinstance(published, dict) else paper)
    for judge in _judge(results).split(" + "):
        name = judge.partition(" ")[0]
        if is_offline(name):
            yield f"judged by {judge}, the offline stand-in: a smoke test, no score"
        elif paper and name and name not in (*papers, NO_JUDGE.label.partition(" ")[0]):
            yield f"judged by {judge}; the paper's judge is {paper}, so these are not its numbers"
    if isnan(results.scores.get(view.benchmark.headline, 0.0)):
        yield f"no score (nan): {help_against(results.unscored_reasons)}"
    elif results.unscored_reasons and (share := _share(results, "unscored")):
        yield f"{share['n']:,} of {share['of']:,} questions are unscored, and in no number"
    yield from results.doubts
    task = view.benchmark.tasks.get(view.name)
    if task is not None and task.note_level == "WARNING":
        yield task.note
    own = results.measured.get(view.benchmark.headline)
    if own is not None and own.note:
        yield own.note if own.note.startswith("no interval") else f"interval: {own.note}"
    if n_videos < FEW_VIDEOS:
        yield f"{plural(n_videos, 'video')} only: small differences cannot be seen"
    fields = (results.signature or Signature()).fields
    yield from (words.format(fields[name]) for name, words in _SCOPE.items() if name in fields)
    empty = Share.parse(fields.get("empty", ""))
    if empty is not None and empty.n:
        yield f"{empty} captions are empty, and count as captions that say nothing"


def _judge(results: TaskResults) -> str:
    named = results.judging.get("judge")
    return str(named or (results.signature or Signature()).fields.get("judge", ""))


def _scores(view: View, results: TaskResults) -> Document:
    """Return every metric with its interval, and the captions and questions behind it."""
    measured = results.measured
    return {
        "metrics": {
            name: {
                "figure": [of.value, of.low, of.high],
                "deviation": of.deviation,
                "judge_share": of.judge_share,
            }
            for name in view.benchmark.metrics
            if (of := measured.get(name)) is not None
        },
        "unscored": _share(results, "unscored"),
        "empty": _share(results, "empty"),
        "missing": _share(results, "missing"),
        "dropped": _share(results, "dropped"),
        "reasons": {whole(reason): n for reason, n in results.unscored_reasons.items()},
    }


def _share(results: TaskResults, name: str) -> dict[str, int] | None:
    counted = results.judging.get(name)
    if isinstance(counted, dict) and {"n", "of"} <= counted.keys():
        return {"n": counted["n"], "of": counted["of"]}
    share = getattr(results.signature, name, None) if name == "unscored" else None
    return None if share is None else {"n": share.n, "of": share.of}


def _compared(
    view: View, captioners: Sequence[Captioner], comparers: dict[tuple[int, ...], Comparer]
) -> Document:
    """Return the ranking and differences, or why there are none."""
    nothing: Document = {"answer": [], "ranking": {}, "differences": []}
    places = tuple(place for place, of in enumerate(view.verdicts) if of is not None)
    if len(places) < 2:
        return nothing
    chosen = [captioners[place] for place in places]
    if places not in comparers:
        comparers[places] = Comparer(chosen)
    try:
        compared = comparers[places].compare(view.name)
    except DataError as error:
        return {**nothing, "answer": [whole(f"Not compared: {without_folders(str(error))}.")]}
    rows = [*compared.overall, *(r for rows in compared.sections.values() for r in rows)]
    left_out = compared.counts.left_out()
    words = [
        *answer(compared, [captioner.name for captioner in chosen]),
        f"Compared on {compared.counts.n_questions:,} questions about "
        f"{compared.counts.n_videos:,} videos that all have a verdict on"
        f"{f'; left out: {left_out}' if left_out else ''}. Intervals and p-values are simultaneous "
        f"over all tasks of {view.benchmark.name}, their groups and "
        f"{plural(len(chosen), 'captioner')}.",
    ]
    return {
        "answer": [whole(sentence) for sentence in words],
        "ranking": {
            str(places[of.captioner]): [of.best, of.worst] for of in compared.ranking
        },
        "differences": [
            {
                "section": row.cell.section, "group": whole(row.cell.group),
                "metric": row.cell.metric, "captioner": places[b], "baseline": places[a],
                "figure": [contrast.difference.difference, *(contrast.interval or (None, None))],
                "p": contrast.p_value, "outcome": contrast.outcome,
            }
            for row in rows
            for (a, b), contrast in row.contrasts.items()
            if isfinite(contrast.difference.difference)
        ],
    }  # fmt: skip


def _sections(view: View, missing: list[str]) -> Iterator[Document]:
    """Yield the sections of the breakdown, with each group's figures by captioner and metric."""
    breakdowns = [{} if r is None else _breakdown(r, view.name, missing) for r in view.runs]
    if len(view.tasks) > 1:
        figures = [
            {
                task: _figures(_breakdown(run, task, missing).get(ALL[0], {}).get(ALL[1], {}))
                for task in view.tasks
                if run is not None and task in run.tasks
            }
            for run in view.runs
        ]
        yield _section(view, TASKS, view.tasks, figures, [{} for _ in figures])
    for name in dict.fromkeys(name for of in breakdowns for name in of if name != ALL[0]):
        sides = [of.get(name, {}) for of in breakdowns]
        groups = list(dict.fromkeys(group for of in sides for group in of))
        if len(groups) > 1:
            figures = [{group: _figures(of[group]) for group in of} for of in sides]
            counts = [{group: int(of[group][N_QUESTIONS]) for group in of} for of in sides]
            yield _section(view, name, groups, figures, counts)


def _section(
    view: View,
    name: str,
    groups: Sequence[str],
    figures: Sequence[Mapping[str, Mapping[str, Figure]]],
    counts: Sequence[Mapping[str, int]],
) -> Document:
    shown = groups[:MAX_GROUPS]
    return {
        "name": name,
        "groups": list(map(whole, shown)),
        "n_more": len(groups) - len(shown),
        "figures": {
            metric: [[of.get(group, {}).get(metric) for group in shown] for of in figures]
            for metric in view.benchmark.metrics
        },
        "n_questions": [max((of.get(group, 0) for of in counts), default=0) for group in shown],
    }


def _breakdown(run: RunResults, name: str, missing: list[str]) -> Mapping[str, Any]:
    """Return the sections of a breakdown file."""
    try:
        document = run.breakdown(name) or {}
    except DataError as error:
        missing.append(without_folders(str(error)))
        return {}
    return {
        section: groups
        for section, groups in document.items()
        if isinstance(groups, dict)
        and all(isinstance(of, dict) and N_QUESTIONS in of for of in groups.values())
    }


def _figures(of: Mapping[str, Any]) -> dict[str, Figure]:
    return {
        name: [value, of.get(f"{name}_{CI_LOW}"), of.get(f"{name}_{CI_HIGH}")]
        for name, value in of.items()
        if not name.endswith(BESIDE) and isinstance(value, int | float) and isfinite(value)
    }


def _cost(totals: Mapping[str, Any]) -> str:
    if "usd" not in totals:
        return ""
    if totals["usd"] is None:
        by_model = totals.get("usd_by_model")
        costs = by_model.values() if isinstance(by_model, dict) else ()
        known = [usd for usd in costs if isinstance(usd, int | float)]
        return f"${sum(known):,.2f} and more" if known else "price unknown"
    return f"${totals['usd']:,.2f}"
