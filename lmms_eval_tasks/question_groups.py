"""Which questions of which captions each group of a breakdown holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL, Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import Names, Values

Cell = dict[int, list[list[int]]]
"""The questions of one group: places of captions, ascending, to the places of their questions in
the group, in each judge run."""


class Grouped(Protocol):
    """What a breakdown needs of a caption; a :class:`CaptionRecord` has it."""

    @property
    def video_id(self) -> str:
        """Its video: what it says of one video is one piece of evidence."""

    @property
    def values(self) -> Mapping[str, Values]:
        """Metric to what it reads."""

    @property
    def groups(self) -> Mapping[str, Names]:
        """Section to the group of each question."""


def cells_of(
    benchmark: Benchmark[Any, Any], captions: Sequence[Grouped]
) -> dict[tuple[str, str], Cell]:
    """Section and group, as they are met, to the questions that count there.

    Args:
        benchmark: Whose captions.
        captions: What was judged.
    """
    n_runs = max(map(_n_runs, captions), default=0)
    cells: dict[tuple[str, str], Cell] = {}
    for caption_place, caption in enumerate(captions):
        for run in range(_n_runs(caption)):
            for pair, places in _places(benchmark, caption, run).items():
                cell = cells.setdefault(pair, {})
                cell.setdefault(caption_place, [[] for _ in range(n_runs)])[run] = places
    return cells


def n_runs_of(cell: Cell) -> int:
    """Judge runs of all captions of a cell, which has one."""
    return len(next(iter(cell.values())))


def values_in(
    cell: Cell, captions: Sequence[Grouped], metric: str, n_values: int
) -> list[list[list[Any]]]:
    """What a metric reads of the questions of a group.

    Args:
        cell: The questions.
        captions: All of them.
        metric: Which.
        n_values: Values that it reads of each question.

    Returns:
        Shape (n_runs, n_captions, n_values), of the captions of the cell in its order; empty for a
        caption that has no question there in a run.
    """
    runs: list[list[list[Any]]] = [[] for _ in range(n_runs_of(cell))]
    for caption, places_of_runs in cell.items():
        of_runs = captions[caption].values[metric]
        for run, places in enumerate(places_of_runs):
            # A caption may be there in fewer runs than others.
            values = of_runs[run] if places else ()
            runs[run].append(
                [values[place] for place in places]
                if n_values == 1
                else [
                    value
                    for place in places
                    for value in values[place * n_values : (place + 1) * n_values]
                ]
            )
    return runs


def _n_runs(caption: Grouped) -> int:
    return max(map(len, caption.values.values()), default=0)


def _places(
    benchmark: Benchmark[Any, Any], caption: Grouped, run: int
) -> dict[tuple[str, str], list[int]]:
    """Section and group to the places of the caption's questions that count there in a run."""
    headline = benchmark.metrics[benchmark.headline]
    n_questions = len(caption.values[benchmark.headline][run]) // headline.n_values
    places = {ALL: list(range(n_questions))} if n_questions else {}
    for section, names in caption.groups.items():
        for place, name in zip(range(n_questions), names[run], strict=True):
            if name is not None:
                places.setdefault((section, name), []).append(place)
    return places
