"""Frames of a clip by ffmpeg, in order and with their times."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

_TIMEOUT_S: Final = 60
_MOST_FRAMES: Final = 2000
_SIZE: Final = re.compile(r"\[Parsed_showinfo.*? n: *(\d+) .*?pts_time:(\S+) .*? s:(\d+)x(\d+) ")


@dataclass(frozen=True, eq=False)
class Truth:
    """Every frame of a clip as ffmpeg decodes it."""

    frames: NDArray[np.uint8]
    """Shape (n, height, width, 3), RGB; frames of other sizes are scaled to the first one's."""
    times_s: NDArray[np.float64]
    """Shape (n,), seconds from the first frame; ``nan`` where there is no stamp."""


def read(path: Path) -> Truth | None:
    """All frames of the stream that ffmpeg chooses, or ``None`` where it shows none."""
    # By one thread: with several, ffmpeg ends some Xvid in other frames once in a while.
    line = ["ffmpeg", "-nostdin", "-hide_banner", "-v", "info", "-threads", "1", "-i", str(path)]
    # Pixels that are not square are stretched, as players do.
    shape = "scale=w='max(iw,round(iw*sar))':h='max(ih,round(ih/sar))':flags=bicubic"
    line += ["-an", "-sn", "-dn", "-fps_mode", "passthrough", "-vf", f"{shape},showinfo=checksum=0"]
    line += ["-frames:v", str(_MOST_FRAMES), "-f", "rawvideo", "-pix_fmt", "rgb24"]
    line += ["-sws_flags", "bicubic", "pipe:1"]  # what ffmpeg 5 takes by itself
    try:
        done = subprocess.run(line, capture_output=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return None
    shown = _SIZE.findall(done.stderr.decode(errors="replace"))
    if not shown:
        return None
    width, height = int(shown[0][2]), int(shown[0][3])
    raw = np.frombuffer(done.stdout, dtype=np.uint8)
    n_frames = min(len(raw) // (width * height * 3), len(shown))
    if not n_frames:
        return None
    frames = raw[: n_frames * width * height * 3].reshape(n_frames, height, width, 3)
    times = [float(row[1]) if row[1] != "NOPTS" else np.nan for row in shown[:n_frames]]
    return Truth(frames, np.asarray(times) - times[0])
