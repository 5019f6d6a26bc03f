"""The first stage of every pipeline: the clips that can be read, and which frames are seen."""

from __future__ import annotations

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.lmms_eval_tasks.commands.building.stages import Stage
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Work


def read_clips(work: Work, _rows: list[Row]) -> list[Row]:
    """A row for each clip: its file, length, and the times of the frames that models are shown."""
    work.frames.expect(work.videos)
    rows: list[Row] = []
    for video in work.videos:
        # As it can be written: what is read from the file is to be what was made.
        path = whole(str(video.path))
        row: Row = {"video": video.video_id, "file": video.file, "path": path}
        try:
            shown = work.frames.of(video)
        except DataError as error:
            rows.append({**row, "dropped": "the clip cannot be read", "why": whole(str(error))})
        else:
            size = "{}x{}".format(*shown.size)
            rows.append(
                {**row, "duration_s": shown.duration_s, "frames_s": shown.times_s, "size": size}
            )
    return rows


CLIPS = Stage(
    name="clips",
    does="read the clips, and choose the frames that models are shown",
    run=read_clips,
    options=("n_frames", "frame_pixels", "limit"),
)
