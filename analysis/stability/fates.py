"""What becomes of each question of an official file where a benchmark is split."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from lmms_eval_captions.analysis.stability.opinions import Asked, Opinions
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.metrics.agreement import KNOWN_DIFFERENT, KNOWN_SAME

Question = tuple[str, str, int]
"""A question of a file: its video, its text, and how often that text stood before it."""
Part = Literal["stable", "unstable"]
Fate = Literal["stable", "other group", "different", "not known", "never judged"]
PARTS: Final[tuple[Part, ...]] = ("stable", "unstable")
FATES: Final[Mapping[Fate, str]] = {
    "stable": "every captioner's caption got the same verdict in all judge runs",
    "other group": "not so, and kept because only other groups were to be split off",
    "different": "a captioner's caption got different verdicts",
    "not known": "no verdicts differ, but one is missing: unscored, or not asked of a captioner",
    "never judged": "asked of no captioner",
}
"""What may become of a question, and why."""
PART_OF: Final[Mapping[Fate, Part]] = {
    "stable": "stable",
    "other group": "stable",
    "different": "unstable",
    "not known": "unstable",
    "never judged": "unstable",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """Which questions are unstable."""

    within: float
    """Numbers are the same that are at most so far apart, as a share of their scale."""
    groups: tuple[str, ...] = ()
    """Groups whose unstable questions alone are split off; none for all."""


def require_groups(several: Sequence[Opinions], groups: Collection[str]) -> None:
    """Raise where a group is in no section.

    Raises:
        DataError: If so; the text lists those that there are.
    """
    known = dict.fromkeys(name for opinions in several for _, name in opinions.groups)
    for name in groups:
        if name not in known:
            raise DataError(
                f"--only: expected any of {', '.join(list(known)[:40])}, got {name!r:.80}"
            )


def fates_of(
    official: Sequence[Question], tasks: Collection[str], several: Sequence[Opinions], rule: Rule
) -> dict[Question, Fate]:
    """What becomes of each question of a file, in the file's order.

    Args:
        official: The questions of the file.
        tasks: Names of the tasks that ask them.
        several: What was judged.
        rule: Which are unstable.
    """
    known: dict[Question, dict[str, bool | None]] = {}
    chosen: set[Question] = set()
    for opinions in several:
        for (task, video_id, text, place), said, is_inside in _rows(opinions, rule.groups):
            if task in tasks:
                known.setdefault((video_id, text, place), {})[task] = said
                if is_inside:
                    chosen.add((video_id, text, place))
    return {
        question: _fate(known.get(question), len(tasks), not rule.groups or question in chosen)
        for question in official
    }


def _rows(opinions: Opinions, groups: Collection[str]) -> Iterator[tuple[Asked, bool | None, bool]]:
    """Each question, whether all captioners have the same verdict, whether it is in a group."""
    headline = opinions.headline
    differ = (headline == KNOWN_DIFFERENT).any(axis=0).tolist()
    same = (headline == KNOWN_SAME).all(axis=0).tolist()
    inside = {
        place for (_, name), places in opinions.groups.items() if name in groups for place in places
    }
    for place, asked in enumerate(opinions.asked):
        said = False if differ[place] else True if same[place] else None
        yield asked, said, place in inside


def _fate(of_tasks: Mapping[str, bool | None] | None, n_tasks: int, is_chosen: bool) -> Fate:
    if of_tasks is None:
        return "never judged"
    said = of_tasks.values()
    if all(said) and len(said) == n_tasks:
        return "stable"
    if not is_chosen:
        return "other group"
    return "different" if False in said else "not known"
