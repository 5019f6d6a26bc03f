"""One process that decodes, as its parent sees it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import numpy as np

from lmms_eval_captions.model_wrappers.video.clip import Clip
from lmms_eval_captions.model_wrappers.video.decode_messages import receive, send

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lmms_eval_captions.model_wrappers.video.sampling import Sampling

_START_S: Final = 60.0
"""Longest wait for a new process; one takes about half a second."""
_KEPT_BYTES: Final = 2**28
"""Of the memory that a decoder shares with its parent, for the frames of the next clip."""
_TOLD: Final = frozenset((
    "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "VIRTUAL_ENV", "CONDA_PREFIX",
    "LD_LIBRARY_PATH", "LD_PRELOAD",
    "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES",
    "PYTHONHOME", "PYTHONPATH", "PYTHONUTF8", "PYTHONHASHSEED",
    "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX",
    "MALLOC_ARENA_MAX", "MALLOC_CONF", "GLIBC_TUNABLES",
))  # fmt: skip
"""Environment variables that a decoder gets: what Python and libraries are found by."""
_KEPT_MEMORY: Final = {
    "MALLOC_MMAP_THRESHOLD_": str(2**25),
    "MALLOC_TRIM_THRESHOLD_": str(_KEPT_BYTES),
}
"""What tells glibc to use memory again for the next frames: asking the system for fresh pages for
each of them costs a fifth of the time of reading a clip."""
_CODE: Final = (
    "import sys; sys.path[:] = sys.argv[1:-2]; "
    "from lmms_eval_captions.model_wrappers.video.decode_worker import main; main()"
)


class Decoder:
    """One process, which reads one clip at a time."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.channel = ours
        self._shared = _nameless_file()
        self.n_clips = 0
        self.is_stopped = False
        # Not by multiprocessing, which would import the main module, lmms-eval, again.
        command = [sys.executable, "-c", _CODE, *sys.path, str(theirs.fileno()), str(self._shared)]
        try:
            with theirs:
                self.process = subprocess.Popen(  # noqa: S603 (our own code)
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno(), self._shared],
                    env=_environment(os.environ),
                )
        except BaseException:
            ours.close()
            os.close(self._shared)
            raise
        try:
            receive(ours, until_s=time.monotonic() + _START_S)
        except BaseException:
            self.end()
            raise

    def end(self, *, patience_s: float = 0.0) -> int:
        """End the process, unless it does so itself within some seconds; how it ended."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=patience_s)
        self.process.kill()
        with suppress(subprocess.TimeoutExpired):  # It hangs in a file system that hangs.
            self.process.wait(timeout=5)
        self._close()
        return -signal.SIGKILL if self.process.returncode is None else self.process.returncode

    def leave(self) -> None:
        """Let go of a process that is the parent's."""
        self.process.returncode = 0  # not ours to wait for
        self._close()

    def _close(self) -> None:
        self.channel.close()
        os.close(self._shared)
        if self.process.stdin:
            self.process.stdin.close()

    def read(
        self,
        request: Mapping[str, object],
        sampling: Sampling,
        until_s: float,
    ) -> tuple[dict[str, object], Clip | None]:
        """The answer, and the clip where it has one."""
        send(self.channel, request)
        while True:
            answer, payload = receive(self.channel, until_s=until_s)
            if answer["kind"] == "times":
                times_s = np.frombuffer(payload, dtype=np.float64)
                indices = [int(index) for index in sampling.indices(times_s)]
                send(self.channel, {"indices": indices})
            elif answer["kind"] == "clip":
                return answer, self._clip(answer, payload)
            else:
                return answer, None

    def _clip(self, answer: Mapping[str, object], payload: bytearray) -> Clip:
        shape = answer["shape"]
        if not isinstance(shape, list):
            raise TypeError(f"expected a shape, got {shape!r}")
        frames = np.empty(shape, dtype=np.uint8)
        left, at = frames.data.cast("B"), 0
        while left:
            n_read = os.preadv(self._shared, [left], at)
            if not n_read:
                raise EOFError("the frames are not there")
            left, at = left[n_read:], at + n_read
        if at > _KEPT_BYTES:
            os.ftruncate(self._shared, 0)
        return Clip(
            frames=frames,
            timestamps_s=np.frombuffer(payload, dtype=np.float64),
            duration_s=float(str(answer["duration_s"])),
            fps=float(str(answer["fps"])),
            n_total=int(str(answer["n_total"])),
        )


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    """What a decoder is told: where things are, never keys, tokens or proxies with passwords."""
    kept = {name: value for name, value in own.items() if name in _TOLD}
    # One thread per library: several decoders run beside each other.
    single = {"OPENBLAS_NUM_THREADS": "1", "OPENCV_FOR_THREADS_NUM": "1"}
    return {**_KEPT_MEMORY, **kept, **single}


def _nameless_file() -> int:
    """A file in memory, where there are such, that nothing can leave behind."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("frames")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
