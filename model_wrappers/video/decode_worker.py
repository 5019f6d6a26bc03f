"""A decoder's process: it reads clips for its parent, and a crash here ends nothing else.

Started by :mod:`decoder_process`; it imports neither torch nor lmms-eval, says nothing on standard
output, and ends with its parent.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import threading
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from loguru import logger

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.video.decode_messages import receive, send
from lmms_eval_captions.model_wrappers.video.readers import read_with
from lmms_eval_captions.model_wrappers.video.reading_errors import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from lmms_eval_captions.model_wrappers.video.clip import Clip

_GRACE_S: Final = 10
"""Past its time limit by so much, a decoder whose parent cannot end it ends by itself."""
_CHANNELS: Final = 3
_COPIES: Final = 2
"""Frames are held one by one, and then together."""


def main() -> None:
    """Serve the parent until it is gone, by the socket and shared file of the last arguments."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logger.remove()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    shared = int(sys.argv[-1])
    with socket.socket(fileno=int(sys.argv[-2])) as channel:
        try:
            send(channel, {"kind": "ready"})
            while True:
                request, _ = receive(channel)
                _serve(channel, shared, request)
        except (EOFError, BrokenPipeError):
            return


def _end_with_parent() -> None:
    """Standard input carries nothing: its end is the parent's, even in the midst of decoding."""
    sys.stdin.buffer.read()
    os._exit(0)


def _serve(channel: socket.socket, shared: int, request: Mapping[str, object]) -> None:
    max_pixels = None if request["max_pixels"] is None else int(str(request["max_pixels"]))
    memory = _Memory(float(str(request["memory_gib"])), max_pixels)
    sampling = _AskedSampling(channel, memory)
    signal.alarm(ceil(float(str(request["timeout_s"]))) + _GRACE_S)
    try:
        clip = read_with(
            str(request["reader"]),
            Path(str(request["path"])),
            sampling,
            max_pixels=max_pixels,
            n_threads=int(str(request["n_threads"])),
        )
        _send_clip(channel, shared, clip)
    except MemoryError:
        send(channel, {"kind": "memory"})
    except UnreadableError as error:
        send(channel, {"kind": "unreadable", "reason": str(error)})
    except DataError as error:
        send(channel, {"kind": "refused", "reason": str(error)})
    finally:
        signal.alarm(0)


class _Memory:
    """The limit of private memory; on Linux, where the system says what is in use."""

    def __init__(self, gib: float, max_pixels: int | None) -> None:
        self._n_bytes = int(gib * 2**30)
        self._max_pixels = max_pixels
        self._in_use: int | None = None
        try:
            pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[5]
            self._in_use = int(pages) * resource.getpagesize()
        except (OSError, ValueError, IndexError):
            return
        self.allow_frames(0)

    def allow_frames(self, n_frames: int) -> None:
        """So many frames that were asked for come on top: they are no fault of the clip's."""
        if self._in_use is None:
            return
        n_extra = _COPIES * n_frames * _CHANNELS * (self._max_pixels or 0)
        wanted = self._in_use + self._n_bytes + n_extra
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


class _AskedSampling:
    """A sampling that lives in the parent, and may be of a class that only the parent knows."""

    def __init__(self, channel: socket.socket, memory: _Memory) -> None:
        self._channel = channel
        self._memory = memory

    def indices(self, times_s: NDArray[np.float64]) -> list[int]:
        """See :class:`Sampling`."""
        send(self._channel, {"kind": "times"}, np.asarray(times_s, dtype=np.float64).tobytes())
        answer, _ = receive(self._channel)
        indices = answer["indices"] if isinstance(answer["indices"], list) else []
        self._memory.allow_frames(len(indices))
        return [int(str(index)) for index in indices]


def _send_clip(channel: socket.socket, shared: int, clip: Clip) -> None:
    """Frames go through a file in memory: faster than a stream, and used again for every clip."""
    frames = np.ascontiguousarray(clip.frames)
    left, at = frames.data.cast("B"), 0
    while left:
        n_written = os.pwrite(shared, left, at)
        left, at = left[n_written:], at + n_written
    header = {
        "kind": "clip",
        "shape": list(frames.shape),
        "fps": clip.fps,
        "duration_s": clip.duration_s,
        "n_total": clip.n_total,
    }
    send(channel, header, np.asarray(clip.timestamps_s, dtype=np.float64).tobytes())


if __name__ == "__main__":
    main()
