"""Scores, comparisons and warnings of a report, as the page reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from math import isfinite, isnan
from typing import Any, Final

from lmms_eval_captions.analysis.captioners import Captioner
from lmms_eval_captions.analysis.compare.comparison import TASKS, Comparer, Document
from lmms_eval_captions.analysis.compare.report import answer
from lmms_eval_captions.analysis.report.runs import View, without_folders
from lmms_eval_captions.analysis.results_folder import RunResults, TaskResults, warnings_in
from lmms_eval_captions.analysis.tables import listed, plural
from lmms_eval_captions.judges.endpoint.request import is_offline
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols.asking import NO_JUDGE
from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL
from lmms_eval_captions.lmms_eval_tasks.results.breakdown import N_QUESTIONS
from lmms_eval_captions.lmms_eval_tasks.results.intervals import CI_HIGH, CI_LOW
from lmms_eval_captions.lmms_eval_tasks.signature import Share, Signature

FEW_VIDEOS: Final = 100
"""With fewer videos, intervals are so wide that captioners can hardly be told apart."""
MAX_GROUPS: Final = 20
_OF_METRICS: Final = ("lowest", "highest", "higher_is_better")
_SCOPE: Final = {
    "limit": "scored on the first {} documents only (--limit)",
    "offset": "scored from document {} on (--offset)",
}


def view_documents(
    views: Sequence[View], captioners: Sequence[Captioner], missing: list[str]
) -> list[Document]:
    """Return what the page shows of each task and group; collect what cannot be read."""
    comparer = cache(lambda sides: Comparer([captioners[side] for side in sides]))
    documents = []
    for view in views:
        benchmark = view.benchmark
        results = [run and run.tasks[view.name] for run in view.runs]
        sides = tuple(side for side, verdicts in enumerate(view.verdicts) if verdicts is not None)
        compared: Document = {"answer": [], "ranking": {}, "differences": []}
        if len(sides) > 1:
            try:
                compared = _comparison(view, comparer(sides), sides, captioners)
            except DataError as error:
                compared["answer"] = [f"Not compared: {without_folders(str(error))}."]
        documents.append(
            {
                "name": view.name,
                "headline": benchmark.headline,
                "headline_means": benchmark.headline_means,
                "has_misses": bool(benchmark.missed or benchmark.wrong),
                "tells_wrong": bool(benchmark.wrong),
                "metrics": [
                    {"name": name, **{of: getattr(metric, of) for of in _OF_METRICS}}
                    for name, metric in benchmark.metrics.items()
                ],
                "scores": [of and _scores(list(benchmark.metrics), of) for of in results],
                "signatures": [of and of.signature and str(of.signature) for of in results],
                **compared,
                "sections": list(_sections(view, missing)),
            }
        )  # fmt: skip
    return documents


def run_documents(captioners: Sequence[Captioner]) -> list[Document]:
    """Return what was run, by which judge, and at what cost."""
    return [
        _run_document(captioner, run)
        for captioner in captioners
        for run in {run.path: run for run in captioner.runs.values()}.values()
    ]


def _run_document(captioner: Captioner, run: RunResults) -> Document:
    totals: Any = run.judging.get("judging") or {}
    stored, retried = totals.get("from_store"), totals.get("retried") or {}
    results = [captioner.results(name) for name, of in captioner.runs.items() if of is run]
    return {
        "captioner": captioner.name,
        "model": str(run.judging.get("model") or run.document.get("model_name") or ""),
        "judge": ", ".join(filter(None, dict.fromkeys(map(_judge, results)))),
        "finished": str(run.judging.get("finished") or run.document.get("date") or ""),
        "calls": totals.get("calls"),
        "cached": None if stored is None else sum(stored.values()),
        "cost": _cost(totals),
        "retried": ", ".join(f"{n:,} {why}" for why, n in retried.items()),
        "file": run.path.name,
    }


def _cost(totals: Mapping[str, Any]) -> str:
    if "usd" not in totals:
        return ""
    if totals["usd"] is not None:
        return f"${totals['usd']:,.2f}"
    by_model = totals.get("usd_by_model") or {}
    known = [usd for usd in by_model.values() if usd is not None]
    return f"${sum(known):,.2f} and more" if known else "price unknown"


def warnings_of(
    views: Sequence[View], captioners: Sequence[Captioner], missing: Sequence[str]
) -> list[str]:
    """Return what a reader must know, each warning once with whom it is about."""
    leaves = [view for view in views if len(view.tasks) == 1]
    tasks_of: dict[str, dict[str, list[str]]] = {}
    for captioner in captioners:
        for run in captioner.runs.values():
            for warning in warnings_in(run.judging):
                tasks_of.setdefault(warning, {})[captioner.name] = []
    for view in leaves:
        for captioner, verdicts in zip(captioners, view.verdicts, strict=True):
            if verdicts is not None:
                for warning in _warnings(
                    view, captioner.results(view.name), len(verdicts.videos())
                ):
                    of_captioner = tasks_of.setdefault(warning, {})
                    of_captioner.setdefault(captioner.name, []).append(view.name)
    shown = [*missing]
    for warning, owners in tasks_of.items():
        whom: dict[str, list[str]] = {}
        for name, tasks in owners.items():
            some = [*tasks[:3], f"{len(tasks) - 3} more"] if len(tasks) > 4 else tasks
            of_tasks = f" ({listed(some)})" if 0 < len(tasks) < len(leaves) else ""
            whom.setdefault(of_tasks, []).append(name)
        about = "; ".join(f"{listed(names)}{of_tasks}" for of_tasks, names in whom.items())
        shown.append(f"{about}: {warning}.")
    return shown


def _warnings(view: View, results: TaskResults, n_videos: int) -> Iterator[str]:
    defaults = view.benchmark.judge_defaults
    published = defaults.get("as_published")
    paper = str(defaults.get("model", ""))
    papers = (paper, published.get("model") if isinstance(published, dict) else paper)
    for judge in _judge(results).split(" + "):
        name = judge.partition(" ")[0]
        if is_offline(name):
            yield f"judged by {judge}, the offline stand-in: a smoke test, not a score"
        elif paper and name and name not in (*papers, NO_JUDGE.label.partition(" ")[0]):
            yield f"judged by {judge}; the paper's judge is {paper}, so these are not its numbers"
    if isnan(results.scores.get(view.benchmark.headline, 0.0)):
        yield f"no score (nan): {results.help}"
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


def _scores(metrics: Sequence[str], results: TaskResults) -> Document:
    """Return every metric with its interval, and the captions and questions behind it."""
    measured = results.measured
    return {
        "metrics": {
            name: {"figure": [of.value, of.low, of.high], "deviation": of.deviation}
            for name in metrics
            if (of := measured.get(name)) is not None
        },
        **{name: _share(results, name) for name in ("unscored", "empty", "missing", "dropped")},
        "reasons": dict(results.unscored_reasons),
    }


def _share(results: TaskResults, name: str) -> dict[str, int] | None:
    counted = results.judging.get(name)
    if isinstance(counted, dict) and {"n", "of"} <= counted.keys():
        return {"n": counted["n"], "of": counted["of"]}
    share = getattr(results.signature, name, None) if name == "unscored" else None
    return None if share is None else {"n": share.n, "of": share.of}


def _comparison(
    view: View, comparer: Comparer, sides: Sequence[int], captioners: Sequence[Captioner]
) -> Document:
    """Return the ranking and differences of the captioners that have a task."""
    compared = comparer.compare(view.name)
    scope = (
        f"{compared.counts.scope()}. Intervals and p-values are simultaneous over all tasks of "
        f"{view.benchmark.name}, their groups and {plural(len(sides), 'captioner')}."
    )
    return {
        "answer": [*answer(compared, [captioners[side].name for side in sides]), scope],
        "ranking": {str(sides[of.captioner]): [of.best, of.worst] for of in compared.ranking},
        "differences": [
            {
                "section": row.cell.section, "group": row.cell.group,
                "metric": row.cell.metric, "captioner": sides[b], "baseline": sides[a],
                "figure": [contrast.difference.difference, *(contrast.interval or (None, None))],
                "p": contrast.p_value, "outcome": contrast.outcome,
            }
            for row in compared.rows
            for (a, b), contrast in row.contrasts.items()
            if isfinite(contrast.difference.difference)
        ],
    }  # fmt: skip


def _sections(view: View, missing: list[str]) -> Iterator[Document]:
    """Yield the sections of the breakdown, with each group's figures by captioner and metric."""
    sides = [{} if run is None else _groups(view, run, missing) for run in view.runs]
    for name in dict.fromkeys(name for side in sides for name in side if name != ALL[0]):
        groups_of = [side.get(name, {}) for side in sides]
        groups = list(dict.fromkeys(group for of in groups_of for group in of))
        shown = groups[:MAX_GROUPS]
        if len(groups) > 1:
            yield {
                "name": name,
                "groups": shown,
                "n_more": len(groups) - len(shown),
                "figures": {
                    metric: [
                        [_figure(of.get(group, {}), metric) for group in shown] for of in groups_of
                    ]
                    for metric in view.benchmark.metrics
                },
                "n_questions": [
                    max(int(of[group].get(N_QUESTIONS, 0)) for of in groups_of if group in of)
                    for group in shown
                ],
            }


def _groups(view: View, run: RunResults, missing: list[str]) -> dict[str, Any]:
    """Return the groups of each section of a run's breakdown; the first section is the tasks."""
    tasks = {
        task: _breakdown(run, task, missing).get(ALL[0], {}).get(ALL[1], {})
        for task in view.tasks
        if len(view.tasks) > 1 and task in run.tasks
    }
    return {TASKS: tasks, **_breakdown(run, view.name, missing)}


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


def _figure(group: Mapping[str, Any], metric: str) -> list[float | None] | None:
    """Return a metric of a group with the ends of its interval."""
    value = group.get(metric)
    if not isinstance(value, int | float) or not isfinite(value):
        return None
    return [value, group.get(f"{metric}_{CI_LOW}"), group.get(f"{metric}_{CI_HIGH}")]
