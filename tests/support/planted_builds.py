"""Precision and recall of a build's filters on planted faults, from the files of its stages."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from builder_replies import Told
from lmms_eval_captions.construction.pipeline import read_stage, stage_files
from planted_questions import MALFORMATIONS, Fate, Malformation, Place, names_in

Row = Mapping[str, Any]
GOAL: Final = 0.95
"""Least precision and recall of each filter."""


@dataclass(frozen=True, slots=True)
class Recovered:
    fault: str
    n_planted: int
    """Questions with the fault, of those that came to the filter."""
    n_dropped: int
    """Questions that the filter took for such."""
    n_right: int

    @property
    def precision(self) -> float:
        return self.n_right / self.n_dropped if self.n_dropped else float("nan")

    @property
    def recall(self) -> float:
        return self.n_right / self.n_planted if self.n_planted else float("nan")

    def reaches(self, goal: float = GOAL) -> bool:
        return self.precision >= goal and self.recall >= goal

    def text(self) -> str:
        """A line of a table."""
        return (
            f"| {self.fault} | {self.n_planted:,} | {self.n_dropped:,} | "
            f"{self.precision:.1%} | {self.recall:.1%} |"
        )


def recovered(kind: str, folder: Path, told: Told) -> list[Recovered]:
    stages = {path.stem[3:]: read_stage(path)[1] for path in stage_files(folder)}
    return list(_OF_KIND[kind](stages, told))


def _by_row(
    fault: str,
    rows: Sequence[Row],
    is_planted: Callable[[Row], bool],
    reason: str,
    *,
    field: str = "dropped",
) -> Recovered:
    """A filter that takes each question by itself, and writes the reason into a field."""
    planted = {row["id"] for row in rows if is_planted(row)}
    dropped = {row["id"] for row in rows if str(row.get(field, "")).startswith(reason)}
    return Recovered(fault, len(planted), len(dropped), len(planted & dropped))


def _has(fate: Fate, kind: str, told: Told) -> Callable[[Row], bool]:
    return lambda row: told.planted(_object(row)).fate(kind) == fate


def _object(row: Row) -> str:
    return names_in(row["question"])[-1]


def _capquiz(stages: Mapping[str, Sequence[Row]], told: Told) -> Iterable[Recovered]:
    for malformation, reason in MALFORMATIONS.items():
        yield _by_row(
            f"malformed: {malformation}",
            stages["form"],
            partial(_is_malformed, malformation=malformation, told=told),
            reason,
        )
    yield _by_row(
        "answered blind",
        stages["blind"],
        lambda row: told.planted(_object(row)).is_blind,
        "blind check",
    )
    yield _duplicates(stages["similar"])
    yield _wrong(stages["sighted"], told, "capquiz")


def _is_malformed(row: Row, malformation: Malformation, told: Told) -> bool:
    return _place(row, told).malformation == malformation


def _place(row: Row, told: Told) -> Place:
    number = int(row["id"].rsplit("/", 1)[-1])
    clip = _object(row).split("-")[0]
    return Place(clip, row["writer"], number, told.shares, told.seed, told.writers)


def _duplicates(rows: Sequence[Row]) -> Recovered:
    groups: defaultdict[tuple[str, str, str], Counter[bool]] = defaultdict(Counter)
    for row in rows:
        groups[row["video"], _object(row), row["answer"]]["dropped" in row] += 1
    n_dropped = sum(group[True] for group in groups.values())
    n_right = sum(min(group[True], group.total() - 1) for group in groups.values())
    n_planted = sum(group.total() - 1 for group in groups.values())
    return Recovered("duplicate", n_planted, n_dropped, n_right)


def _wrong(rows: Sequence[Row], told: Told, kind: str) -> Recovered:
    return _by_row("wrong answer", rows, _has("wrong", kind, told), "sighted check")


def _vcapsbench(stages: Mapping[str, Sequence[Row]], told: Told) -> Iterable[Recovered]:
    reasons: Mapping[Fate, str] = {"contradicted": "contradicts", "one road": "only one road"}
    for fate, reason in reasons.items():
        is_planted = _has(fate, "vcapsbench", told)
        yield _by_row(fate, stages["merge"], is_planted, f"merge: {reason}")
    yield _wrong(stages["sighted"], told, "vcapsbench")


def _vdc(stages: Mapping[str, Sequence[Row]], told: Told) -> Iterable[Recovered]:
    yield _wrong(stages["sighted"], told, "vdc")


def _vidcapbench(stages: Mapping[str, Sequence[Row]], told: Told) -> Iterable[Recovered]:
    flags: Mapping[Fate, str] = {"unstable": "inconsistent", "wrong": "always wrong"}
    for fate, flag in flags.items():
        is_planted = _has(fate, "vidcapbench", told)
        yield _by_row(f"{fate} (flagged)", stages["flagged"], is_planted, flag, field="flag")


_OF_KIND: Final[
    Mapping[str, Callable[[Mapping[str, Sequence[Row]], Told], Iterable[Recovered]]]
] = {
    "capquiz": _capquiz,
    "vcapsbench": _vcapsbench,
    "vdc": _vdc,
    "vidcapbench": _vidcapbench,
}
KINDS: Final = tuple(_OF_KIND)
"""Kinds whose filters can be measured."""
