"""UGC-VideoCap's file: clips with a human caption."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import parse_json, read_whole
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.data.files import find_file
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source

FILE: Final = "final_caption_qa.json"
SOURCE: Final = Source(
    benchmark="ugc_videocap",
    page="https://huggingface.co/datasets/openinterx/UGC-VideoCap",
    license="MIT",
    video_folder="ugc_videocap/video",
    note="Clips and final_caption_qa.json are on the dataset's page; place them under "
    "LMMS_CAPTIONS_DATA/ugc_videocap.",
)


def read_clips(settings: DataSettings) -> list[dict[str, object]]:
    """Return the clips in the file's order, each with its id, file and human caption.

    Raises:
        DataError: If the file is missing or of another form; the text names the sample.
    """
    path = find_file(settings, SOURCE, FILE)
    try:
        document = parse_json(read_whole(path))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: expected a JSON object with samples: {error}") from error
    samples = document.get("samples") if isinstance(document, dict) else None
    if not isinstance(samples, list):
        raise DataError(f"{path}: expected a list under 'samples', got {document!r:.80}")
    clips: list[dict[str, object]] = []
    for number, sample in enumerate(samples):
        try:
            name = PurePosixPath(sample["path"]).name
            texts = (sample["video_id"], name, sample["answer"])
        except (KeyError, TypeError) as error:
            raise DataError(
                f"{path}, sample {number}: expected video_id, path and answer, got {error!r}"
            ) from error
        clips.append(dict(zip(("video_id", "video", "reference"), map(str, texts), strict=True)))
    return clips
