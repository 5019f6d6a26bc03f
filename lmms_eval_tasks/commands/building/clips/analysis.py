"""What a source video is made of: its scenes, and how much moves in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.scenes import Span, spans_between
from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.stillness import (
    APART_S,
    SIDE,
    Flow,
    displacement,
)
from lmms_eval_captions.model_wrappers.video.containers import check_file
from lmms_eval_captions.model_wrappers.video.decoding import TimedFrames
from lmms_eval_captions.model_wrappers.video.frame_times import end_of

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_WIDTH: Final = 256
"""Width in pixels of what PySceneDetect sees, as it shrinks videos by itself."""
_SHORTEST_S: Final = 0.6
"""Seconds from one cut to the next at least, PySceneDetect's own default."""
_HALF_ROUNDING_S: Final = 5e-4


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """The scenes of a video and its motion."""

    scenes: tuple[Span, ...]
    flows: tuple[Flow, ...]
    times_s: NDArray[np.float64]
    """Shape (n_total,), when each frame is shown, in seconds from the first."""


def require_scenedetect() -> None:
    """Do nothing where PySceneDetect is installed.

    Raises:
        SettingsError: If it is not.
    """
    try:
        import scenedetect  # noqa: F401
    except ImportError as error:
        raise SettingsError(
            "build clips needs PySceneDetect: pip install 'lmms-eval-captions[scenes]'"
        ) from error


def analyse(path: Path) -> Analysis:
    """The scenes of a video and its motion, in one pass over its frames.

    Cuts are those of PySceneDetect's adaptive detector with its own thresholds, which looks at
    every frame.

    Raises:
        DataError: If the file cannot be read, or holds a single picture.

    Source:
        VidCapBench, section 3.3.1: PySceneDetect, by which detector it does not say; "an optical
        flow tool".
    """
    check_file(path)
    frames = TimedFrames(path)
    detector = _Detector(frames.fps)
    step = max(1, round(APART_S * frames.fps))
    flows: list[tuple[int, float]] = []
    before: NDArray[np.uint8] | None = None
    for index, frame in enumerate(frames):
        # Shrunk by FFmpeg: a frame of 4K is never whole in memory as RGB.
        width, height = _shrunk(frame.width, frame.height, _WIDTH / max(1, frame.width))
        shrunk = frame.reformat(width, height, format="bgr24", interpolation="AREA")
        picture = np.asarray(shrunk.to_ndarray(), dtype=np.uint8)
        detector.look_at(index, picture)
        if index % step == 0:
            gray = _gray(picture)
            if before is not None and gray.shape == before.shape:
                flows.append((index, displacement(before, gray)))
            before = gray
    times_s = frames.times_s()
    if len(times_s) < 2:
        raise DataError(f"expected a video, {path} holds {len(times_s)} picture(s)")
    end_s = end_of(times_s, 0.0, fps=frames.fps) or 0.0
    cuts_s = [float(times_s[index]) for index in detector.cuts if index]
    return Analysis(
        tuple(spans_between(cuts_s, end_s)),
        tuple((float(times_s[at - step]), float(times_s[at]), pixels) for at, pixels in flows),
        times_s,
    )


def frames_of(span: Span, times_s: NDArray[np.float64]) -> tuple[int, int]:
    """The frames that are shown within a span, the second end not included.

    >>> frames_of((0.333, 1.0), np.arange(6) / 3)
    (1, 3)
    """
    # Ends of spans are rounded to milliseconds, and frames are not.
    first, end = np.searchsorted(times_s, [at_s - _HALF_ROUNDING_S for at_s in span])
    return int(first), int(end)


class _Detector:
    """PySceneDetect, shown frame by frame."""

    def __init__(self, fps: float) -> None:
        from scenedetect import FrameTimecode
        from scenedetect.detectors import AdaptiveDetector

        self._fps = fps
        self._timecode = FrameTimecode
        self._detector = AdaptiveDetector(min_scene_len=max(1, round(_SHORTEST_S * fps)))
        self.cuts: list[int] = []
        """Positions of the frames with which scenes begin."""

    def look_at(self, index: int, picture: NDArray[np.uint8]) -> None:
        """Show it the next frame, shape (height, width, 3), BGR."""
        at = self._timecode(index, self._fps)
        self.cuts += [cut.frame_num for cut in self._detector.process_frame(at, picture)]


def _gray(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A picture for the optical flow."""
    import cv2

    height, width = picture.shape[:2]
    size = _shrunk(width, height, SIDE / max(width, height))
    small = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.cvtColor(small, cv2.COLOR_BGR2GRAY), dtype=np.uint8)


def _shrunk(width: int, height: int, scale: float) -> tuple[int, int]:
    scale = min(1.0, scale)
    return max(8, round(width * scale)), max(8, round(height * scale))
