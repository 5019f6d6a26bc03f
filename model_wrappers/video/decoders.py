"""Pool of decoding processes: a clip that crashes, hangs or fills the memory costs only itself."""

from __future__ import annotations

import atexit
import io
import mmap
import os
import re
import resource
import signal
import subprocess
import tempfile
import threading
from concurrent.futures import CancelledError, Future, TimeoutError  # noqa: A004 (not yet one in 3.10)
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import (
    context,
    parent_process,
    popen_spawn_posix,
    reduction,
    resource_tracker,
    spawn,
    util,
)
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np
from loguru import logger

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.video import decord_frames
from lmms_eval_captions.model_wrappers.video.containers import UnreadableError
from lmms_eval_captions.model_wrappers.video.pictures import one_line
from lmms_eval_captions.model_wrappers.video.sampling import Explicit, Sampling

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from multiprocessing.process import BaseProcess

    from numpy.typing import NDArray
    from pebble import ProcessPool

    from lmms_eval_captions.model_wrappers.video.clip import Clip, Limits

_MOST_PROCESSES: Final = 4
"""Decoders at most, unless a captioner wants more."""
_CLIPS_PER_PROCESS: Final = 500
"""A process is replaced after this many clips: libraries leak."""
_FRAME_COPIES: Final = 2
"""Frames are held one by one, and then together."""
_JOIN_S: Final = 10.0
_KEPT_VARIABLES: Final = re.compile(
    "PATH|HOME|LANG|LC_ALL|LC_CTYPE|TZ|TMPDIR|VIRTUAL_ENV|CONDA_PREFIX|(LD|DYLD)_.*(PATH|PRELOAD|"
    "LIBRARIES)|PYTHON(HOME|PATH|UTF8|HASHSEED|DONTWRITEBYTECODE|PYCACHEPREFIX)|GLIBC_TUNABLES|"
    "MALLOC_(ARENA_MAX|CONF)"
)
"""Environment of a decoder: paths of Python and of libraries, never keys or proxy passwords."""
_ADDED_VARIABLES: Final = {
    # Fresh pages for each frame cost a fifth of the time of reading a clip.
    "MALLOC_MMAP_THRESHOLD_": str(2**25),
    "MALLOC_TRIM_THRESHOLD_": str(2**28),
    # Several decoders run next to each other.
    "OPENBLAS_NUM_THREADS": "1",
    "OPENCV_FOR_THREADS_NUM": "1",
}


class LimitError(DataError):
    """Reading a file goes beyond a limit of time or memory; the text names the setting."""


class Decoders:
    """Decoding processes, started at first use."""

    def __init__(self) -> None:
        self.n_processes = max(1, min(_MOST_PROCESSES, (os.cpu_count() or 1) // 2))
        """Clips that are read at once; takes effect when the processes are started."""
        self.forget()

    def forget(self) -> None:
        """Start over, as in a forked child, whose parent keeps the processes."""
        self._lock = threading.Lock()
        self._pool: ProcessPool | None = None
        self._futures: set[Future[Any]] = set()

    def stop(self) -> None:
        """End all processes and whatever they are reading; the next clip starts new ones."""
        with self._lock:
            pool, self._pool = self._pool, None
            futures, self._futures = self._futures, set()
        if pool is not None:
            pool.stop()  # type: ignore[no-untyped-call]
            # pebble leaves those who wait for a stopped pool waiting.
            for future in futures:
                future.cancel()
            pool.join(_JOIN_S)

    def read(self, path: Path, sampling: Sampling, limits: Limits, **options: Any) -> Clip:  # noqa: ANN401 (of read_frames)
        """Read the chosen frames in a decoding process; arguments as in ``read_frames``.

        Raises ``UnreadableError`` (also of a crash), ``RefusedError`` or ``LimitError``, or another
        ``DataError`` if the processes were stopped meanwhile.
        """
        from pebble import ProcessExpired

        try:
            if type(sampling).__module__.partition(".")[0] == __name__.partition(".")[0]:
                return self._read(path, sampling, limits, options)[0]
            # A class that a decoder may not be able to import.
            times_s = self._read(path, None, limits, options)[1]
            chosen = Explicit(tuple(map(int, sampling.indices(times_s))))
            return self._read(path, chosen, limits, options)[0]
        except TimeoutError as error:
            raise LimitError(
                f"reading it took more than {limits.timeout_s:g} s; raise decode_timeout_s in "
                "--model_args where the model takes it, or encode the file again"
            ) from error
        except MemoryError as error:
            raise LimitError(
                f"reading it needs more than {limits.memory_gib:g} GiB of memory besides its "
                "frames; raise decode_memory_gib in --model_args where the model takes it, or "
                "encode the file again"
            ) from error
        except ProcessExpired as error:
            code = -(error.exitcode or 0)
            known = code in {number.value for number in signal.Signals}
            name = signal.Signals(code).name if known else f"exit code {-code}"
            raise UnreadableError(f"the decoder crashed ({name})") from error
        except CancelledError as error:
            raise DataError(f"the reading of {path} was stopped") from error

    def _read(
        self, path: Path, sampling: Sampling | None, limits: Limits, options: Mapping[str, Any]
    ) -> tuple[Clip, NDArray[np.float64]]:
        """Return a clip and, without a sampling, the times of all its frames."""
        from pebble import ProcessPool

        with _shared_file() as (file, name):
            # Absolute, without following links.
            where = Path(os.path.abspath(path))  # noqa: PTH100
            with self._lock:
                if self._pool is None or not self._pool.active:
                    self._pool = ProcessPool(
                        max_workers=self.n_processes,
                        max_tasks=_CLIPS_PER_PROCESS,
                        initializer=_begin,
                        context=_Context(),
                    )
                arguments = where, sampling, limits.memory_gib, name, options
                future = self._pool.schedule(_work, arguments, timeout=limits.timeout_s)
                self._futures.add(future)
            try:
                shape, clip, times_s = future.result()
            finally:
                self._futures.discard(future)
            mapped = mmap.mmap(file.fileno(), int(np.prod(shape)))
        return replace(clip, frames=np.frombuffer(mapped, np.uint8).reshape(shape)), times_s


def read_here(
    path: Path, sampling: Sampling, *, video_reader: str, max_pixels: int | None, n_threads: int
) -> Clip:
    """Read the chosen frames in this process; arguments as in ``read_frames``.

    Raises ``UnreadableError`` or ``RefusedError``, or ``MemoryError`` if there is too little.
    """
    from lmms_eval_captions.model_wrappers.video import decoding

    try:
        if video_reader == "decord":
            return decord_frames.read(path, sampling, max_pixels=max_pixels, n_threads=n_threads)
        try:
            return decoding.seek(path, sampling, max_pixels=max_pixels, n_threads=n_threads)
        except UnreadableError as error:
            logger.debug("{}: decoded from the start: {}", path, error)
        return decoding.decode_all(path, sampling, max_pixels=max_pixels)
    except (DataError, MemoryError) as error:
        if isinstance(error.__cause__, MemoryError):  # libav's own is one, too.
            raise error.__cause__ from error
        raise
    except Exception as error:  # Whatever a library raises costs this clip alone.
        raise UnreadableError(f"{type(error).__name__}: {one_line(error)}") from error


def _begin() -> None:
    """Set up a decoding process: silent, without core dumps, ending with its parent."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logger.remove()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)

    def end_with_parent() -> None:
        if parent := parent_process():
            parent.join()
            os._exit(0)

    threading.Thread(target=end_with_parent, daemon=True).start()


def _work(
    path: Path, sampling: Sampling | None, memory_gib: float, file: str, options: Mapping[str, Any]
) -> tuple[tuple[int, ...], Clip, NDArray[np.float64]]:
    """Read a clip in a decoding process.

    Return the shape of the frames, which go to a shared file, the clip without them, and the times
    of all frames.
    """
    chosen = _WithinMemory(sampling or Explicit((0,)), memory_gib, options["max_pixels"])
    try:
        clip = read_here(path, chosen, **options)
    except DataError as error:
        # Causes may hold what cannot be pickled.
        raise type(error)(str(error)) from None
    except MemoryError:  # libav's own, too, which cannot be pickled either
        raise MemoryError from None
    with open(file, "r+b", buffering=0) as shared:  # noqa: PTH123 (a name in /proc)
        left = np.ascontiguousarray(clip.frames).data.cast("B")
        while left:
            left = left[shared.write(left) :]
    empty = replace(clip, frames=clip.frames[:0])
    return clip.frames.shape, empty, chosen.times_s if sampling is None else np.zeros(0)


class _WithinMemory:
    """A sampling that keeps a memory limit; the frames that it chooses come on top.

    The limit is one of private memory, on Linux, where the system says how much is in use.
    """

    def __init__(self, sampling: Sampling, gib: float, max_pixels: int | None) -> None:
        self._sampling = sampling
        self._frame_bytes = _FRAME_COPIES * 3 * (max_pixels or 0)
        self.times_s: NDArray[np.float64] = np.zeros(0)
        try:
            pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[5]
        except (OSError, IndexError):
            self._most_bytes = None
            return
        self._most_bytes = int(pages) * resource.getpagesize() + int(gib * 2**30)
        self._limit(0)

    def indices(self, times_s: NDArray[np.float64]) -> list[int]:
        """Choose frames; see :class:`Sampling`."""
        self.times_s = times_s
        indices = self._sampling.indices(times_s)
        self._limit(len(indices))
        return indices

    def _limit(self, n_frames: int) -> None:
        if self._most_bytes is not None:
            wanted = self._most_bytes + n_frames * self._frame_bytes
            _, hard = resource.getrlimit(resource.RLIMIT_DATA)
            soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@contextmanager
def _shared_file() -> Iterator[tuple[IO[bytes], str]]:
    """Make a file, in memory on Linux, and the name by which a decoder opens it.

    Frames of a clip fill megabytes, which are slow to send through a pipe.
    """
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile() as file:
            yield file, file.name
        return
    with os.fdopen(os.memfd_create("frames"), "w+b") as memory:
        yield memory, f"/proc/{os.getpid()}/fd/{memory.fileno()}"


class _Popen(popen_spawn_posix.Popen):
    """A spawned process that does not import the main module, and has a bare environment.

    ``multiprocessing`` would import lmms-eval again, or run a user's script a second time.
    """

    def _launch(self, process_obj: BaseProcess) -> None:
        tracker: Any = resource_tracker.getfd()
        inherited: list[int] = self._fds  # type: ignore[attr-defined] # and this
        preparation: dict[str, Any] = spawn.get_preparation_data(process_obj.name)
        preparation.pop("init_main_from_name", None)
        preparation.pop("init_main_from_path", None)
        pickled = io.BytesIO()
        context.set_spawning_popen(self)
        try:
            reduction.dump(preparation, pickled)
            reduction.dump(process_obj, pickled)
        finally:
            context.set_spawning_popen(None)
        self.sentinel, child_end = os.pipe()
        child_start, parent_end = os.pipe()
        self.finalizer = util.Finalize(self, _close, (self.sentinel, parent_end))
        environment = {k: v for k, v in os.environ.items() if _KEPT_VARIABLES.fullmatch(k)}
        try:
            self._child = subprocess.Popen(  # noqa: S603 (our own code)
                spawn.get_command_line(tracker_fd=tracker, pipe_handle=child_start),
                stdin=subprocess.DEVNULL,
                pass_fds=[*inherited, tracker, child_start, child_end],
                env={**_ADDED_VARIABLES, **environment},
            )
        finally:
            _close(child_start, child_end)
        self.pid = self._child.pid
        with open(parent_end, "wb", closefd=False) as stream:
            stream.write(pickled.getbuffer())

    def poll(self, flag: int = os.WNOHANG) -> int | None:
        """Return the exit code, ``None`` while the process runs."""
        if self.returncode is None:
            self.returncode = self._child.poll() if flag == os.WNOHANG else self._child.wait()
        return self.returncode


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


class _Process(context.SpawnProcess):
    @staticmethod
    def _Popen(process_obj: BaseProcess) -> _Popen:  # noqa: N802 (multiprocessing's)
        return _Popen(process_obj)


class _Context(context.SpawnContext):
    Process = _Process


DECODERS: Final = Decoders()
"""Decoders of this process."""
atexit.register(DECODERS.stop)
os.register_at_fork(after_in_child=DECODERS.forget)
