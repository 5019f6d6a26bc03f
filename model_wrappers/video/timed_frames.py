"""All frames of a video one after the other, and when each is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmms_eval_captions.model_wrappers.video.containers import open_clip, pick_stream
from lmms_eval_captions.model_wrappers.video.frame_times import Stamps, shown_at
from lmms_eval_captions.model_wrappers.video.frames_from_start import MAY_JUMP, decodable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy as np
    from av.video.frame import VideoFrame
    from numpy.typing import NDArray


class TimedFrames:
    """The frames of a video that can be decoded, for those who look at each of them once.

    Args:
        path: Video file.

    Raises:
        RefusedError: If the file is no container of pictures that can be decoded.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamps: list[Stamps] = []
        with open_clip(path) as container:
            stream = pick_stream(container)
            self._may_jump = bool(container.format.flags & MAY_JUMP)
            self.unit_s = float(stream.time_base or 1.0)
            """Seconds of one unit of the frames' stamps."""
            self.fps = float(stream.average_rate or 0.0) or 25.0
            """Frames a second by the file; 25 where it does not say."""

    def __iter__(self) -> Iterator[VideoFrame]:
        """Frames in the order in which they are shown; damaged stretches are passed over."""
        self._stamps = []
        for frame in decodable(self._path, n_threads=0):
            self._stamps.append((frame.pts, frame.dts))
            yield frame

    def times_s(self) -> NDArray[np.float64]:
        """When the frames that came so far are shown, in seconds from the first."""
        import numpy as np

        if not self._stamps:
            return np.zeros(0)
        return shown_at(
            self._stamps, unit_s=self.unit_s, step_s=1.0 / self.fps, may_jump=self._may_jump
        )
