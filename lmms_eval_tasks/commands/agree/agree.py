"""From folders of results to what is found out about their judges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.commands.agree.agreement import agreement_of, confusion_of
from lmms_eval_captions.lmms_eval_tasks.commands.agree.conclusions import conclusions_of
from lmms_eval_captions.lmms_eval_tasks.commands.agree.findings import (
    Agreement,
    Findings,
    JudgeFindings,
    Leniency,
    PairFindings,
)
from lmms_eval_captions.lmms_eval_tasks.commands.agree.leniency import (
    groups_of,
    leniency_of,
    parts_of_groups,
    slope_over_words,
    with_holm,
)
from lmms_eval_captions.lmms_eval_tasks.commands.agree.panel import (
    Judge,
    JudgedRun,
    Panel,
    panels_of,
)
from lmms_eval_captions.lmms_eval_tasks.commands.agree.prices import price_of
from lmms_eval_captions.lmms_eval_tasks.commands.agree.ranking import ranking_of
from lmms_eval_captions.lmms_eval_tasks.commands.agree.shared_captions import (
    SharedCaptions,
    shared_captions,
)
from lmms_eval_captions.lmms_eval_tasks.commands.agree.units import (
    Measure,
    Units,
    measures_of,
    units_of,
    units_of_runs,
)
from lmms_eval_captions.lmms_eval_tasks.results_folder import RESULTS, RunResults, read_all_results
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks, tasks_of
from lmms_eval_captions.lmms_eval_tasks.verdicts.captioners import captioners_of
from lmms_eval_captions.lmms_eval_tasks.verdicts.verdict_file import verdict_path
from lmms_eval_captions.lmms_eval_tasks.verdicts.verdicts import (
    TaskVerdicts,
    names_with_verdicts,
    read_verdicts,
)


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
    panels = panels_of(_runs(folders, chosen))
    findings = [
        _findings(panel) for panel in _with_reference(panels, reference) if _is_compared(panel)
    ]
    if not findings:
        raise DataError(
            "expected captions that several judges judged, or one judge in several runs; these "
            f"folders hold {_held(panels)}. Give the folders of the same captions scored by "
            "another judge (LMMS_CAPTIONS_JUDGE), or score with LMMS_CAPTIONS_JUDGE_RUNS=3"
        )
    return findings


def _runs(folders: Sequence[Path], chosen: set[str] | None) -> list[JudgedRun]:
    """Every run of every model below some folders, those of a model from the oldest on."""
    # Names, and what is wrong with folders, as for captioners; but of a model all runs are looked
    # at, for they may be of several judges.
    names = [captioner.name for captioner in captioners_of(folders)]
    models = [runs for folder in folders for runs in read_all_results(folder)]
    judged: list[JudgedRun] = []
    for name, runs in zip(names, models, strict=True):
        of_model = [JudgedRun(name, (run,), _tasks_of_run(run, chosen, runs[-1])) for run in runs]
        of_model = [run for run in of_model if run.tasks]
        told = [run for run in of_model if any(run.digests().values())]
        if of_model and not told:
            raise DataError(
                f"{runs[-1].path}: the run does not say which captions it judged: an older version "
                "wrote it. Score the captions again: the judge is asked nothing that it was asked "
                "before"
            )
        judged.extend(told)
    if not judged:
        raise DataError(f"no verdicts of these tasks in {', '.join(map(str, folders))}")
    return judged


def _tasks_of_run(
    run: RunResults, chosen: set[str] | None, newest: RunResults
) -> dict[str, TaskVerdicts]:
    """The verdicts of a run's tasks; of an older run those that it kept."""
    stamp = run.path.name.removesuffix(RESULTS)
    names = [name for name in names_with_verdicts(run) if name in our_benchmarks()]
    return {
        name: read_verdicts(run, name).tasks[0]
        for name in names
        if (chosen is None or name in chosen)
        and (run is newest or verdict_path(run.path.parent, stamp, name).is_file())
    }


def _with_reference(panels: Sequence[Panel], reference: str | None) -> list[Panel]:
    """The panels with the reference as the first of their judges, where it is one of them."""
    if reference is None:
        return list(panels)
    names = dict.fromkeys(judge.name for panel in panels for judge in panel.judges)
    meant = [name for name in names if name == reference]
    meant = meant or [name for name in names if reference in name]
    if len(meant) != 1:
        raise SettingsError(
            f"--reference: expected one of {', '.join(names)}, got {reference!r:.80}"
        )
    return [
        replace(panel, judges=tuple(sorted(panel.judges, key=lambda j: j.name != meant[0])))
        for panel in panels
    ]


def _is_compared(panel: Panel) -> bool:
    """Whether there is anything to compare: two judges of a caption, or two judge runs."""
    judges = panel.judges
    has_pair = any(a.runs.keys() & b.runs.keys() for a, b in combinations(judges, 2))
    return has_pair or any(_n_runs(panel, judge) > 1 for judge in judges)


def _held(panels: Sequence[Panel]) -> str:
    return "; ".join(
        f"{panel.name}: judged by {', '.join(judge.name for judge in panel.judges)}, "
        f"captions of {', '.join(panel.captioners)}"
        for panel in panels
    )


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
    measures = measures_of(benchmark, shared.captions)
    units = {
        each: units_of(benchmark, shared.captions, each, panel.captioners) for each in measures
    }
    label = next((each for each in measures if each.is_label), None)
    leniency, n_left_out = _leniency(panel, shared, units)
    return PairFindings(
        reference=reference.name,
        other=other.name,
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
        reference=reference.name, other=other.name, n_captions=0, n_videos=0,
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
