"""Scenes of a video, motion in them, and parts of it as files of their own."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.model_wrappers.video.containers import check_file, open_clip

if TYPE_CHECKING:
    from numpy.typing import NDArray

Span = tuple[float, float]
"""Start and end in seconds from the first frame of a video, the end not included."""

_SHORTEST_S: Final = 0.6
"""Least seconds between cuts, PySceneDetect's default."""
_SIDE: Final = 160
"""Longer side in pixels of the pictures between which motion is measured."""
_APART_S: Final = 0.25
"""Seconds between two pictures that are compared."""
_MOVING: Final = 95
"""Percentile over pixels: something that fills a twentieth of the picture counts."""
_MS: Final = 1e-3
_FFMPEG: Final = (
    "-map 0:v:0 -map 0:a? -vf pad=ceil(iw/2)*2:ceil(ih/2)*2 -pix_fmt yuv420p "
    "-c:v libx264 -preset veryfast -crf 18 -c:a aac"
)
"""H.264 with even sides, and all sound tracks."""


def require_tools() -> None:
    """Raise if PySceneDetect or FFmpeg is not installed, with the command that installs them."""
    try:
        from scenedetect.output import is_ffmpeg_available
    except ImportError as error:
        raise SettingsError(
            "build clips needs PySceneDetect: pip install 'lmms-eval-captions[scenes]'"
        ) from error
    if not is_ffmpeg_available():
        raise SettingsError(
            "build clips needs the program ffmpeg: pip install 'lmms-eval-captions[scenes]', or "
            "install ffmpeg with your system's package manager"
        )


def find_scenes(path: Path) -> list[tuple[Span, list[tuple[float, float]]]]:
    """Return the scenes of a video, each with the motion at times in it.

    Cuts are those of PySceneDetect's adaptive detector with its default thresholds. Motion is
    measured between pictures a quarter of a second apart: the 95th percentile over pixels of the
    length of Farneback's optical flow, in pixels at a longer side of 160. The median would be 0 if
    a small thing moves in front of a still background.

    Returns:
        Spans in order, each with pairs of a time in seconds and the motion before it.

    Source:
        VidCapBench, section 3.3.1: PySceneDetect, without its detector; "an optical flow tool".
    """
    import av
    import cv2
    from scenedetect import AdaptiveDetector, SceneManager, VideoOpenFailure, open_video
    from scenedetect.detector import SceneDetector

    flows: list[tuple[float, float]] = []

    class Motion(SceneDetector):  # type: ignore[misc]  # untyped
        """Optical flow of the frames that the scene detector sees."""

        before: NDArray[np.uint8] | None = None
        at_s = -_APART_S

        def process_frame(self, timecode: Any, frame_img: NDArray[np.uint8]) -> list[Any]:  # noqa: ANN401 - untyped
            if timecode.seconds - self.at_s > _APART_S - _MS:
                height, width = frame_img.shape[:2]
                scale = min(1.0, _SIDE / max(width, height))
                size = max(8, round(width * scale)), max(8, round(height * scale))
                small = cv2.resize(frame_img, size, interpolation=cv2.INTER_AREA)
                picture = np.asarray(cv2.cvtColor(small, cv2.COLOR_BGR2GRAY), dtype=np.uint8)
                if self.before is not None and self.before.shape == picture.shape:
                    flows.append((timecode.seconds, _displacement(self.before, picture)))
                self.before, self.at_s = picture, timecode.seconds
            return []

    check_file(path)
    try:
        with open_clip(path):
            video = open_video(str(path), backend="pyav")
        manager = SceneManager()
        shortest = max(1, round(_SHORTEST_S * video.frame_rate))
        manager.add_detector(AdaptiveDetector(min_scene_len=shortest))
        manager.add_detector(Motion())
        n_frames = manager.detect_scenes(video)
    except (av.FFmpegError, cv2.error, VideoOpenFailure, OSError, ValueError, MemoryError) as error:
        raise DataError(f"expected a readable video, {path} is not one: {error}") from error
    if n_frames < 2:
        raise DataError(f"expected a video, {path} holds {n_frames} picture(s)")
    scenes = manager.get_scene_list(start_in_scene=True)
    spans = [(round(start.seconds, 3), round(end.seconds, 3)) for start, end in scenes]
    return [(span, [flow for flow in flows if span[0] <= flow[0] < span[1]]) for span in spans]


def _displacement(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> float:
    import cv2

    flow = cv2.calcOpticalFlowFarneback(
        before, after, None,  # type: ignore[call-overload,unused-ignore]  # no initial flow
        pyr_scale=0.5, levels=3, winsize=15, iterations=2, poly_n=5, poly_sigma=1.1, flags=0,
    )  # fmt: skip
    return float(np.percentile(np.hypot(flow[..., 0], flow[..., 1]), _MOVING))


def parts_of(scene: Span, *, min_s: float, max_s: float) -> list[Span]:
    """Split a scene evenly into parts of a length between two bounds; none if it is too short.

    If even parts would be too short, there are as many as fit, each of at most ``max_s``, and the
    rest between them is left out. Source: VidCapBench, section 3.3.1 (3 to 15 seconds); longer
    scenes are ours.

    >>> parts_of((10.0, 50.0), min_s=3, max_s=15)
    [(10.0, 23.333), (23.333, 36.667), (36.667, 50.0)]
    >>> parts_of((0.0, 16.0), min_s=10, max_s=15), parts_of((0.0, 2.9), min_s=3, max_s=15)
    ([(0.0, 15.0)], [])
    """
    start_s, end_s = scene
    length_s = end_s - start_s
    # Rounded to milliseconds: a scene of 72 frames at 24 per second lasts 3 s.
    most = int((length_s + _MS) / min_s)
    if not most:
        return []
    n_parts = min(ceil((length_s - _MS) / max_s), most)
    starts_s = [round(start_s + length_s / n_parts * number, 3) for number in range(n_parts)]
    ends_s = [*starts_s[1:], round(end_s, 3)]
    return [
        (at_s, min(next_s, round(at_s + max_s, 3)))
        for at_s, next_s in zip(starts_s, ends_s, strict=True)
    ]


def cut_parts(source: Path, parts: Sequence[tuple[Span, Path]]) -> None:
    """Write parts of a video with their sound, encoded again; each is complete or missing."""
    from scenedetect import open_video
    from scenedetect.output import split_video_ffmpeg

    video = open_video(str(source), backend="pyav")
    for span, path in parts:
        draft = path.with_name(f".{path.stem}.partial{path.suffix}")
        scene = tuple(video.base_timecode + at_s for at_s in span)
        path.parent.mkdir(parents=True, exist_ok=True)
        status = split_video_ffmpeg(
            str(source.resolve()),
            [scene],
            arg_override=_FFMPEG,
            formatter=lambda *_, to=draft: str(to),
        )
        if status or not draft.is_file() or not draft.stat().st_size:
            draft.unlink(missing_ok=True)
            raise DataError(
                f"{source}: its part {path.name} cannot be made: FFmpeg ended with {status}"
            )
        draft.replace(path)
