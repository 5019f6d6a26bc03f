"""Processes that decode: a clip that crashes, hangs or fills the memory costs that clip alone."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from loguru import logger

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.containers import RefusedError
from lmms_eval_captions.model_wrappers.decode_messages import receive, send
from lmms_eval_captions.model_wrappers.frames import Clip, UnreadableError
from lmms_eval_captions.model_wrappers.readers import read_with

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lmms_eval_captions.model_wrappers.limits import Limits
    from lmms_eval_captions.model_wrappers.sampling import Sampling

_START_S: Final = 60.0
"""Longest wait for a new process; one takes about half a second."""
_MOST_CLIPS: Final = 500
"""After so many a process is replaced: what a library leaks is given back."""
_KEPT_BYTES: Final = 2**28
"""Of the memory that a decoder shares with its parent, for the frames of the next clip."""
_CODE: Final = (
    "import sys; sys.path[:] = sys.argv[1:-2]; "
    "from lmms_eval_captions.model_wrappers.decode_worker import main; main()"
)


class StoppedError(DataError):
    """The reading was ended from outside."""


class _Decoder:
    """One process, which reads one clip at a time."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.channel = ours
        self._shared = _nameless_file()
        self.n_clips = 0
        self.is_stopped = False
        # One thread a library: several decoders run beside each other.
        environ = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OPENCV_FOR_THREADS_NUM": "1"}
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
                    env=environ,
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
        self, request: Mapping[str, object], sampling: Sampling, until_s: float
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


class Decoders:
    """As many decoders as there are threads that read at once; they are started at first use."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew: in a forked child, whose parent keeps the processes."""
        for decoder in (*getattr(self, "_idle", ()), *getattr(self, "_busy", ())):
            decoder.leave()
        self._lock = threading.Lock()
        self._idle: list[_Decoder] = []
        self._busy: set[_Decoder] = set()
        self._has_started = False
        self._is_possible = (
            os.name == "posix" and bool(sys.executable) and not getattr(sys, "frozen", False)
        )

    def stop(self) -> None:
        """End all processes, and what they are reading; the next clip starts new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
            for decoder in self._busy:
                decoder.is_stopped = True
                decoder.process.kill()  # the thread that waits for it does the rest
        for decoder in idle:
            decoder.end()

    def read(
        self,
        reader: str,
        path: Path,
        sampling: Sampling,
        *,
        max_pixels: int | None,
        n_threads: int,
        limits: Limits,
        until_s: float,
    ) -> Clip:
        """The chosen frames by one reader, in a process of its own where there can be one.

        Args:
            reader: Its name.
            path: A regular file.
            sampling: Asked here, when the clip's times are known.
            max_pixels: As of ``read_frames``.
            n_threads: As of ``read_frames``.
            limits: What the clip may cost.
            until_s: Moment of the monotonic clock at which its time is over.

        Raises:
            UnreadableError: If this reader cannot read the file, or crashed on it.
            RefusedError: If no reader can, or the clip costs too much.
        """
        decoder = self._take()
        if decoder is None:
            return read_with(reader, path, sampling, max_pixels=max_pixels, n_threads=n_threads)
        request = {
            "reader": reader,
            "path": os.path.abspath(path),  # noqa: PTH100 (``resolve`` would follow links)
            "max_pixels": max_pixels,
            "n_threads": n_threads,
            "timeout_s": limits.timeout_s,
            "memory_gib": limits.memory_gib,
        }
        try:
            answer, clip = decoder.read(request, sampling, until_s)
        except (EOFError, BrokenPipeError, ConnectionResetError) as error:
            code = self._end(decoder, patience_s=5)
            if decoder.is_stopped:
                raise StoppedError(f"the reading of {path} was stopped") from error
            logger.debug("{}: the decoder crashed ({})", path, _signal(code))
            raise UnreadableError(f"the decoder crashed ({_signal(code)})") from error
        except TimeoutError as error:
            self._end(decoder)
            raise RefusedError(f"reading it took more than {limits.timeout_s:g} s") from error
        except BaseException:
            self._end(decoder)
            raise
        self._give_back(decoder)
        if clip is not None:
            return clip
        if answer["kind"] == "memory":
            raise RefusedError(f"reading it needs more than {limits.memory_gib:g} GiB of memory")
        raise (UnreadableError if answer["kind"] == "unreadable" else RefusedError)(
            str(answer["reason"])
        )

    def _take(self) -> _Decoder | None:
        """One that is idle, else a new one, else none: there can be no process here."""
        with self._lock:
            while self._idle:
                decoder = self._idle.pop()
                if decoder.process.poll() is None:
                    self._busy.add(decoder)
                    return decoder
                decoder.end()
            if not self._is_possible:
                return None
        try:
            decoder = _Decoder()
        except (OSError, EOFError, ValueError) as error:
            self._is_possible = self._has_started
            logger.warning(
                "no process for decoding can be started by {} ({}): clips are read in this one, "
                "where a hostile clip can end the run",
                sys.executable,
                error,
            )
            return None
        with self._lock:
            self._has_started = True
            self._busy.add(decoder)
        return decoder

    def _give_back(self, decoder: _Decoder) -> None:
        decoder.n_clips += 1
        if decoder.n_clips >= _MOST_CLIPS or decoder.is_stopped:
            self._end(decoder)
            return
        with self._lock:
            self._busy.discard(decoder)
            self._idle.append(decoder)

    def _end(self, decoder: _Decoder, *, patience_s: float = 0.0) -> int:
        with self._lock:
            self._busy.discard(decoder)
        return decoder.end(patience_s=patience_s)


def _nameless_file() -> int:
    """A file in memory, where there are such, that nothing can leave behind."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("frames")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _signal(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"


DECODERS: Final = Decoders()
"""This process's own."""
atexit.register(DECODERS.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=DECODERS.forget)
