"""Rollouts of a captioner in training as trainers hand them over: each a clip and its caption."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final, Literal, get_args

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.clip_protocol import Clip, ClipProtocol, shown
from lmms_eval_captions.lmms_eval_tasks.scorer.columns import (
    name_of_clip,
    plain,
    references_of,
    without_nulls,
)

Column = Literal["clip_id", "questions", "references", "reference", "video"]
"""What a rollout may have beside its caption."""
COLUMNS: Final[tuple[Column, ...]] = get_args(Column)
Row = Mapping[str, object]
"""Column to what one rollout has there."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One caption of a clip."""

    clip: Clip
    caption: str | None
    """``None`` where there is none."""
    video: str | None
    """Name of the clip's file, where it has one."""


def rows_of(
    columns: Mapping[str, object], names: Mapping[Column, str], n_rows: int
) -> list[dict[str, object]]:
    """The rows of columns, without what no reward is made of.

    Args:
        columns: Name to values, shape (n_rows,); what else a trainer hands over is left alone.
        names: What columns are called that are called otherwise.
        n_rows: How many there are.

    Raises:
        ValueError: If a column is of another length, or one that ``names`` tells of is not there.
    """
    for column, name in names.items():
        if name not in columns:
            raise ValueError(f"expected a column {name!r} of {column}, got {sorted(columns)}")
    lists = {
        column: _listed(columns[name], column) for column, name in _named(names) if name in columns
    }
    for column, values in lists.items():
        if len(values) != n_rows:
            raise ValueError(
                f"{column}: expected {n_rows}, one for each completion, got {len(values)}"
            )
    return [{column: values[index] for column, values in lists.items()} for index in range(n_rows)]


def row_of_verl(ground_truth: object, extra_info: object, *, asks: bool) -> dict[str, object]:
    """The row of what verl hands over with one rollout.

    Args:
        ground_truth: The clip's questions, or references; or a mapping of columns. JSON is read.
        extra_info: A mapping of columns, or nothing.
        asks: Whether the ground truth is questions rather than references.
    """
    truth = _of_json(plain(ground_truth))
    info = _of_json(plain(extra_info))
    row: dict[str, object] = dict(info) if isinstance(info, Mapping) else {}
    if isinstance(truth, Mapping) and not {"question", "answer"} <= set(truth):
        return {**row, **{name: value for name, value in truth.items() if value is not None}}
    if truth is not None and truth != "":
        row["questions" if asks else "references"] = truth
    return row


def rollout_of(row: Row, completion: object, protocol: ClipProtocol, cache: Path) -> Rollout:
    """One rollout.

    Args:
        row: What is known of its clip.
        completion: The captioner's text, or messages the last of which holds it.
        protocol: What it is scored by.
        cache: Where frames are kept that a judge is shown.

    Raises:
        DataError: If the clip has no name, or its questions are none.
    """
    video: Any = row.get("video")
    name = _file_of(video)
    given = plain(row.get("clip_id"))
    clip_id = name if given is None or given == "" else name_of_clip(given)
    if clip_id is None:
        raise DataError(
            "expected a column clip_id, or video with the name of a file: rewards of one clip "
            "are compared with one another, and no clip may be of the evaluation set"
        )
    clip = Clip(
        clip_id=clip_id,
        questions=_questions(row["questions"], clip_id) if "questions" in row else None,
        references=_references(row),
        frames=(video if name is None else name) if "video" in protocol.needs else None,
        cache=cache,
    )
    return Rollout(clip, text_of(completion), name)


def text_of(completion: object) -> str | None:
    """The text of a completion, ``None`` where it has none.

    >>> text_of([{"role": "assistant", "content": [{"type": "text", "text": "A dog."}]}])
    'A dog.'
    """
    if completion is None or isinstance(completion, str):
        return completion
    if isinstance(completion, Mapping):
        said_text = completion.get("content", completion.get("text"))
        # The captioner has spoken, and said nothing.
        return text_of(said_text) or ""
    if not isinstance(completion, Sequence):
        raise DataError(
            f"expected a completion as text, or as messages, got {type(completion).__name__}"
        )
    messages = [message for message in completion if isinstance(message, Mapping)]
    if any("role" in message for message in messages):
        said = [message for message in messages if message.get("role") == "assistant"]
        return text_of(said[-1]) if said else None
    parts = [text for part in completion if (text := text_of(part)) is not None]
    return "".join(parts) if parts else None


def _listed(values: object, column: str) -> list[object]:
    if not isinstance(values, Iterable) or isinstance(values, str):
        raise ValueError(  # noqa: TRY004 - it is of the wrong shape
            f"{column}: expected a list with one value for each completion, got {values!r:.80}"
        )
    return list(values)


def _named(names: Mapping[Column, str]) -> list[tuple[Column, str]]:
    return [(column, names.get(column, column)) for column in COLUMNS]


def _questions(value: object, clip_id: str) -> list[object]:
    """Questions as the official files have them, whatever a table has made of them.

    >>> _questions({"question": ["Who?", "Where?"], "answer": ["A dog", "Here"]}, "a")[1]
    {'question': 'Where?', 'answer': 'Here'}
    """
    read = _of_json(plain(value))
    if read is None or read == "":
        return []
    if isinstance(read, Mapping):  # a list of records, column by column
        columns = {name: plain(values) for name, values in read.items()}
        if not all(isinstance(values, list) for values in columns.values()):
            raise DataError(f"clip {clip_id!r}: expected a list of questions, got {shown(value)}")
        read = [
            dict(zip(columns, record, strict=True))
            for record in zip(*columns.values(), strict=True)
        ]
    if not isinstance(read, Sequence) or isinstance(read, str):
        raise DataError(f"clip {clip_id!r}: expected a list of questions, got {shown(value)}")
    return [without_nulls(question) for question in read]


def _references(row: Row) -> list[str]:
    told = [_of_json(plain(row.get(name))) for name in ("references", "reference")]
    return [reference for each in told for reference in references_of(each)]


def _file_of(video: object) -> str | None:
    """The name of a video's file, however a table holds it; ``None`` where it is frames."""
    if isinstance(video, str | PathLike):
        return fspath(video)
    if isinstance(video, Mapping):  # a file that a table has not read
        return next((_file_of(video[key]) for key in ("path", "video") if video.get(key)), None)
    if isinstance(video, Sequence) and len(video) == 1:
        return _file_of(video[0])
    return None


def _of_json(value: object) -> object:
    """What JSON of a list or an object says; anything else as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return value
    try:
        read: object = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return read
