"""Videos of shots with known ends, each a texture of its own that moves or rests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import av
import numpy as np

FPS = 24
Shot = tuple[float, Literal["moves", "still"], int]
"""Seconds, whether it moves, and the seed of its texture."""


def write_shots(path: Path, shots: Sequence[Shot], size: tuple[int, int] = (96, 64)) -> Path:
    """A video of shots one after the other, a cut between each two."""
    path.parent.mkdir(parents=True, exist_ok=True)
    encoder = "libx264" if "libx264" in av.codecs_available else "mpeg4"
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream(encoder, rate=FPS)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        stream.codec_context.thread_count = 1
        for pixels in _pictures(shots, size):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
    return path


def _pictures(shots: Sequence[Shot], size: tuple[int, int]) -> Iterator[np.ndarray]:
    width, height = size
    for seconds, kind, seed in shots:
        rng = np.random.default_rng(seed)
        blocks = rng.integers(0, 255, (height // 8, 2 * width // 8, 3))
        texture = 0.35 * np.kron(blocks, np.ones((8, 8, 1))) + 0.65 * rng.integers(0, 255, 3)
        for index in range(round(seconds * FPS)):
            # There and back again: a jump would be a cut.
            left = 0 if kind == "still" else width - abs((index // 2) % (2 * width) - width)
            yield np.ascontiguousarray(texture[:, left : left + width]).astype(np.uint8)
