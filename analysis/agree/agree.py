"""From folders of results to what is found out about their judges."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from lmms_eval_captions.analysis.agree.agreement import agreement_of, confusion_of
from lmms_eval_captions.analysis.agree.caption_length import slope_over_words
from lmms_eval_captions.analysis.agree.conclusions import conclusions_of
from lmms_eval_captions.analysis.agree.findings import (
    Agreement,
    Findings,
    JudgeFindings,
    Leniency,
    PairFindings,
)
from lmms_eval_captions.analysis.agree.folders import runs_below, with_reference
from lmms_eval_captions.analysis.agree.judged import Judge, Panel
from lmms_eval_captions.analysis.agree.leniency import (
    groups_of,
    leniency_of,
    parts_of_groups,
    with_holm,
)
from lmms_eval_captions.analysis.agree.panel import panels_of
from lmms_eval_captions.analysis.agree.prices import price_of
from lmms_eval_captions.analysis.agree.ranking import ranking_of
from lmms_eval_captions.analysis.agree.shared_captions import (
    SharedCaptions,
    shared_captions,
)
from lmms_eval_captions.analysis.agree.units import (
    Measure,
    Units,
    measures_of,
    units_of,
    units_of_runs,
)
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.task_names import tasks_of


def agree(
    folders: Sequence[Path], *, tasks: str | None = None, reference: str | None = None
) -> list[Findings]:
    """What is found out about the judges of every benchmark in some folders.

    Args:
        folders: As lmms-eval's ``--output_path``.
        tasks: Names of tasks and groups that are looked at, separated by commas; without, all.
        reference: The judge that others are compared with, by its name or a part of it that no
            other has; without, that of the first folder.

    Raises:
        DataError: If a folder cannot be read, or no caption was judged twice.
        SettingsError: If a task or the reference is not known.
    """
    chosen = None if tasks is None else set(tasks_of(tasks))
    panels = panels_of(runs_below(folders, chosen))
    findings = [
        _findings(panel) for panel in with_reference(panels, reference) if _is_compared(panel)
    ]
    if not findings:
        raise DataError(
            "expected captions that several judges judged, or one judge in several runs; these "
            f"folders hold {_held(panels)}. Give the folders of the same captions scored by "
            "another judge (LMMS_CAPTIONS_JUDGE), or score with LMMS_CAPTIONS_JUDGE_RUNS=3"
        )
    return findings


def _is_compared(panel: Panel) -> bool:
    """Whether there is anything to compare: two judges of a caption, or two judge runs."""
    if panel.benchmark.measure is not None:
        return False  # measured twice, it is the same
    judges = panel.judges
    has_pair = any(a.runs.keys() & b.runs.keys() for a, b in combinations(judges, 2))
    return has_pair or any(_n_runs(panel, judge) > 1 for judge in judges)


def _held(panels: Sequence[Panel]) -> str:
    return "; ".join(
        f"{panel.name}: {_judged(panel)}, captions of {', '.join(panel.captioners)}"
        for panel in panels
    )


def _judged(panel: Panel) -> str:
    if panel.benchmark.measure is not None:
        return "measured without a judge"
    return f"judged by {', '.join(judge.name for judge in panel.judges)}"


def _findings(panel: Panel) -> Findings:
    benchmark, judges = panel.benchmark, panel.judges
    of_judges = tuple(_judge_findings(panel, judge) for judge in judges)
    pairs = tuple(
        found for other in judges[1:] if (found := _pair_findings(panel, judges[0], other))
    )
    others = tuple(
        (first.name, second.name, agreement)
        for first, second in combinations(judges[1:], 2)
        for agreement in _agreements(panel, (first, second))[:1]
    )
    return Findings(
        benchmark=panel.name,
        headline=benchmark.headline,
        tasks=panel.tasks,
        captioners=panel.captioners,
        judges=of_judges,
        pairs=pairs,
        others=others,
        together=tuple(_agreements(panel, judges)) if len(judges) > 2 else (),
        conclusions=tuple(conclusions_of(of_judges, pairs)),
    )


def _judge_findings(panel: Panel, judge: Judge) -> JudgeFindings:
    shared = shared_captions(panel, (judge,))
    n_runs = _n_runs(panel, judge)
    measures = measures_of(panel.benchmark, shared.captions) if n_runs > 1 else []
    return JudgeFindings(
        name=judge.name,
        n_runs=n_runs,
        n_captions=len(shared.captions),
        price=price_of(each for run in judge.runs.values() for each in run.runs),
        own_runs=tuple(
            agreement_of(units_of_runs(panel.benchmark, shared.captions, each), each)
            for each in measures
        ),
    )


def _pair_findings(panel: Panel, reference: Judge, other: Judge) -> PairFindings | None:
    benchmark = panel.benchmark
    if not reference.runs.keys() & other.runs.keys():
        return None
    shared = shared_captions(panel, (reference, other))
    if not shared.captions:
        return _nothing_shared(reference, other, shared)
    owners = sorted({caption.captioner for caption in shared.captions})
    measures = measures_of(benchmark, shared.captions)
    units = {
        each: units_of(benchmark, shared.captions, each, panel.captioners) for each in measures
    }
    label = next((each for each in measures if each.is_label), None)
    leniency, n_left_out = _leniency(panel, shared, units)
    return PairFindings(
        reference=reference.name,
        other=other.name,
        captioners=tuple(panel.captioners[place] for place in owners),
        n_captions=len(shared.captions),
        n_videos=len({caption.video for caption in shared.captions}),
        left_out=dict(shared.left_out),
        agreements=tuple(agreement_of(own, each) for each, own in units.items()),
        confusion=None if label is None else confusion_of(units[label]),
        leniency=tuple(leniency),
        n_groups_left_out=n_left_out,
        slope=slope_over_words(benchmark, shared.captions),
        ranking=ranking_of(benchmark, shared.captions, panel.captioners),
    )


def _nothing_shared(reference: Judge, other: Judge, shared: SharedCaptions) -> PairFindings:
    return PairFindings(
        reference=reference.name, other=other.name, captioners=(), n_captions=0, n_videos=0,
        left_out=dict(shared.left_out), agreements=(), confusion=None, leniency=(),
        n_groups_left_out=0, slope=None, ranking=None,
    )  # fmt: skip


def _leniency(
    panel: Panel, shared: SharedCaptions, units: dict[Measure, Units]
) -> tuple[list[Leniency], int]:
    """Every metric over all captions, the headline first, and what judges say in every group."""
    benchmark = panel.benchmark
    by_metric = {measure.metric: (own, measure) for measure, own in units.items()}
    groups, n_left_out = groups_of(benchmark, next(iter(units.values()))) if units else ([], 0)
    metrics = sorted(benchmark.metrics, key=lambda metric: metric != benchmark.headline)
    everything, *parts = parts_of_groups(shared.captions, groups, panel.captioners)
    rows = [leniency_of(benchmark, everything, metric, by_metric.get(metric)) for metric in metrics]
    for part in parts:
        for metric, (own, measure) in by_metric.items():
            chosen = own.of(own.groups[part.section] == part.group)
            rows.append(leniency_of(benchmark, part, metric, (chosen, measure)))
    return with_holm([row for row in rows if row is not None]), n_left_out


def _agreements(panel: Panel, judges: Sequence[Judge]) -> list[Agreement]:
    """Of judges with one another, by what the benchmark's headline reads first."""
    captions = shared_captions(panel, judges).captions
    return [
        agreement_of(units_of(panel.benchmark, captions, each, panel.captioners), each)
        for each in measures_of(panel.benchmark, captions)
        if captions
    ]


def _n_runs(panel: Panel, judge: Judge) -> int:
    return max(
        (
            len(caption.values[panel.benchmark.headline])
            for run in judge.runs.values()
            for task in run.tasks.values()
            for caption in task.captions
        ),
        default=0,
    )
