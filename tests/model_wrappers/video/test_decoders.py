"""Decoding in processes of its own: crashes, hangs and memory cost that clip alone."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import hostile_clips
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.video import decoders
from lmms_eval_captions.model_wrappers.video.clip import Limits
from lmms_eval_captions.model_wrappers.video.decoders import Decoders, read_here
from lmms_eval_captions.model_wrappers.video.frames import read_frames
from lmms_eval_captions.model_wrappers.video.sampling import Uniform

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/statm").is_file(), reason="memory is limited and read on Linux"
)


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """A good clip."""
    return hostile_clips.write_clip(tmp_path / "clip.mp4", codec=hostile_clips.SOUGHT_CODEC)


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """A small file that takes minutes to decode."""
    return hostile_clips.write_gif(tmp_path / "slow.gif", 10_000, 4000)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[Decoders]:
    """Decoders of the test's own."""
    decoders.DECODERS.stop()
    own = Decoders()
    own.n_processes = 1
    monkeypatch.setattr(decoders, "DECODERS", own)
    yield own
    own.stop()


def _process() -> int:
    """Return the only decoding process."""
    [process] = multiprocessing.active_children()
    assert process.pid is not None
    return process.pid


class Second:
    """A sampling that decoders cannot import."""

    def indices(self, times_s: NDArray[np.float64]) -> list[int]:
        """Return the second frame and the last."""
        return [1, len(times_s) - 1]


def test_frames_are_those_that_reading_here_gives(clip: Path) -> None:
    """The other process changes no pixel, time or count, and the frames can be written to."""
    there = read_frames(clip, 5)
    here = read_here(clip, Uniform(5), video_reader="pyav", max_pixels=None, n_threads=1)
    assert np.array_equal(there.frames, here.frames)
    assert np.array_equal(there.timestamps_s, here.timestamps_s)
    assert (there.fps, there.duration_s, there.n_total) == (here.fps, here.duration_s, here.n_total)
    assert there.frames.flags.writeable
    own = read_frames(clip, Second())
    assert own.timestamps_s == pytest.approx([1 / 12, 23 / 12])


def test_one_process_reads_many_clips_and_keeps_none_of_them(clip: Path) -> None:
    """Frames of an earlier clip stay what they were."""
    first = read_frames(clip, 3)
    kept, process = first.frames.copy(), _process()
    for n_frames in range(1, 9):
        assert len(read_frames(clip, n_frames).frames) == n_frames
    assert np.array_equal(first.frames, kept)
    assert _process() == process


@needs_proc
def test_decoders_are_told_no_secret(clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clip that takes a decoder over finds no key, token or password in its environment."""
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "HOME_TOKEN", "LANGUAGE_KEY", "https_proxy"):
        monkeypatch.setenv(name, "http://user:s3cret-0123456789@host")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/needed")
    read_frames(clip, 2)
    environ = Path(f"/proc/{_process()}/environ").read_bytes()
    assert b"s3cret" not in environ
    assert {b"PATH", b"LD_LIBRARY_PATH", b"OPENBLAS_NUM_THREADS"} <= {
        variable.partition(b"=")[0] for variable in environ.split(b"\0")
    }


def test_a_decoder_that_crashes_costs_its_clip_alone(tmp_path: Path) -> None:
    """A lying box aborts decord; PyAV reads the clip, and the next clip finds a decoder."""
    pytest.importorskip("decord")
    path = hostile_clips.endless_repeats(tmp_path / "lying.mp4")
    with pytest.raises(DataError, match=r"lying\.mp4.*the decoder crashed \(SIGABRT\)"):
        read_frames(path, 4, video_reader="decord")
    assert read_frames(path, 4).n_total == 24


def test_a_clip_that_takes_too_long_is_given_up(slow: Path, clip: Path) -> None:
    """The process that hangs is ended, and the next clip is read."""
    read_frames(clip, 2)
    process = _process()
    started_s = time.monotonic()
    with pytest.raises(DataError, match=r"slow\.gif.*took more than 1 s"):
        read_frames(slow, 2, limits=Limits(timeout_s=1))
    assert time.monotonic() - started_s < 10
    read_frames(clip, 2)
    assert _process() != process


@needs_proc
def test_a_clip_that_needs_too_much_memory_is_given_up(tmp_path: Path, clip: Path) -> None:
    """The limit is named, and the same decoder reads the next clip."""
    path = hostile_clips.write_png(tmp_path / "giant.png", 12_000)
    with pytest.raises(DataError, match=r"giant\.png.*needs more than 0\.1 GiB"):
        read_frames(path, 2, limits=Limits(memory_gib=0.1))
    process = _process()
    assert read_frames(clip, 2).n_total == 24
    assert _process() == process


@needs_proc
def test_a_giant_picture_is_never_held_whole_as_rgb(tmp_path: Path) -> None:
    """A gray picture of 144 million pixels takes that many bytes and a little, not four times."""
    path = hostile_clips.write_png(tmp_path / "giant.png", 12_000)
    assert read_frames(path, 1).frames.shape == (1, 1445, 1445, 3)
    status = Path(f"/proc/{_process()}/status").read_text(encoding="ascii")
    [peak] = [line for line in status.splitlines() if line.startswith("VmHWM")]
    assert int(peak.split()[1]) < 350_000, "kB"


_READS = """
import multiprocessing
import signal
import sys
from pathlib import Path
print("imported", flush=True)
from lmms_eval_captions.model_wrappers.video.frames import read_frames
# Shells have what runs in the background ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
read_frames(Path(sys.argv[1]), 2)
print(multiprocessing.active_children()[0].pid, flush=True)
read_frames(Path(sys.argv[2]), 2)
"""


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_decoders_end_with_their_parent(
    clip: Path, slow: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """Even in the midst of a clip, however the parent ends; its script is not run again."""
    script = tmp_path / "script.py"
    script.write_text(_READS)
    with subprocess.Popen(
        [sys.executable, script, str(clip), str(slow)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"imported\n"
        decoder = int(parent.stdout.readline())
        time.sleep(0.5)
        assert _runs(decoder)
        parent.send_signal(number)
        parent.wait(timeout=30)
        until_s = time.monotonic() + 10
        while _runs(decoder):
            assert time.monotonic() < until_s, "waited in vain"
            time.sleep(0.05)


def _runs(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
