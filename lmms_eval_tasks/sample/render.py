"""Pictures of a scene, and the video file made of them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.sample.scenes import RGB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from lmms_eval_captions.lmms_eval_tasks.sample.scenes import Motion, Pattern, Scene, Shot, Thing

WIDTH, HEIGHT, FPS = 320, 240, 24

_TRAVEL = 0.55
"""How far a moving thing gets, as a share of the frame's side along its way."""
_PAN = 0.4
"""How far a pan goes, as a share of the frame's width."""
_ZOOM = 1.8
"""Magnification from one end of a zoom to the other."""
_DIM = 0.45
"""Brightness of the dark end of a lighting change, as a share of the bright end."""
_STEPS: dict[Motion, tuple[float, float]] = {
    "still": (0.0, 0.0),
    "left": (-_TRAVEL, 0.0),
    "right": (_TRAVEL, 0.0),
    "up": (0.0, -_TRAVEL),
    "down": (0.0, _TRAVEL),
}


def write_video(scene: Scene, path: Path) -> None:
    """Encode a scene as mp4: H.264 where FFmpeg has an encoder for it, else MPEG-4 part 2."""
    import av

    encoder = "libx264" if "libx264" in av.codecs_available else "mpeg4"
    options = {"crf": "18", "preset": "veryfast"} if encoder == "libx264" else {"qscale": "3"}
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream(encoder, rate=FPS, options=options)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        # One thread: several encode in pieces that depend on the number of cores.
        stream.codec_context.thread_count = 1
        for picture in frames(scene):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())


def frames(scene: Scene) -> Iterator[NDArray[np.uint8]]:
    """Every frame of a scene, shape (HEIGHT, WIDTH, 3), RGB."""
    n_frames = round(scene.duration_s * FPS / len(scene.shots))
    for shot in scene.shots:
        for index in range(n_frames):
            yield _picture(shot, index / (n_frames - 1))


def _picture(shot: Shot, progress: float) -> NDArray[np.uint8]:
    """One frame of a shot; ``progress`` runs from 0 at its start to 1 at its end."""
    import cv2

    zoom, shift = _camera(shot, progress)
    canvas = np.full((HEIGHT, WIDTH, 3), RGB[shot.background], dtype=np.uint8)
    to_frame = _Placement(zoom, shift)
    for x, y in _dots(shot.pattern):
        shade = tuple(int(0.62 * value) for value in RGB[shot.background])
        cv2.circle(canvas, to_frame.point(x, y), round(3 * zoom), shade, -1, cv2.LINE_AA)
    for thing in shot.things:
        _draw(canvas, thing, progress, to_frame)
    if shot.text:
        _write(canvas, shot.text, RGB[shot.text_color])
    return np.asarray(canvas * _brightness(shot, progress), dtype=np.uint8)


class _Placement:
    """Where a point of the scene lands in the frame."""

    def __init__(self, zoom: float, shift: float) -> None:
        self.zoom = zoom
        self.shift = shift

    def point(self, x: float, y: float) -> tuple[int, int]:
        """Pixel of a point given as shares of the unmoved frame's width and height."""
        column = ((x - 0.5 - self.shift) * self.zoom + 0.5) * WIDTH
        row = ((y - 0.5) * self.zoom + 0.5) * HEIGHT
        return round(column), round(row)


def _camera(shot: Shot, progress: float) -> tuple[float, float]:
    """Magnification, and how far the camera has gone to the right in frame widths."""
    if shot.camera == "zooms in":
        return _ZOOM**progress, 0.0
    if shot.camera == "zooms out":
        return _ZOOM ** (-progress), 0.0
    sign = {"pans right": 1.0, "pans left": -1.0}.get(shot.camera, 0.0)
    return 1.0, sign * _PAN * progress


def _brightness(shot: Shot, progress: float) -> float:
    if shot.light == "darker":
        return 1.0 - (1.0 - _DIM) * progress
    if shot.light == "brighter":
        return _DIM + (1.0 - _DIM) * progress
    return 1.0


@lru_cache(maxsize=2)
def _dots(pattern: Pattern) -> tuple[tuple[float, float], ...]:
    """Marks that make camera movement visible, over more than the widest view of a zoom or pan."""
    if pattern == "plain":
        return ()
    generator = np.random.default_rng(7)
    return tuple((float(x), float(y)) for x, y in generator.uniform(-0.5, 1.5, size=(500, 2)))


def _draw(canvas: NDArray[np.uint8], thing: Thing, progress: float, to_frame: _Placement) -> None:
    import cv2

    step_x, step_y = _STEPS[thing.motion]
    x, y = thing.center[0] + step_x * progress, thing.center[1] + step_y * progress
    column, row = to_frame.point(x, y)
    half = max(2, round(thing.size * HEIGHT * to_frame.zoom / 2))
    color = RGB[thing.color]
    if thing.shape == "circle":
        cv2.circle(canvas, (column, row), half, color, -1, cv2.LINE_AA)
    elif thing.shape == "triangle":
        corners = [(column, row - half), (column - half, row + half), (column + half, row + half)]
        cv2.fillPoly(canvas, [np.array(corners, dtype=np.int32)], color, cv2.LINE_AA)
    else:
        wide = half * 2 if thing.shape == "rectangle" else half
        cv2.rectangle(canvas, (column - wide, row - half), (column + wide, row + half), color, -1)


def _write(canvas: NDArray[np.uint8], text: str, color: tuple[int, int, int]) -> None:
    import cv2

    font, scale, thickness = cv2.FONT_HERSHEY_SIMPLEX, 1.8, 5
    (wide, high), _ = cv2.getTextSize(text, font, scale, thickness)
    corner = ((WIDTH - wide) // 2, round(0.22 * HEIGHT) + high // 2)
    cv2.putText(canvas, text, corner, font, scale, color, thickness, cv2.LINE_AA)
