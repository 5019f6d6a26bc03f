"""Captioners compared on each task and group that all of them have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from math import isnan
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from lmms_eval_captions.analysis.captioners import Captioner, common_names
from lmms_eval_captions.analysis.parts import Group, VideoParts, group_counts, is_by_task, parts_of
from lmms_eval_captions.analysis.task_table import Counts, Verdicts, align, differences
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL, Benchmark, Metric
from lmms_eval_captions.metrics.intervals import Interval, intervals
from lmms_eval_captions.metrics.paired import (
    Difference,
    changes_of_videos,
    paired_interval,
    simultaneous,
)
from lmms_eval_captions.metrics.parts import influences_of_videos, values_of_runs

if TYPE_CHECKING:
    from lmms_eval_captions.metrics.parts import Floats, RatioParts

Outcome = Literal["better", "worse", "tied", "unknown"]
Document = dict[str, Any]
Pair = tuple[int, int]
"""Places of two captioners; the difference is the second minus the first."""

SIGNIFICANT: Final = ("better", "worse")
TASKS: Final = "tasks"
"""Section in which each task of a group is one group of questions."""
MAX_GROUPS: Final = 40
"""Groups of a section that are compared, the largest."""
_N_MOVED: Final = 5
"""Videos in each direction that are listed as moving the difference most."""
_NOTHING: Final = 1e-9
"""A smaller difference of two numbers is rounding."""
_AS_THEY_ARE: Final = "or compare them as they are with --across-judges"


class Cell(NamedTuple):
    """Unit of comparison: a metric over all questions of a task or group, or over some of them."""

    name: str
    metric: str
    section: str = ALL[0]
    group: str = ALL[1]


class Contrast(NamedTuple):
    """A captioner minus another, on the same questions.

    The p-value is adjusted for the family of tests, see :meth:`Comparer.contrasts`. The interval is
    simultaneous: it excludes 0 exactly if the p-value is below 0.05.
    """

    difference: Difference
    """With an interval and p-value of its own."""
    p_value: float | None
    interval: tuple[float | None, float | None]
    outcome: Outcome
    """Result of the second captioner; ``tied`` without a significant difference."""


Contrasts = Mapping[Cell, Mapping[Pair, Contrast]]


class Row(NamedTuple):
    """A cell of all captioners, with the value of each."""

    cell: Cell
    values: Sequence[Interval]
    contrasts: Mapping[Pair, Contrast]


class Ranked(NamedTuple):
    """A captioner's place by the headline."""

    captioner: int
    value: float
    best: int
    worst: int
    """First and last rank that the significant differences leave open."""


class Compared(NamedTuple):
    """A task or group of all captioners, on the questions that all have a verdict on."""

    name: str
    captioners: Sequence[str]
    benchmark: Benchmark[Any, Any]
    judge: str
    counts: Counts
    rows: Sequence[Row]
    """A row per metric that can be computed, then those of the groups of each section."""
    n_groups_left_out: int
    flips: Mapping[str, Document]
    """Captioner to its verdicts next to the first captioner's, see :func:`_flips`."""
    moved: Mapping[str, list[Document]]
    """Captioner to the videos that move its difference to the first most."""
    lengths: Sequence[Document]
    """Captions, empty ones, and mean words and T5 tokens of each captioner."""
    warnings: Sequence[str]

    @property
    def overall(self) -> list[Row]:
        """Rows over all questions."""
        return [row for row in self.rows if row.cell.section == ALL[0]]

    @property
    def headline(self) -> list[Row]:
        """Rows of the benchmark's headline, first over all questions."""
        return [row for row in self.rows if row.cell.metric == self.benchmark.headline]

    @property
    def ranking(self) -> list[Ranked]:
        """The captioners, best first; empty if the headline has no value."""
        row = next((row for row in self.headline if row.cell.section == ALL[0]), None)
        if row is None or any(isnan(value.value) for value in row.values):
            return []
        sign = -1 if self.benchmark.metrics[row.cell.metric].higher_is_better else 1
        places = sorted(range(len(row.values)), key=lambda place: sign * row.values[place].value)
        best, worst = dict.fromkeys(places, 1), dict.fromkeys(places, len(places))
        for (a, b), contrast in row.contrasts.items():
            if contrast.outcome in SIGNIFICANT:
                winner, loser = (b, a) if contrast.outcome == "better" else (a, b)
                best[loser] += 1
                worst[winner] -= 1
        return [Ranked(i, row.values[i].value, best[i], worst[i]) for i in places]


class NothingInCommonError(DataError):
    """No question has a verdict on all captioners."""


class Comparer:
    """Reads, aligns and compares each task and group of some captioners once.

    Args:
        captioners: At least two, the baseline first.
        across_judges: Whether they may have been judged in different ways.
    """

    def __init__(self, captioners: Sequence[Captioner], across_judges: bool = False) -> None:
        self.captioners = captioners
        self.names = [captioner.name for captioner in captioners]
        self._across_judges = across_judges
        self.aligned = cache(self._aligned)
        self.contrasts = cache(self._contrasts)
        self._parts = cache(self._parts_of)

    def _aligned(self, name: str) -> tuple[list[Verdicts], Counts, list[str]]:
        """Return the verdicts on what all captioners have, what was left out, and warnings."""
        several = [captioner.verdicts(name) for captioner in self.captioners]
        sides, counts = align(several)
        if not counts.n_questions:
            raise NothingInCommonError(
                f"{name}: there is no question that all of {', '.join(self.names)} have a "
                f"verdict on ({counts.left_out() or 'none was asked'})"
            )
        return sides, counts, list(self._warnings(name, several, counts))

    def compare(self, name: str, section: str | None = None) -> Compared:
        """Compare the captioners on a task or group that all have, and on groups of a section.

        Args:
            name: The task or group.
            section: Of the breakdown; ``None`` for the benchmark's first.

        Raises:
            NothingInCommonError: If no question has a verdict on all.
            DataError: If the captioners were judged in different ways.
        """
        sides, counts, warnings = self.aligned(name)
        cells, n_groups = self._cells(name, section)
        benchmark, own = sides[0].benchmark, [cell for cell in cells if cell.section == section]
        found = {**self._corrected(benchmark, own), **self.contrasts(benchmark)}
        others = range(1, 1 if any(side.is_sampled for side in sides) else len(sides))
        return Compared(
            name=name,
            captioners=self.names,
            benchmark=benchmark,
            judge=_judge(sides, self.names),
            counts=counts,
            rows=self._rows(benchmark, {cell: found[cell] for cell in cells if cell in found}),
            n_groups_left_out=max(0, n_groups - MAX_GROUPS),
            flips={self.names[i]: of for i in others if (of := _flips(sides[0], sides[i]))},
            moved={self.names[i]: self._moved(name, i) for i in others},
            lengths=[_length(owner, side) for owner, side in zip(self.names, sides, strict=True)],
            warnings=warnings,
        )

    def _contrasts(self, benchmark: Benchmark[Any, Any]) -> Contrasts:
        """Return the differences of every two captioners in a benchmark, as one family of tests.

        The family of a metric holds all tasks and groups of the benchmark that the captioners have,
        each with the groups of its first section, and all pairs of captioners. So a p-value does
        not depend on which of them is shown.
        """
        cells: list[Cell] = []
        for name in common_names(self.captioners):
            try:
                if self.captioners[0].verdicts(name).benchmark is benchmark:
                    cells += self._cells(name)[0]
            except DataError:
                continue  # reported where it is shown
        return self._corrected(benchmark, cells)

    def _cells(self, name: str, section: str | None = None) -> tuple[list[Cell], int]:
        """Return what is compared of a task or group: all questions, its tasks, and groups.

        Also returns the number of groups, of which the largest are compared.
        """
        first = self.aligned(name)[0][0]
        counts = group_counts(first)
        if section is None:
            named = first.benchmark.sections
            section = next((s for s, of in counts.items() if named.get(s) and len(of) > 1), "")
        groups = [(section, group) for group in counts.get(section, ())]
        tasks = [(TASKS, table.task) for table in first.tables]
        if len(tasks) == 1 or (groups and is_by_task(first.rows(), section, len(tasks))):
            tasks = []
        cells = [
            Cell(name, metric, *group)
            for chosen in ([ALL], tasks, groups[:MAX_GROUPS])
            for metric in first.benchmark.metrics
            for group in chosen
        ]
        return cells, len(groups)

    def _parts_of(self, cell: Cell) -> VideoParts | None:
        """Return what each video adds to a cell for each captioner; ``None`` without a value."""
        sides = self.aligned(cell.name)[0]
        group: Group | None = (cell.section, cell.group)
        if cell.section == TASKS:
            own = [[t for t in side.tables if t.task == cell.group] for side in sides]
            sides = [Verdicts(cell.group, tuple(of), is_pooled=False) for of in own]
        if cell.section in (TASKS, ALL[0]):
            group = None
        found = parts_of(sides, cell.metric, group)
        return found if found is not None and all(side.any() for side in found.sides) else None

    def _corrected(self, benchmark: Benchmark[Any, Any], cells: Sequence[Cell]) -> Contrasts:
        """Return the contrasts of cells, those of a metric corrected for one another."""
        found: dict[Cell, dict[Pair, Contrast]] = {}
        pairs = list(combinations(range(len(self.captioners)), 2))
        for name, metric in benchmark.metrics.items():
            known = {c: p for c in cells if c.metric == name and (p := self._parts(c)) is not None}
            videos = np.unique(np.concatenate([(), *(p.videos for p in known.values())]))
            tests: list[tuple[Cell, Pair, Difference]] = []
            changes = np.zeros((len(known) * len(pairs), len(videos)))
            rows = iter(changes)
            for (cell, parts), pair in product(known.items(), pairs):
                first, other = (parts.sides[side] for side in pair)
                tests.append((cell, pair, paired_interval(other, first, scale=metric.scale)))
                of_videos = changes_of_videos(other, first, scale=metric.scale)
                next(rows)[np.searchsorted(videos, parts.videos)] = of_videos
            corrected = simultaneous([test for *_, test in tests], changes)
            for (cell, pair, test), p_value, ends in zip(tests, *corrected, strict=True):
                low, high = _within((test.low, test.high), metric)
                difference = replace(test, low=low, high=high)
                interval = _within(ends or (None, None), metric)
                outcome = _outcome(difference, p_value, metric)
                found.setdefault(cell, {})[pair] = Contrast(difference, p_value, interval, outcome)
        return found

    def _rows(self, benchmark: Benchmark[Any, Any], contrasts: Contrasts) -> list[Row]:
        """Return rows with the scores' intervals, those of a metric computed together."""
        values: dict[Cell, list[Interval]] = {}
        for name, metric in benchmark.metrics.items():
            parts = {cell: self._parts(cell) for cell in contrasts if cell.metric == name}
            sides = [side for of in parts.values() if of is not None for side in of.sides]
            scored = iter(intervals(sides, scale=metric.scale, bounds=metric.bounds))
            values |= {cell: [next(scored) for _ in self.captioners] for cell in parts}
        return [Row(cell, values[cell], of) for cell, of in contrasts.items()]

    def _moved(self, name: str, other: int) -> list[Document]:
        """Return the videos that move the headline most, the ones that move it up first.

        Effects of all videos add up to the difference; other numbers are of the video alone.
        """
        import pandas as pd

        first = self.aligned(name)[0][0]
        scale = first.benchmark.metrics[first.benchmark.headline].scale
        found = self._parts(Cell(name, first.benchmark.headline))
        if found is None:
            return []
        both = [found.sides[0], found.sides[other]]
        has_part = np.any([side.any(axis=(0, 2, 3, 4)) for side in both], axis=0)
        both = [side[:, has_part] for side in both]
        shares = [
            influences_of_videos(side, scale=scale).mean(axis=0)
            + values_of_runs(side, scale=scale).mean() / side.shape[1]
            for side in both
        ]
        rows, videos = first.rows(), found.videos[has_part]
        asked = rows[rows["question_index"].notna() & (rows["run"] == 0)]["video"].value_counts()
        moved = pd.DataFrame(
            {
                "video": videos,
                "n_questions": asked.reindex(videos, fill_value=0).to_numpy(),
                "first": _own_values(both[0], scale),
                "other": _own_values(both[1], scale),
                "effect": shares[1] - shares[0],
            }
        )
        moved = moved.iloc[np.lexsort((videos.astype(str), -moved["effect"].round(9)))]
        up, down = moved.head(_N_MOVED), moved.tail(_N_MOVED)
        shown = pd.concat([up[up["effect"] > _NOTHING], down[down["effect"] < -_NOTHING]])
        records: list[Document] = shown.to_dict("records")
        return records

    def _warnings(self, name: str, several: Sequence[Verdicts], counts: Counts) -> Iterator[str]:
        """Yield what must be known of the numbers; raise it if captions were judged differently."""
        for owner, verdicts in zip(self.names, several, strict=True):
            if verdicts.is_sampled:
                asked = [table.asked() for table in verdicts.tables]
                n_asked = sum(int((of["weight"].fillna(1.0) > 0).sum()) for of in asked)
                yield (
                    f"{owner}: a sample of the questions was judged, {n_asked:,} of "
                    f"{sum(map(len, asked)):,}; intervals are wider, single verdicts not compared"
                )
        for table in several[0].tables:
            signatures = [t.signature for of in several for t in of.tables if t.task == table.task]
            for field, values in differences(signatures).items():
                sides = [f"{v} in {c}" for v, c in zip(values, self.names, strict=True)]
                words = f"{table.task}: {field} is {', '.join(sides)}"
                self._refuse(
                    f"{words}: that affects scores. Judge all captions in the same way (--model "
                    "caption_file --model_args path=FOLDER judges the captions of a folder with "
                    f"sample logs), {_AS_THEY_ARE}. lmms-eval-captions agree compares judges on "
                    "the same captions"
                )
                yield f"{words}: the difference is not the captions' alone"
        if counts.n_other_answers:
            words = (
                f"{name}: other gold answers, or other categories, to the same questions about "
                f"{counts.n_other_answers:,} of {counts.n_captions:,} captions"
            )
            self._refuse(f"{words}: judge all captions with the same question file, {_AS_THEY_ARE}")
            yield words
        for captioner in self.captioners:
            results = captioner.results(name)
            if isnan(results.scores.get(several[0].benchmark.headline, 0.0)):
                yield (
                    f"{captioner.name}: the run gives no score for {name} (nan): too much is "
                    "unscored, and what is left may be the easier part"
                )
            yield from (f"{captioner.name}: {name}: {doubt}" for doubt in results.doubts)

    def _refuse(self, why: str) -> None:
        if not self._across_judges:
            raise DataError(why)


def compare_all(
    comparer: Comparer, names: Sequence[str], section: str | None = None, *, is_wanted: bool = False
) -> tuple[list[Compared], list[str]]:
    """Compare captioners on tasks and groups; also return why some were left out.

    Those that the user wanted are not left out: without a common question they are an error. So is
    a section that no benchmark has.
    """
    found: list[Compared] = []
    left_out: list[NothingInCommonError] = []
    for name in names:
        try:
            found.append(comparer.compare(name, section))
        except NothingInCommonError as error:
            left_out.append(error)
    if left_out and (is_wanted or not found):
        raise left_out[0]
    sides = [comparer.aligned(compared.name)[0][0] for compared in found]
    sections = dict.fromkeys(name for side in sides for name in group_counts(side))
    shown = {row.cell.section for compared in found for row in compared.rows}
    if section is not None and section not in shown:
        raise SettingsError(
            "--group: expected a section of the breakdown, any of "
            f"{', '.join(sections) or 'none'}, got {section!r:.80}"
        )
    return found, [str(error) for error in left_out]


def _within(
    ends: tuple[float | None, float | None], metric: Metric
) -> tuple[float | None, float | None]:
    """Return the ends of an interval within what is possible."""
    low, high = (None if end is None else min(max(end, -metric.span), metric.span) for end in ends)
    return low, high


def _outcome(difference: Difference, p_value: float | None, metric: Metric) -> Outcome:
    if p_value is None or isnan(difference.difference):
        return "unknown"
    if p_value >= 0.05:
        return "tied"
    return "better" if (difference.difference > 0) == metric.higher_is_better else "worse"


def _flips(first: Verdicts, other: Verdicts) -> Document | None:
    """Count the questions that only one of two captioners has right, or has the higher grade of.

    A question is right if more than half of the judge runs with a verdict say so; a grade is the
    mean over judge runs. ``None`` if questions cannot be matched, or no labels are right.
    """
    import pandas as pd

    benchmark, right = first.benchmark, first.benchmark.right
    if not benchmark.counts_ahead or not (
        right or not benchmark.metrics[benchmark.headline].labels
    ):
        return None
    column = first.tables[0].head["values"][benchmark.headline]

    def grades(verdicts: Verdicts) -> pd.Series[float]:
        rows = verdicts.rows().dropna(subset="question_index").explode(column)
        values = rows[column].isin(right).where(rows[column].notna()) if right else rows[column]
        rows = rows.assign(value=pd.to_numeric(values), question=rows["question"].fillna(""))
        means = rows.groupby(["task", "video", "copy", "question", "occurrence"])["value"].mean()
        return ((means > 0.5).where(means.notna()) if right else means).astype(float)

    apart = (grades(other) - grades(first)).dropna()
    n_gained, n_lost = int((apart > _NOTHING).sum()), int((apart < -_NOTHING).sum())
    n_same = len(apart) - n_gained - n_lost
    return {"n_gained": n_gained, "n_lost": n_lost, "n_same": n_same, "is_graded": not right}


def _own_values(side: RatioParts, scale: float) -> Floats:
    """Return the metric of each video alone, of the terms that it has a part in."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = (side[..., 0] / side[..., 1]).prod(axis=-1)
        known = ~np.isnan(ratios)
        of_videos = np.where(known, ratios, 0).sum(axis=(0, 2)) / known.sum(axis=(0, 2))
    return np.asarray(scale * of_videos)


def _length(owner: str, verdicts: Verdicts) -> Document:
    import pandas as pd

    captions = pd.concat([table.captions() for table in verdicts.tables])
    found: Document = {"captioner": owner, "n_captions": len(captions)}
    found["n_empty"] = int(captions["is_empty"].sum())
    for name, column in (("words", "n_words"), ("tokens", "n_tokens")):
        counts = captions[column].dropna() if column in captions else ()
        found[name] = float(np.mean(counts)) if len(counts) else None
    return found


def _judge(several: Sequence[Verdicts], names: Sequence[str]) -> str:
    """Name the judge and its runs, of each captioner if they differ."""
    judges = {}
    for name, verdicts in zip(names, several, strict=True):
        heads = [table.head for table in verdicts.tables]
        runs = "+".join(sorted({str(head["runs"]) for head in heads}))
        named = " + ".join(sorted({str(head["judge"]) for head in heads}))
        judges[name] = f"{named}, {runs} judge run{'' if runs == '1' else 's'}"
    different = dict.fromkeys(judges.values())
    return "; ".join(different if len(different) == 1 else (f"{of}: {judges[of]}" for of in judges))
