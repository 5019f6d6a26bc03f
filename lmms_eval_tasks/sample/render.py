"""Pictures of a scene, and the video file made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lmms_eval_captions.lmms_eval_tasks.sample.scenes import RGB, Scene, Shot, Thing

Place = Callable[[float, float], tuple[int, int]]

WIDTH, HEIGHT, FPS, DURATION_S = 320, 240, 24, 2.5

_TRAVEL: Final = 0.55
"""Distance that a moving thing covers, as a share of the frame's side along its way."""
_PAN: Final = 0.4
"""Distance that a pan covers, as a share of the frame's width."""
_ZOOM: Final = 1.8
"""Magnification from one end of a zoom to the other."""
_DIM: Final = 0.45
"""Brightness of the dark end of a lighting change, as a share of the bright end."""
_DOTS: Final = np.random.default_rng(7).uniform(-0.5, 1.5, size=(500, 2)).tolist()
"""Marks that make camera movement visible, over more than the widest view."""
_DIRECTIONS: Final = {
    "still": (0, 0), "left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1),
}  # fmt: skip


def write_video(scene: Scene, path: Path) -> None:
    """Encode a scene as mp4: H.264 if FFmpeg has an encoder for it, else MPEG-4 part 2."""
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
    """Yield every frame of a scene, shape (HEIGHT, WIDTH, 3), RGB."""
    n_frames = round(DURATION_S * FPS / len(scene.shots))
    for shot in scene.shots:
        for index in range(n_frames):
            yield _picture(shot, index / (n_frames - 1))


def _picture(shot: Shot, progress: float) -> NDArray[np.uint8]:
    """Return one frame of a shot; ``progress`` runs from 0 at its start to 1 at its end."""
    import cv2

    zoom = {"zooms in": _ZOOM, "zooms out": 1 / _ZOOM}.get(shot.camera, 1.0) ** progress
    pan = {"pans right": _PAN, "pans left": -_PAN}.get(shot.camera, 0.0) * progress

    def place(x: float, y: float) -> tuple[int, int]:
        """Return the pixel of a point given as shares of the unmoved frame."""
        column, row = (x - 0.5 - pan) * zoom + 0.5, (y - 0.5) * zoom + 0.5
        return round(column * WIDTH), round(row * HEIGHT)

    canvas = np.full((HEIGHT, WIDTH, 3), RGB[shot.background], dtype=np.uint8)
    if shot.pattern == "dotted":
        shade = tuple(int(0.62 * value) for value in RGB[shot.background])
        for x, y in _DOTS:
            cv2.circle(canvas, place(x, y), round(3 * zoom), shade, -1, cv2.LINE_AA)
    for thing in shot.things:
        _draw(canvas, thing, progress, place, zoom)
    if shot.text:
        _write(canvas, shot.text)
    change = (1.0 - _DIM) * progress
    brightness = {"darker": 1.0 - change, "brighter": _DIM + change}.get(shot.light, 1.0)
    return np.asarray(canvas * brightness, dtype=np.uint8)


def _draw(
    canvas: NDArray[np.uint8], thing: Thing, progress: float, place: Place, zoom: float
) -> None:
    import cv2

    x, y = (
        start + step * _TRAVEL * progress
        for start, step in zip(thing.center, _DIRECTIONS[thing.motion], strict=True)
    )
    column, row = place(x, y)
    half, color = max(2, round(thing.size * HEIGHT * zoom / 2)), RGB[thing.color]
    if thing.shape == "circle":
        cv2.circle(canvas, (column, row), half, color, -1, cv2.LINE_AA)
    elif thing.shape == "triangle":
        corners = [(column, row - half), (column - half, row + half), (column + half, row + half)]
        cv2.fillPoly(canvas, [np.array(corners, dtype=np.int32)], color, cv2.LINE_AA)
    else:
        wide = half * 2 if thing.shape == "rectangle" else half
        cv2.rectangle(canvas, (column - wide, row - half), (column + wide, row + half), color, -1)


def _write(canvas: NDArray[np.uint8], text: str) -> None:
    import cv2

    font, scale, thickness = cv2.FONT_HERSHEY_SIMPLEX, 1.8, 5
    (wide, high), _ = cv2.getTextSize(text, font, scale, thickness)
    corner = ((WIDTH - wide) // 2, round(0.22 * HEIGHT) + high // 2)
    cv2.putText(canvas, text, corner, font, scale, RGB["white"], thickness, cv2.LINE_AA)
