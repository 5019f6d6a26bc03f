"""Processes that decode: a clip that crashes, hangs or fills the memory costs that clip alone."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loguru import logger

from lmms_eval_captions.model_wrappers.video.decoder_process import Decoder
from lmms_eval_captions.model_wrappers.video.readers import read_with
from lmms_eval_captions.model_wrappers.video.reading_errors import (
    LimitError,
    RefusedError,
    StoppedError,
    UnreadableError,
)

if TYPE_CHECKING:
    from lmms_eval_captions.model_wrappers.video.clip import Clip
    from lmms_eval_captions.model_wrappers.video.limits import Limits
    from lmms_eval_captions.model_wrappers.video.sampling import Sampling

_MOST_CLIPS: Final = 500
"""After so many a process is replaced: what a library leaks is given back."""


class Decoders:
    """As many decoders as there are threads that read at once; they are started at first use."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew: in a forked child, whose parent keeps the processes."""
        for decoder in (*getattr(self, "_idle", ()), *getattr(self, "_busy", ())):
            decoder.leave()
        self._lock = threading.Lock()
        self._idle: list[Decoder] = []
        self._busy: set[Decoder] = set()
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
            RefusedError: If no reader can.
            LimitError: If the clip costs too much.
        """
        decoder = self._take()
        if decoder is None:
            return read_with(
                reader,
                path,
                sampling,
                max_pixels=max_pixels,
                n_threads=n_threads,
            )
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
            raise LimitError(
                f"reading it took more than {limits.timeout_s:g} s; raise decode_timeout_s in "
                "--model_args where the model takes it, or encode the file again"
            ) from error
        except BaseException:
            self._end(decoder)
            raise
        self._give_back(decoder)
        if clip is not None:
            return clip
        if answer["kind"] == "memory":
            raise LimitError(
                f"reading it needs more than {limits.memory_gib:g} GiB of memory besides its "
                "frames; raise decode_memory_gib in --model_args where the model takes it, or "
                "encode the file again"
            )
        raise (UnreadableError if answer["kind"] == "unreadable" else RefusedError)(
            str(answer["reason"])
        )

    def _take(self) -> Decoder | None:
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
            decoder = Decoder()
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

    def _give_back(self, decoder: Decoder) -> None:
        decoder.n_clips += 1
        if decoder.n_clips >= _MOST_CLIPS or decoder.is_stopped:
            self._end(decoder)
            return
        with self._lock:
            self._busy.discard(decoder)
            self._idle.append(decoder)

    def _end(self, decoder: Decoder, *, patience_s: float = 0.0) -> int:
        with self._lock:
            self._busy.discard(decoder)
        return decoder.end(patience_s=patience_s)


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
