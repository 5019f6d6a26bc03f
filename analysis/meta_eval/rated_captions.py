"""Captions that people rated, as published files of other benchmarks hold them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import parse_json, read_whole

"""Of a published file that is read whole: those of COCO and FOIL have some 30 MB."""


@dataclass(frozen=True, slots=True)
class RatedCaption:
    """One candidate caption with its references and what annotators say of it."""

    source: str
    """Image or video that it is of."""
    candidate: str
    references: tuple[str, ...]
    ratings: tuple[float, ...]
    """One for each annotator; ``nan`` where one has none."""


@dataclass(frozen=True, slots=True)
class RatedSet:
    """A published set of rated captions, and how its table correlates metrics with them."""

    title: str
    items: Sequence[RatedCaption]
    """In the order of the file; their places there are their names."""
    counting: str
    """What Kendall's tau is of, for the head of the report."""
    by_annotator: bool = False
    """Whether it is the mean over annotators of the tau with each of them, in place of that with
    all ratings together."""
    knows_annotators: bool = False
    """Whether the n-th rating of all items is the same person's."""
    decimals: int | None = None
    """To which a metric is rounded before, ``None`` for not at all."""
    paper: Mapping[str, str] = field(default_factory=dict)
    """Metric to what the paper prints, tau-b / tau-c x 100."""


def read_json_file(path: Path) -> object:
    """What a published JSON file holds.

    Raises:
        DataError: If it is not there or no JSON.
    """
    try:
        return parse_json(read_whole(path))
    except FileNotFoundError as error:
        raise DataError(
            f"no file {path}; --data names the folder that it is in, as its authors publish it"
        ) from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}; download it again") from error


def texts_of(value: object, where: str) -> tuple[str, ...]:
    """A list of at least one text.

    Raises:
        DataError: If it is anything else.
    """
    if not isinstance(value, list) or not value or not all(isinstance(v, str) for v in value):
        raise DataError(f"{where}: expected a list of texts, got {value!r:.80}")
    return tuple(value)


def write_items(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write what a metric of one's own is to score, a line of JSON each.

    Raises:
        DataError: If the file cannot be written.
    """
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error}") from error
