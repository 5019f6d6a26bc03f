"""Small clips that differ: each shows its number, and gets lighter."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from numbered_frames import picture


def write_clips(
    folder: Path, n: int, *, width: int = 32, height: int = 32, n_frames: int = 4
) -> Path:
    """Write clips of four frames a second.

    Args:
        folder: Where; made here.
        n: How many, at most 256.
        width: In pixels.
        height: In pixels.
        n_frames: Of each.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(n):
        _write(folder / f"clip{number:03d}.mp4", number, (width, height), n_frames)
    return folder


def _write(path: Path, number: int, size: tuple[int, int], n_frames: int) -> None:
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=4)
        (stream.width, stream.height), stream.pix_fmt = size, "yuv420p"
        for place in range(n_frames):
            frame = np.minimum(picture(number, *size), 255 - 4 * (n_frames - place) % 40)
            shown = av.VideoFrame.from_ndarray(frame.astype(np.uint8), format="rgb24")
            container.mux(stream.encode(shown))
        container.mux(stream.encode())
