"""CaReBench's file: a human caption with its events and static objects for each clip."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import parse_json, read_whole
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.data.files import find_file
from lmms_eval_captions.lmms_eval_tasks.data.sources import ANY_ARCHIVE, Source

FILE: Final = "json/metadata.json"
SOURCE: Final = Source(
    benchmark="carebench",
    page="https://huggingface.co/datasets/MCG-NJU/CaReBench",
    license="MIT",
    video_folder="carebench/videos",
    hub_repo="MCG-NJU/CaReBench",
    archives=ANY_ARCHIVE,
)


def read_clips(settings: DataSettings) -> list[dict[str, object]]:
    """Return the clips in the file's order, with video, human caption, events and objects.

    Raises:
        DataError: If the file is missing, or a row lacks a field; the text names the row.
    """
    path = find_file(settings, SOURCE, FILE)
    try:
        rows = parse_json(read_whole(path))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: expected a JSON list of clips: {error}") from error
    if not isinstance(rows, list):
        raise DataError(f"{path}: expected a JSON list of clips, got {rows!r:.80}")
    clips: list[dict[str, object]] = []
    for number, row in enumerate(rows):
        try:
            lists = {name: _texts(row, name) for name in ("events", "objects")}
            clips.append({"video": str(row["video"]), "reference": str(row["caption"]), **lists})
        except (KeyError, TypeError) as error:
            raise DataError(
                f"{path}, row {number}: expected video, caption, events and objects, got {error!r}"
            ) from error
    return clips


def _texts(row: Mapping[str, Any], name: str) -> list[str]:
    if not isinstance(row[name], list):
        raise TypeError(f"{name}: expected a list of texts, got {row[name]!r:.80}")
    return [str(text) for text in row[name]]
