"""Reading how a model groups questions: nested lists of their indices.

Source: CapQuiz, figure 7: groups of questions, and in each groups of answers; every index once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.objects import outermost, said

_PART: Final = 5
"""A reply is read where at most this part of the indices, a fifth, is missing or unknown."""


def read_clusters(reply: Reply, n: int) -> tuple[tuple[tuple[int, ...], ...], ...] | None:
    """Groups of questions, each of groups of answers, as CapQuiz's figure 7 asks for.

    Args:
        reply: What the model wrote.
        n: How many questions it was given; their indices are 0 to n - 1.

    Returns:
        Every index once: one that stands twice counts where it stands first, one that is missing
        is a group of its own. ``None`` where there is no list of three levels, where two differ,
        or where more than a fifth of the indices is missing or unknown.

    >>> read_clusters(Reply("[[[0, 2], [1]], [[3]]]", "stop"), 5)
    (((0, 2), (1,)), ((3,),), ((4,),))
    """
    levels = _levels(reply, 3)
    indices = _Indices(n)
    groups = [
        tuple(part for part in (indices.new(part) for part in _lists(group)) if part)
        for group in levels
    ]
    if not levels or not indices.are_enough:
        return None
    return (*filter(None, groups), *(((index,),) for index in indices.missing))


def read_groups(reply: Reply, n: int) -> tuple[tuple[int, ...], ...] | None:
    """Groups of questions in a list of two levels, read as :func:`read_clusters` reads three.

    >>> read_groups(Reply("[[0, 2], [1]]", "stop"), 3)
    ((0, 2), (1,))
    """
    levels = _levels(reply, 2)
    indices = _Indices(n)
    groups = [indices.new(group) for group in levels]
    if not levels or not indices.are_enough:
        return None
    return (*filter(None, groups), *((index,) for index in indices.missing))


class _Indices:
    """Which indices were named."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._named: set[int] = set()
        self._n_unknown = 0

    def new(self, values: Sequence[object]) -> tuple[int, ...]:
        """Those of a group's indices that exist and stand in no earlier group."""
        group: list[int] = []
        for value in values:
            index = _index(value)
            if index is None or not 0 <= index < self._n:
                self._n_unknown += 1
            elif index not in self._named:
                self._named.add(index)
                group.append(index)
        return tuple(group)

    @property
    def missing(self) -> list[int]:
        return [index for index in range(self._n) if index not in self._named]

    @property
    def are_enough(self) -> bool:
        return max(len(self.missing), self._n_unknown) * _PART <= self._n


def _levels(reply: Reply, depth: int) -> Sequence[Sequence[object]]:
    """The outer list of the reply's one list of so many levels; empty where there is none."""
    found = outermost(said(reply.text), "[")
    lists = [value for value in found.values if _depth(value) == depth]
    if found.is_cut or not lists or any(other != lists[0] for other in lists):
        return []
    return _lists(lists[0])


def _depth(value: object) -> int | None:
    """Levels of lists around indices, ``None`` where they differ."""
    if not isinstance(value, list | tuple):
        return None if _index(value) is None else 0
    depths = {_depth(inner) for inner in value}
    depth = depths.pop() if len(depths) == 1 else None
    return None if depth is None else depth + 1


def _lists(value: object) -> list[Sequence[object]]:
    return [inner for inner in value if isinstance(inner, list)] if isinstance(value, list) else []


def _index(value: object) -> int | None:
    """An index, also where it was written as a text."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
