"""Several captioners on each task and group that all of them have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any, Final

from lmms_eval_captions.analysis.old_compare.flips import Flips, flips_of
from lmms_eval_captions.analysis.old_compare.lead import Lead, lead_of
from lmms_eval_captions.analysis.old_compare.lengths import Length, length_of
from lmms_eval_captions.analysis.old_compare.moved import (
    Moved,
    moved_groups,
    moved_videos,
)
from lmms_eval_captions.analysis.old_compare.rows import Row, rows_of, rows_of_tasks
from lmms_eval_captions.analysis.verdicts.alignment import Aligned, Counts, align
from lmms_eval_captions.analysis.verdicts.captioners import Captioner
from lmms_eval_captions.analysis.verdicts.likeness import differences
from lmms_eval_captions.analysis.verdicts.parts import Group
from lmms_eval_captions.analysis.verdicts.shown import (
    groups_of,
    sections_of,
    tasks_of_groups,
)
from lmms_eval_captions.analysis.verdicts.verdicts import Verdicts
from lmms_eval_captions.analysis.verdicts.weighed_verdicts import (
    is_weighed,
    notes_of,
    weighed_verdicts,
)
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark

TASKS: Final = "tasks"
"""Section in which each task of a group is one group of questions."""
_MOST_GROUPS: Final = 40
"""Groups of a section that are compared, the largest."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A captioner beside the first, question by question."""

    other: int
    """Place of the captioner."""
    flips: Flips | None
    """``None`` where questions cannot be set side by side."""
    videos: Sequence[Moved]
    groups: Sequence[Moved]


@dataclass(frozen=True, slots=True)
class Compared:
    """A task or a group of all captioners, on the questions that all have a verdict on."""

    name: str
    benchmark: Benchmark[Any, Any]
    counts: Counts
    overall: Sequence[Row]
    """A row for each metric that can be computed."""
    sections: Mapping[str, Sequence[Row]]
    """Section to the rows of its groups, of every metric; :data:`TASKS` for those of a group."""
    n_left_out: Mapping[str, int]
    """Section to its groups beyond those that are compared."""
    pairs: Sequence[Pair]
    lead: Lead | None
    """Of three captioners or more."""
    lengths: Sequence[Length]
    judge: str
    """Which judge it was, and in how many runs, of each captioner where they differ."""
    warnings: Sequence[str]
    """What a reader must know before any number is used."""


class NothingInCommonError(DataError):
    """There is no question that all captioners have a verdict on."""


@dataclass(slots=True)
class Comparer:
    """Reads and aligns each task and group of some captioners once.

    Args:
        captioners: At least two, the one that the others are compared with first.
        across_judges: Whether they may have been judged in different ways.
        read: What gives a captioner's verdicts on a task or a group.
    """

    captioners: Sequence[Captioner]
    across_judges: bool = False
    read: Callable[[Captioner, str], Verdicts] = Captioner.verdicts_in_part
    _aligned: dict[str, tuple[Aligned, list[str]]] = field(default_factory=dict)

    def aligned(self, name: str) -> tuple[Aligned, list[str]]:
        """The verdicts on what all captioners have, and what is to be said of them.

        Raises:
            DataError: If the captioners were judged in different ways.
            NothingInCommonError: If no question has a verdict for all.
        """
        if name not in self._aligned:
            several = [self.read(captioner, name) for captioner in self.captioners]
            samples = list(notes_of(several, self._names()))
            aligned = align(list(map(weighed_verdicts, several)) if samples else several)
            if not aligned.counts.n_questions:
                raise NothingInCommonError(
                    f"{name}: there is no question that all of {', '.join(self._names())} have a "
                    f"verdict on ({aligned.counts.words() or 'none was asked'})"
                )
            warnings = [
                *samples,
                *self._warnings_of_judging(several),
                *self._warnings_of_answers(name, aligned.counts),
                *self._warnings_of_scores(name, several[0].benchmark.headline),
            ]
            self._aligned[name] = aligned, warnings
        return self._aligned[name]

    def compare(self, name: str, section: str | None = None) -> Compared:
        """Compare the captioners on a task or a group.

        Args:
            name: One that all have.
            section: Of the breakdown, ``None`` for the benchmark's first; one that the benchmark
                has not is none.

        Raises:
            DataError: As :meth:`aligned`.
        """
        aligned, warnings = self.aligned(name)
        several, first = aligned.verdicts, aligned.verdicts[0]
        metrics = list(first.benchmark.metrics)
        groups = groups_of(first, section)
        sections, n_left_out = _sections(several, groups)
        pairs = [
            Pair(
                place,
                flips_of(first, other),
                moved_videos(first, other),
                moved_groups(first, other, but=groups[0][0] if groups else None),
            )
            # Verdicts of samples are weighed, and of different questions.
            if not is_weighed(first)
            else Pair(place, None, (), ())
            for place, other in enumerate(several[1:], start=1)
        ]
        lengths = [
            length_of(verdicts, captioner.runs[name])
            for verdicts, captioner in zip(several, self.captioners, strict=True)
        ]
        return Compared(
            name, first.benchmark, aligned.counts, rows_of(several, [None], metrics=metrics),
            sections, n_left_out, pairs, lead_of(several), lengths,
            _judge(several, self._names()), warnings,
        )  # fmt: skip

    def rows(self, name: str) -> list[Row]:
        """The rows of a task or a group, overall and of the benchmark's first section.

        Args:
            name: One that all have.

        Raises:
            DataError: As :meth:`aligned`.
        """
        several = self.aligned(name)[0].verdicts
        sections, _ = _sections(several, groups_of(several[0], None))
        overall = rows_of(several, [None], metrics=list(several[0].benchmark.metrics))
        return [*overall, *(row for rows in sections.values() for row in rows)]

    def _warnings_of_judging(self, several: Sequence[Verdicts]) -> Iterator[str]:
        """What is to be said of how the captioners were judged.

        Raises:
            DataError: If that moves scores, and captioners across judges are not asked for.
        """
        for task in several[0].tasks:
            of_task = [
                next(other for other in verdicts.tasks if other.task == task.task)
                for verdicts in several
            ]
            for name, values in differences(of_task).items():
                told = zip(values, self._names(), strict=True)
                words = (
                    f"{task.task}: {name} is "
                    f"{', '.join(f'{value} in {captioner}' for value, captioner in told)}"
                )
                if not self.across_judges:
                    raise DataError(
                        f"{words}: that moves scores, and the difference would not be the "
                        "captions' alone. Judge all captions in one way (--model caption_file "
                        "--model_args path=FOLDER judges those of a folder with sample logs), or "
                        "compare them as they are with --across-judges. The same captions judged "
                        "by several judges are compared by lmms-eval-captions agree"
                    )
                yield f"{words}: the difference is not the captions' alone"

    def _warnings_of_answers(self, name: str, counts: Counts) -> Iterator[str]:
        """What is to be said of gold answers.

        Raises:
            DataError: If they differ, and captioners across judges are not asked for.
        """
        if not counts.n_other_answers:
            return
        words = (
            f"{name}: other gold answers, or other categories, to the same questions about "
            f"{counts.n_other_answers:,} of {counts.n_captions:,} captions"
        )
        if not self.across_judges:
            raise DataError(
                f"{words}: judge all captions with one and the same question file, or compare them "
                "as they are with --across-judges"
            )
        yield words

    def _warnings_of_scores(self, name: str, headline: str) -> Iterator[str]:
        """What is to be said of the captioners' own scores."""
        for captioner in self.captioners:
            results = captioner.runs[name].tasks[name]
            if isnan(results.scores.get(headline, 0.0)):
                yield (
                    f"{captioner.name}: the run gives no score for {name} (nan): too much is "
                    "unscored, and what is left may be the easier part"
                )
            for doubt in results.doubts:
                yield f"{captioner.name}: {name}: {doubt}"

    def _names(self) -> list[str]:
        return [captioner.name for captioner in self.captioners]


def _sections(
    several: Sequence[Verdicts], groups: Sequence[Group]
) -> tuple[dict[str, Sequence[Row]], dict[str, int]]:
    """Section to the rows of its groups, and to its groups beyond those.

    Args:
        several: Of all captioners, aligned.
        groups: Those of a section of the breakdown; none where it has none.
    """
    first = several[0]
    metrics = list(first.benchmark.metrics)
    sections: dict[str, Sequence[Row]] = {}
    tasks = tasks_of_groups(first, groups)
    if len(first.tasks) > 1 and not tasks:
        sections[TASKS] = rows_of_tasks(several, metrics=metrics)
    if not groups:
        return sections, {}
    shown, name = groups[:_MOST_GROUPS], groups[0][0]
    sections[name] = (
        rows_of_tasks(several, metrics=metrics, groups=tasks)
        if tasks
        else rows_of(several, shown, metrics=metrics)
    )
    return sections, {name: len(groups) - len(shown)}


def compare_all(
    comparer: Comparer, names: Sequence[str], section: str | None = None, *, is_asked: bool = False
) -> tuple[list[Compared], list[str]]:
    """Compare captioners on tasks and groups.

    Args:
        comparer: The captioners.
        names: Those that all have.
        section: Of the breakdown, ``None`` for each benchmark's first.
        is_asked: Whether all of these must be compared; otherwise those are left out that have no
            question in common, unless that are all.

    Returns:
        What was compared, and what is to be said of the others.

    Raises:
        DataError: As :meth:`Comparer.aligned`.
        SettingsError: If no benchmark has the section.
    """
    found: list[Compared] = []
    left_out: list[NothingInCommonError] = []
    for name in names:
        try:
            found.append(comparer.compare(name, section))
        except NothingInCommonError as error:
            left_out.append(error)
    if left_out and (is_asked or not found):
        raise left_out[0]
    if section is not None and not any(section in compared.sections for compared in found):
        firsts = [comparer.aligned(compared.name)[0].verdicts[0] for compared in found]
        there = dict.fromkeys(name for verdicts in firsts for name in sections_of(verdicts))
        raise SettingsError(
            f"--group: expected a section of the breakdown, any of {', '.join(there) or 'none'}, "
            f"got {section!r:.80}"
        )
    return found, [str(error) for error in left_out]


def _judge(several: Sequence[Verdicts], names: Sequence[str]) -> str:
    """Which judge it was, and in how many runs."""
    told = []
    for verdicts in several:
        records = [task.captions[0] for task in verdicts.tasks if task.captions]
        judges = " + ".join(sorted({record.judge for record in records}))
        runs = "+".join(sorted({str(record.runs) for record in records}))
        told.append(f"{judges}, {runs} judge run{'' if runs == '1' else 's'}")
    if len(set(told)) == 1:
        return told[0]
    return "; ".join(f"{name}: {words}" for name, words in zip(names, told, strict=True))
