"""File of video-SALMONN 2's test set: clips with their base events."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import parse_json, read_whole
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.data.files import find_file
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source

FILE: Final = "video_salmonn2_test.json"
SOURCE: Final = Source(
    benchmark="salmonn2",
    page="https://huggingface.co/datasets/tsinghua-ee/video-SALMONN_2_testset",
    license="Apache-2.0",
    video_folder="salmonn2/video",
    note="Clips and video_salmonn2_test.json are on the dataset's page; place them under "
    "LMMS_CAPTIONS_DATA/salmonn2.",
)


def read_clips(settings: DataSettings) -> list[dict[str, object]]:
    """Return the clips in the file's order, each with its video and base events.

    Raises:
        DataError: If the file is missing or a row is of another form; the text names the row.
    """
    path = find_file(settings, SOURCE, FILE)
    clips: list[dict[str, object]] = []
    for number, row in enumerate(_rows(path)):
        try:
            clips.append({"video": Path(row["video"]).name, "events": events_of(row["events"])})
        except (KeyError, TypeError, ValueError, SyntaxError) as error:
            raise DataError(
                f"{path}, row {number}: expected a video and a list of its events, got {error!r}"
            ) from error
    return clips


def _rows(path: Path) -> list[Any]:
    try:
        rows = parse_json(read_whole(path))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: expected a JSON list of clips: {error}") from error
    if not isinstance(rows, list):
        raise DataError(f"{path}: expected a JSON list of clips, got {rows!r:.80}")
    return rows


def events_of(value: object) -> list[str]:
    """Return the events of a row: a list, or the text of one as in a circulating copy.

    >>> events_of("['a man runs', 'he falls']")
    ['a man runs', 'he falls']
    """
    events = ast.literal_eval(value) if isinstance(value, str) else value
    if not isinstance(events, list) or not events or not all(isinstance(e, str) for e in events):
        raise ValueError(f"expected a list of events, got {value!r:.80}")
    return events
