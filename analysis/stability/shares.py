"""Shares of questions whose verdict is the same in all judge runs, with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from lmms_eval_captions.analysis.stability.opinions import TASKS, Opinions
from lmms_eval_captions.analysis.verdicts.parts import Group
from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL
from lmms_eval_captions.metrics.agreement import KNOWN_SAME, UNKNOWN
from lmms_eval_captions.metrics.intervals import Interval, intervals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmms_eval_captions.metrics.parts import RatioParts

METRICS: Final = "metrics"
"""Section of what else is read of a judgement than what the headline reads."""
_MOST_GROUPS: Final = 40
"""Groups of a section that are shown, as in a breakdown."""
_BOUNDS: Final = (0.0, 100.0)


@dataclass(frozen=True, slots=True)
class Share:
    """A share of questions."""

    n_known: int
    """Those of which it is known whether their verdict is the same."""
    n_same: int
    interval: Interval
    """Of the percentage of those, clustered by video."""


@dataclass(frozen=True, slots=True)
class Row:
    """A group of questions."""

    section: str
    name: str
    n_questions: int
    captioners: tuple[Share, ...]
    together: Share
    """The questions that are the same for every captioner, of those known for every one."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The groups of a task or group that are shown."""

    rows: list[Row]
    n_others: dict[str, int]
    """Section to its groups that are left out, the smallest."""


def rows_of(opinions: Opinions) -> Rows:
    """The shares of every group of the breakdown, and of what else metrics read."""
    places = np.unique([video for _, video, _, _ in opinions.asked], return_inverse=True)[1]
    chosen, n_others = _chosen(opinions)
    cells = [
        (group, opinions.headline[:, indices], places[indices])
        for group, indices in ((group, opinions.groups[group]) for group in chosen)
    ]
    others = ((name, same) for name, same in opinions.same.items())
    next(others)
    cells += [((METRICS, name), same, places) for name, same in others]
    of_cells = [_cell(same, videos) for _, same, videos in cells]
    found = iter(
        intervals([c.parts for cell in of_cells for c in cell], scale=100.0, bounds=_BOUNDS)
    )
    rows = []
    for (group, same, _), cell in zip(cells, of_cells, strict=True):
        shares = [Share(c.n_known, c.n_same, next(found)) for c in cell]
        rows.append(Row(*group, same.shape[1], tuple(shares[:-1]), shares[-1]))
    return Rows(rows, n_others)


@dataclass(frozen=True, slots=True)
class _Counted:
    n_known: int
    n_same: int
    parts: RatioParts


def _cell(same: NDArray[np.int8], videos: NDArray[np.intp]) -> list[_Counted]:
    """Each captioner's questions, and those of all together."""
    is_known = same != UNKNOWN
    of_all = is_known.all(axis=0)
    known = [*is_known, of_all]
    equal = [*(same == KNOWN_SAME), of_all & (same == KNOWN_SAME).all(axis=0)]
    return [_counted(k, e, videos) for k, e in zip(known, equal, strict=True)]


def _counted(
    known: NDArray[np.bool_], equal: NDArray[np.bool_], videos: NDArray[np.intp]
) -> _Counted:
    n_videos = int(videos.max()) + 1 if videos.size else 1
    parts = np.zeros((1, n_videos, 1, 1, 2))
    for side, flags in enumerate((equal, known)):
        parts[0, :, 0, 0, side] = np.bincount(videos, weights=flags, minlength=n_videos)
    return _Counted(int(known.sum()), int(equal.sum()), parts)


def _chosen(opinions: Opinions) -> tuple[list[Group], dict[str, int]]:
    """The groups that are shown: those that the benchmark names, then the largest."""
    chosen, n_others = [], {}
    for section, named in _sections(opinions).items():
        names = [name for of, name in opinions.groups if of == section]
        names.sort(key=lambda name: -len(opinions.groups[section, name]))
        names = [*(n for n in named if n in names), *(n for n in names if n not in named)]
        most = max(_MOST_GROUPS, len(named))
        chosen += [(section, name) for name in names[:most]]
        if len(names) > most:
            n_others[section] = len(names) - most
    return chosen, n_others


def _sections(opinions: Opinions) -> dict[str, Sequence[str]]:
    """Every section with the groups that the benchmark names in it, in their order."""
    section, name = ALL
    named = {section: (name,), TASKS: (), **opinions.benchmark.sections}
    return {**named, **{other: () for other, _ in opinions.groups if other not in named}}
