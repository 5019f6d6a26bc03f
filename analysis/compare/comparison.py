"""Captioners compared on each task and group that all of them have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from math import isnan
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from lmms_eval_captions.analysis.alignment import Counts, align
from lmms_eval_captions.analysis.captioners import Captioner, common_names
from lmms_eval_captions.analysis.parts import (
    Group,
    VideoParts,
    group_counts,
    groups_of,
    parts_of,
    tasks_of_groups,
)
from lmms_eval_captions.analysis.task_table import Verdicts, differences
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
    from lmms_eval_captions.metrics.parts import RatioParts

Outcome = Literal["better", "worse", "tied", "unknown"]
Document = dict[str, Any]
Pair = tuple[int, int]
"""Places of two captioners; the difference is the second minus the first."""

ALPHA: Final = 0.05
TASKS: Final = "tasks"
"""Section in which each task of a group is one group of questions."""
MAX_GROUPS: Final = 40
"""Groups of a section that are compared, the largest."""
_N_MOVED: Final = 5
"""Videos in each direction that are listed as moving the difference most."""


class Cell(NamedTuple):
    """Unit of comparison: a metric over all questions of a task or group, or over some of them."""

    name: str
    metric: str
    section: str = ALL[0]
    group: str = ALL[1]


class Contrast(NamedTuple):
    """A captioner minus another, on the same questions."""

    difference: Difference
    """With an interval and p-value of its own."""
    p_value: float | None
    """Adjusted for the family of tests, see :meth:`Comparer.contrasts`."""
    interval: tuple[float, float] | None
    """Simultaneous 95% interval: it excludes 0 exactly if ``p_value`` is below 0.05."""
    outcome: Outcome
    """Result of the second captioner; ``tied`` without a significant difference."""


class Row(NamedTuple):
    """A cell of all captioners."""

    cell: Cell
    values: Sequence[Interval]
    """One per captioner."""
    contrasts: Mapping[Pair, Contrast]


class Ranked(NamedTuple):
    """A captioner's place by the headline."""

    captioner: int
    value: float
    best: int
    worst: int
    """First and last rank that the significant differences leave open."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A task or group of all captioners, on the questions that all have a verdict on."""

    name: str
    benchmark: Benchmark[Any, Any]
    judge: str
    counts: Counts
    overall: Sequence[Row]
    """A row per metric that can be computed."""
    sections: Mapping[str, Sequence[Row]]
    """Section to the rows of its groups."""
    n_groups_left_out: int
    ranking: Sequence[Ranked]
    """Best first; empty if the headline has no value."""
    flips: Mapping[int, Document]
    """Captioner to its verdicts next to the first captioner's, see :func:`flips_of`."""
    moved: Mapping[int, list[Document]]
    """Captioner to the videos that move its difference to the first most."""
    lengths: Sequence[Document]
    """Captions, empty ones, and mean words and T5 tokens of each captioner."""
    warnings: Sequence[str]

    def headline(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows of the benchmark's headline."""
        return [row for row in rows if row.cell.metric == self.benchmark.headline]


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
        self._families: dict[int, dict[Cell, dict[Pair, Contrast]]] = {}
        self.aligned = cache(self._align)
        self.parts = cache(self._parts_of)
        self._grouped = cache(self._groups_of)

    def _align(self, name: str) -> tuple[list[Verdicts], Counts, list[str]]:
        """Return the verdicts on what all captioners have, what was left out, and warnings.

        Raises:
            DataError: If the captioners were judged in different ways.
            NothingInCommonError: If no question has a verdict on all.
        """
        several = [captioner.verdicts(name) for captioner in self.captioners]
        sides, counts = align(several)
        if not counts.n_questions:
            raise NothingInCommonError(
                f"{name}: there is no question that all of {', '.join(self.names)} have a "
                f"verdict on ({counts.left_out() or 'none was asked'})"
            )
        return sides, counts, list(self._warnings(name, several, counts))

    def compare(self, name: str, section: str | None = None) -> Compared:
        """Compare the captioners on a task or a group.

        Args:
            name: One that all have.
            section: Of the breakdown; ``None`` for the benchmark's first.

        Raises:
            DataError: See :meth:`aligned`.
        """
        sides, counts, warnings = self.aligned(name)
        first = sides[0]
        found = self.contrasts(first.benchmark)
        cells = list(self._cells(name, section))
        if section is not None and not {c for c in cells if c.section == section} <= found.keys():
            own = [cell for cell in cells if cell.section == section]
            found = {**found, **self._corrected(first.benchmark, own)}
        rows = self._rows([cell for cell in cells if cell in found], found)
        sections = dict.fromkeys(row.cell.section for row in rows if row.cell.section != ALL[0])
        n_groups = len(self._grouped(name, section))
        is_sampled = any(side.is_sampled for side in sides)
        others = range(1, 1 if is_sampled else len(sides))
        overall = [row for row in rows if row.cell.section == ALL[0]]
        return Compared(
            name=name,
            benchmark=first.benchmark,
            judge=_judge(sides, self.names),
            counts=counts,
            overall=overall,
            sections={s: [row for row in rows if row.cell.section == s] for s in sections},
            n_groups_left_out=max(0, n_groups - MAX_GROUPS),
            ranking=_ranking(overall, first.benchmark),
            flips={i: f for i in others if (f := flips_of(first, sides[i])) is not None},
            moved={i: self._moved(name, i) for i in others},
            lengths=list(map(_length, sides)),
            warnings=warnings,
        )

    def contrasts(self, benchmark: Benchmark[Any, Any]) -> dict[Cell, dict[Pair, Contrast]]:
        """Return the differences of every two captioners in a benchmark, as one family of tests.

        The family of a metric holds all tasks and groups of the benchmark that the captioners have,
        each with the groups of its first section, and all pairs of captioners. So a p-value does
        not depend on which of them is shown.
        """
        if id(benchmark) not in self._families:
            cells: list[Cell] = []
            for name in common_names(self.captioners):
                try:
                    if self.captioners[0].verdicts(name).benchmark is benchmark:
                        self.aligned(name)
                        cells += self._cells(name)
                except DataError:
                    continue  # told where it is shown
            self._families[id(benchmark)] = self._corrected(benchmark, cells)
        return self._families[id(benchmark)]

    def _cells(self, name: str, section: str | None = None) -> Iterator[Cell]:
        """Yield what is compared of a task or group: all questions, its tasks, and groups."""
        first = self.aligned(name)[0][0]
        groups = list(self._grouped(name, section))[:MAX_GROUPS]
        is_by_task = any(self._grouped(name, section).values())
        for metric in first.benchmark.metrics:
            yield Cell(name, metric)
        for metric in first.benchmark.metrics if len(first.tables) > 1 and not is_by_task else ():
            yield from (Cell(name, metric, TASKS, table.task) for table in first.tables)
        for metric in first.benchmark.metrics:
            yield from (Cell(name, metric, *group) for group in groups)

    def _groups_of(self, name: str, section: str | None = None) -> dict[Group, str]:
        """Return the groups of a section, each with the task whose questions it is, if any."""
        first = self.aligned(name)[0][0]
        groups = groups_of(first, section)
        return dict.fromkeys(groups, "") | tasks_of_groups(first, groups)

    def _parts_of(self, cell: Cell) -> VideoParts | None:
        """Return what each video adds to a cell for each captioner; ``None`` without a value."""
        sides = self.aligned(cell.name)[0]
        group: Group | None = (cell.section, cell.group)
        task = ""
        if cell.section == TASKS:
            task = cell.group
        elif group != ALL:
            task = self._grouped(cell.name, cell.section)[cell.section, cell.group]
        if task:
            sides = [side.task(task) for side in sides]
        if task or group == ALL:
            group = None
        found = parts_of(sides, cell.metric, group)
        return found if found is not None and all(side.any() for side in found.sides) else None

    def _corrected(
        self, benchmark: Benchmark[Any, Any], cells: Sequence[Cell]
    ) -> dict[Cell, dict[Pair, Contrast]]:
        """Return the contrasts of cells, those of a metric corrected for one another."""
        found: dict[Cell, dict[Pair, Contrast]] = {}
        for name, metric in benchmark.metrics.items():
            known = {c: p for c in cells if c.metric == name and (p := self.parts(c)) is not None}
            videos = np.unique(np.concatenate([p.videos for p in known.values()])) if known else ()
            tests: list[tuple[Cell, Pair, Difference]] = []
            moves = []
            for cell, parts in known.items():
                places = np.searchsorted(videos, parts.videos)
                for a, b in combinations(range(len(self.captioners)), 2):
                    first, other = parts.sides[a], parts.sides[b]
                    tests.append((cell, (a, b), difference_of(other, first, metric)))
                    row = np.zeros(len(videos))
                    row[places] = changes_of_videos(other, first, scale=metric.scale)
                    moves.append(row)
            corrected = simultaneous([test for *_, test in tests], np.array(moves))
            for (cell, pair, difference), p_value, ends in zip(tests, *corrected, strict=True):
                outcome = _outcome(difference, p_value, metric)
                contrast = Contrast(difference, p_value, _within(ends, metric), outcome)
                found.setdefault(cell, {})[pair] = contrast
        return found

    def _rows(
        self, cells: Sequence[Cell], found: Mapping[Cell, Mapping[Pair, Contrast]]
    ) -> list[Row]:
        """Return rows with the scores' intervals, those of a metric computed together."""
        values: dict[Cell, list[Interval]] = {}
        for metric in dict.fromkeys(cell.metric for cell in cells):
            own = [cell for cell in cells if cell.metric == metric]
            known = self.aligned(own[0].name)[0][0].benchmark.metrics[metric]
            sides = [side for cell in own for side in self.parts(cell).sides]  # type: ignore[union-attr] # found
            scored = iter(intervals(sides, scale=known.scale, bounds=known.bounds))
            for cell in own:
                values[cell] = [next(scored) for _ in self.captioners]
        return [Row(cell, values[cell], found[cell]) for cell in cells]

    def _moved(self, name: str, other: int) -> list[Document]:
        """Return the videos that move the headline most, the ones that move it up first.

        ``first`` and ``other`` are the headlines of the video alone; the ``effect`` of all videos
        together makes up the difference.
        """
        import pandas as pd

        first = self.aligned(name)[0][0]
        scale = first.benchmark.metrics[first.benchmark.headline].scale
        found = self.parts(Cell(name, first.benchmark.headline))
        if found is None:
            return []
        has_part = np.any([found.sides[i].any(axis=(0, 2, 3, 4)) for i in (0, other)], axis=0)
        sides = [found.sides[i][:, has_part] for i in (0, other)]
        shares = [
            influences_of_videos(side, scale=scale).mean(axis=0)
            + values_of_runs(side, scale=scale).mean() / side.shape[1]
            for side in sides
        ]
        rows = first.rows()
        asked = rows[rows["question_index"].notna() & (rows["run"] == 0)]["video"].value_counts()
        videos, effects = found.videos[has_part], shares[1] - shares[0]
        moved = pd.DataFrame(
            {
                "video": videos,
                "n_questions": asked.reindex(videos, fill_value=0).to_numpy(),
                "first": _own_values(sides[0], scale),
                "other": _own_values(sides[1], scale),
                "effect": effects,
            }
        )
        moved = moved.iloc[np.lexsort((videos.astype(str), np.round(-effects, 9)))]
        up, down = moved.head(_N_MOVED), moved.tail(_N_MOVED)
        shown = [up[up["effect"] > _NOTHING], down[down["effect"] < -_NOTHING]]
        return [row for of in shown for row in of.to_dict("records")]

    def _warnings(self, name: str, several: Sequence[Verdicts], counts: Counts) -> Iterator[str]:
        """Yield what must be known of the numbers.

        Raises:
            DataError: If the captions were judged in different ways, which is not allowed.
        """
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
                if not self._across_judges:
                    raise DataError(
                        f"{words}: that affects scores. Judge all captions in the same way "
                        "(--model caption_file --model_args path=FOLDER judges the captions of a "
                        "folder with sample logs), or compare them as they are with "
                        "--across-judges. lmms-eval-captions agree compares judges on the same "
                        "captions"
                    )
                yield f"{words}: the difference is not the captions' alone"
        if counts.n_other_answers:
            words = (
                f"{name}: other gold answers, or other categories, to the same questions about "
                f"{counts.n_other_answers:,} of {counts.n_captions:,} captions"
            )
            if not self._across_judges:
                raise DataError(
                    f"{words}: judge all captions with the same question file, or compare them as "
                    "they are with --across-judges"
                )
            yield words
        headline = several[0].benchmark.headline
        for captioner in self.captioners:
            results = captioner.results(name)
            if isnan(results.scores.get(headline, 0.0)):
                yield (
                    f"{captioner.name}: the run gives no score for {name} (nan): too much is "
                    "unscored, and what is left may be the easier part"
                )
            yield from (f"{captioner.name}: {name}: {doubt}" for doubt in results.doubts)


_NOTHING: Final = 1e-9
"""A smaller difference of two numbers is rounding."""


def compare_all(
    comparer: Comparer, names: Sequence[str], section: str | None = None, *, is_wanted: bool = False
) -> tuple[list[Compared], list[str]]:
    """Compare captioners on tasks and groups.

    Args:
        comparer: The captioners.
        names: Those that all have.
        section: Of the breakdown; ``None`` for each benchmark's first.
        is_wanted: Whether the user named them: then one without a common question is an error.

    Returns:
        What was compared, and why others were left out.

    Raises:
        DataError: See :meth:`Comparer.aligned`.
        SettingsError: If no benchmark has the section.
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
    if section is not None and not any(section in compared.sections for compared in found):
        sides = [comparer.aligned(compared.name)[0][0] for compared in found]
        known = dict.fromkeys(name for side in sides for name in group_counts(side))
        raise SettingsError(
            f"--group: expected a section of the breakdown, any of {', '.join(known) or 'none'}, "
            f"got {section!r:.80}"
        )
    return found, [str(error) for error in left_out]


def difference_of(a: RatioParts, b: RatioParts, metric: Metric) -> Difference:
    """Return a metric of one captioner minus that of another, within what is possible."""
    found = paired_interval(a, b, scale=metric.scale)
    ends = _within(None if found.low is None else (found.low, found.high or 0.0), metric)
    return found if ends is None else replace(found, low=ends[0], high=ends[1])


def _within(ends: tuple[float, float] | None, metric: Metric) -> tuple[float, float] | None:
    return None if ends is None else (max(ends[0], -metric.span), min(ends[1], metric.span))


def _outcome(difference: Difference, p_value: float | None, metric: Metric) -> Outcome:
    if p_value is None or isnan(difference.difference):
        return "unknown"
    if p_value >= ALPHA:
        return "tied"
    return "better" if (difference.difference > 0) == metric.higher_is_better else "worse"


def _ranking(overall: Sequence[Row], benchmark: Benchmark[Any, Any]) -> list[Ranked]:
    row = next((row for row in overall if row.cell.metric == benchmark.headline), None)
    if row is None or any(isnan(value.value) for value in row.values):
        return []
    sign = -1 if benchmark.metrics[benchmark.headline].higher_is_better else 1
    places = sorted(range(len(row.values)), key=lambda place: sign * row.values[place].value)
    n_better, n_worse = dict.fromkeys(places, 0), dict.fromkeys(places, 0)
    for (a, b), contrast in row.contrasts.items():
        if contrast.outcome in ("better", "worse"):
            winner, loser = (b, a) if contrast.outcome == "better" else (a, b)
            n_better[loser] += 1
            n_worse[winner] += 1
    return [
        Ranked(i, row.values[i].value, 1 + n_better[i], len(places) - n_worse[i]) for i in places
    ]


def flips_of(first: Verdicts, other: Verdicts) -> Document | None:
    """Count the questions by the verdicts of two captioners.

    A question is right if more than half of the judge runs with a verdict say so; a grade is the
    mean over judge runs.

    Returns:
        ``n_gained``: right for the second captioner and wrong for the first; of grades, higher.
        ``n_lost``: the other way round. ``n_same``, and ``is_graded``. ``None`` if questions cannot
        be matched, or it is not known which labels are right.
    """
    import pandas as pd

    benchmark = first.benchmark
    metric = benchmark.metrics[benchmark.headline]
    if not benchmark.counts_ahead or not (benchmark.right or not metric.labels):
        return None
    grades = []
    for verdicts in (first, other):
        rows = verdicts.rows()
        column = first.tables[0].head["values"][benchmark.headline]
        rows = rows[rows["question_index"].notna()].explode(column)
        values = rows[column]
        if benchmark.right:
            values = values.isin(benchmark.right).where(values.notna())
        key = [rows[name] for name in ("task", "video", "copy", "question", "occurrence")]
        key[3] = key[3].fillna("")
        means = pd.to_numeric(values).groupby(key).mean()
        grades.append((means > 0.5).where(means.notna()) if benchmark.right else means)
    apart = (grades[1].astype(float) - grades[0].astype(float)).dropna()
    n_gained, n_lost = int((apart > _NOTHING).sum()), int((apart < -_NOTHING).sum())
    return {
        "n_gained": n_gained, "n_lost": n_lost, "n_same": len(apart) - n_gained - n_lost,
        "is_graded": not benchmark.right,
    }  # fmt: skip


def _own_values(side: RatioParts, scale: float) -> Any:  # noqa: ANN401 - numpy's arrays
    """Return the metric of each video alone, of the terms that it has a part in."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = (side[..., 0] / side[..., 1]).prod(axis=-1)
        known = ~np.isnan(ratios)
        return scale * np.where(known, ratios, 0).sum(axis=(0, 2)) / known.sum(axis=(0, 2))


def _length(verdicts: Verdicts) -> Document:
    captions = [table.captions() for table in verdicts.tables]

    def mean(name: str) -> float | None:
        counts = [n for of in captions if name in of for n in of[name].dropna()]
        return float(np.mean(counts)) if counts else None

    return {
        "n_captions": sum(map(len, captions)),
        "n_empty": sum(int(of["is_empty"].sum()) for of in captions),
        "words": mean("n_words"),
        "tokens": mean("n_tokens"),
    }


def _judge(several: Sequence[Verdicts], names: Sequence[str]) -> str:
    """Name the judge and its runs, of each captioner if they differ."""
    judges = []
    for verdicts in several:
        heads = [table.head for table in verdicts.tables]
        runs = "+".join(sorted({str(head["runs"]) for head in heads}))
        named = " + ".join(sorted({str(head["judge"]) for head in heads}))
        judges.append(f"{named}, {runs} judge run{'' if runs == '1' else 's'}")
    if len(set(judges)) == 1:
        return judges[0]
    return "; ".join(f"{name}: {judge}" for name, judge in zip(names, judges, strict=True))
