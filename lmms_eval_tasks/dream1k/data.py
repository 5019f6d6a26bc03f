"""DREAM-1K's file: a reference text with its events for each clip."""

from __future__ import annotations

from typing import Any, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.data.files import find_file, read_numbered_jsonl
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source

FILE: Final = "DREAM-1k.jsonl"
SOURCES: Final = (
    "movie_animation", "movie_live_action", "vertical_video", "videvo", "youtube",
)  # fmt: skip
SOURCE: Final = Source(
    benchmark="dream1k",
    page="https://huggingface.co/datasets/omni-research/DREAM-1K",
    license="Apache-2.0",
    video_folder="dream1k/video",
    note="Clips and DREAM-1k.jsonl are on the dataset's page; place them under "
    "LMMS_CAPTIONS_DATA/dream1k.",
)


def read_clips(settings: DataSettings) -> list[dict[str, object]]:
    """Return the clips in the file's order, with video, reference text, events and counts.

    Raises:
        DataError: If the file is missing, or a row lacks a field; the text names the line.
    """
    path = find_file(settings, SOURCE, FILE)
    clips = []
    for number, row in read_numbered_jsonl(path):
        try:
            clips.append(_clip(row))
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise DataError(
                f"{path}, line {number}: expected a row of DREAM-1K with dataset, idx, messages "
                f"and extra_info.events, got {error!r}"
            ) from error
    return clips


def _clip(row: Any) -> dict[str, object]:  # noqa: ANN401 - a row of the file
    info, reply = row["extra_info"], row["messages"][-1]["content"][0]
    return {
        "video": str(row.get("vid", row["idx"])),
        "source": str(row["dataset"]).rpartition("/")[2],
        "reference": str(reply["reference"]),
        "events": [str(event) for event in info["events"]],
        "n_shots": int(info["n_shots"]),
        "n_subjects": int(info["n_subjects"]),
    }
