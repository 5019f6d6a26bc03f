"""From the rows of a table to clips, and what is wrong with those that are none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.clip_protocol import Clip, shown
from lmms_eval_captions.lmms_eval_tasks.scorer.columns import (
    caption_of,
    references_of,
    without_nulls,
)
from lmms_eval_captions.model_wrappers.no_caption import NoCaption

if TYPE_CHECKING:
    import pyarrow as pa

    from lmms_eval_captions.lmms_eval_tasks.commands.score.spec import ScoreSpec


NO_CAPTION: Final = "why there is no caption"
"""Column of those that were to be written and are not there."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row with its clip, or why it has none."""

    clip_id: str | None
    caption: str | None
    clip: Clip | None
    problem: str | None = None


def rows_of(table: pa.Table, spec: ScoreSpec) -> Iterator[Row]:
    """The rows of a table, in its order.

    Args:
        table: Has the columns that the spec needs.
        spec: What is scored.
    """
    names = {name: spec.name_of(name) for name in ("clip_id", "caption", *spec.protocol.needs)}
    has_reasons = NO_CAPTION in table.column_names
    read = [*names.values(), *([NO_CAPTION] if has_reasons else [])]
    for row in table.select(read).to_pylist():
        values = {name: row[column] for name, column in names.items()}
        clip_id, caption = values["clip_id"], values["caption"]
        if has_reasons and row[NO_CAPTION] is not None:
            caption = values["caption"] = NoCaption(row[NO_CAPTION])
        try:
            clip = _clip(values, spec)
        except DataError as error:
            yield Row(None if clip_id is None else str(clip_id), None, None, str(error))
        else:
            yield Row(clip.clip_id, caption_of(caption), clip)


def _clip(values: Mapping[str, Any], spec: ScoreSpec) -> Clip:
    clip_id, caption, video = values["clip_id"], values["caption"], values.get("video")
    if clip_id is None:
        raise DataError("the row has no clip_id")
    if not isinstance(clip_id, (str, int)):
        raise DataError(f"clip_id: expected text or a whole number, got {shown(clip_id)}")
    caption_of(caption)
    if video is not None and not isinstance(video, str):
        raise DataError(f"video: expected the name of a file, got {shown(video)}")
    cache = spec.settings.get("cache")
    return Clip(
        clip_id=str(clip_id),
        questions=_questions(values["questions"]) if "questions" in values else None,
        references=references_of(values.get("reference")),
        frames=None if video is None else spec.video_path(video),
        cache=None if cache is None else Path(cache),
    )


def _questions(value: object) -> Sequence[object]:
    """A list, or the text of one in JSON."""
    if value is None:
        return ()
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise DataError(f"questions: expected a list, or one in JSON: {error}") from error
    if not isinstance(value, list):
        raise DataError(f"questions: expected a list, or one in JSON, got {shown(value)}")
    return [without_nulls(each) for each in value]
