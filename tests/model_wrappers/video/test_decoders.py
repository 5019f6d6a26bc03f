"""Decoding in processes of its own: crashes, hangs and memory cost that clip alone."""

from __future__ import annotations

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
from lmms_eval_captions.model_wrappers.video import decoders, readers
from lmms_eval_captions.model_wrappers.video.decoders import Decoders
from lmms_eval_captions.model_wrappers.video.frames import read_frames
from lmms_eval_captions.model_wrappers.video.limits import Limits
from lmms_eval_captions.model_wrappers.video.sampling import Uniform

if TYPE_CHECKING:
    from collections.abc import Iterator


SLOW_SIDE = 4000
"""A canvas of so many pixels per side takes a GIF's decoder some milliseconds per frame."""


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """A good clip, which the first reader can read."""
    if hostile_clips.SOUGHT_CODEC == "mpeg4":
        pytest.skip("this build of PyAV has no encoder libx264")
    return hostile_clips.write_clip(tmp_path / "clip.mp4", codec=hostile_clips.SOUGHT_CODEC)


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """A small file that takes minutes to decode."""
    return hostile_clips.write_gif(tmp_path / "slow.gif", 10_000, SLOW_SIDE)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[Decoders]:
    """Decoders of the test's own."""
    own = Decoders()
    monkeypatch.setattr(decoders, "DECODERS", own)
    yield own
    own.stop()


def test_frames_are_those_that_reading_here_gives(clip: Path) -> None:
    """The other process changes no pixel, time or count, and the frames can be written to."""
    there = read_frames(clip, 5)
    here = readers.read_with(readers.READERS[0], clip, Uniform(5), max_pixels=None, n_threads=1)
    assert np.array_equal(there.frames, here.frames)
    assert np.array_equal(there.timestamps_s, here.timestamps_s)
    assert (there.fps, there.duration_s, there.n_total) == (here.fps, here.duration_s, here.n_total)
    assert there.frames.flags.writeable


def test_one_process_reads_many_clips_and_keeps_none_of_them(clip: Path, fresh: Decoders) -> None:
    """Reading in turn starts one process; frames of an earlier clip stay what they were."""
    first = read_frames(clip, 3)
    kept = first.frames.copy()
    for n_frames in range(1, 9):
        assert len(read_frames(clip, n_frames).frames) == n_frames
    assert np.array_equal(first.frames, kept)
    assert len(fresh._idle) == 1


def test_decoders_are_told_no_secret(
    clip: Path, fresh: Decoders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a clip might take over finds no key, token or password in its environment."""
    if not Path("/proc/self/environ").exists():
        pytest.skip("this system does not show the environment of a process")
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "HOME_TOKEN", "LANGUAGE_KEY", "https_proxy"):
        monkeypatch.setenv(name, "http://user:s3cret-0123456789@host")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/needed")
    read_frames(clip, 2)
    environ = Path(f"/proc/{fresh._idle[0].process.pid}/environ").read_bytes()
    assert b"s3cret" not in environ
    assert {b"PATH", b"LD_LIBRARY_PATH", b"OPENBLAS_NUM_THREADS"} <= {
        variable.partition(b"=")[0] for variable in environ.split(b"\0")
    }


def test_a_decoder_that_crashes_costs_its_reader_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lying box aborts decord; PyAV reads the clip, and the next clip finds a decoder."""
    pytest.importorskip("decord")
    monkeypatch.setattr(readers, "READERS", ("decord", "PyAV"))
    path = hostile_clips.endless_repeats(tmp_path / "lying.mp4")
    assert read_frames(path, 4).n_total == 24
    monkeypatch.setattr(readers, "READERS", ("decord",))
    with pytest.raises(DataError, match=r"lying\.mp4.*decord: the decoder crashed \(SIGABRT\)"):
        read_frames(path, 4)
    assert read_frames(hostile_clips.write_clip(tmp_path / "good.mp4"), 4).n_total == 24


def test_a_clip_that_takes_too_long_is_given_up(slow: Path, clip: Path, fresh: Decoders) -> None:
    """The limit is for all readers together, and the process that hangs is ended."""
    started_s = time.monotonic()
    with pytest.raises(DataError, match=r"slow\.gif.*took more than 1 s"):
        read_frames(slow, 2, limits=Limits(timeout_s=1))
    assert time.monotonic() - started_s < 10
    assert not fresh._idle
    assert not fresh._busy
    read_frames(clip, 2)


@pytest.mark.skipif(not Path("/proc/self/statm").is_file(), reason="the limit is held on Linux")
def test_a_clip_that_needs_too_much_memory_is_given_up(
    tmp_path: Path, clip: Path, fresh: Decoders
) -> None:
    """The limit is named, and the same decoder reads the next clip."""
    path = hostile_clips.write_png(tmp_path / "giant.png", 12_000)
    with pytest.raises(DataError, match=r"giant\.png.*needs more than 0\.1 GiB"):
        read_frames(path, 2, limits=Limits(memory_gib=0.1))
    [decoder] = fresh._idle
    assert read_frames(clip, 2).n_total == 24
    assert fresh._idle == [decoder]


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="memory is read from /proc")
def test_a_giant_picture_is_never_held_whole_as_rgb(tmp_path: Path, fresh: Decoders) -> None:
    """A gray picture of 144 million pixels takes that many bytes and a little, not four times."""
    path = hostile_clips.write_png(tmp_path / "giant.png", 12_000)
    assert read_frames(path, 1).frames.shape == (1, 1445, 1445, 3)
    [decoder] = fresh._idle
    status = Path(f"/proc/{decoder.process.pid}/status").read_text(encoding="ascii")
    [peak] = [line for line in status.splitlines() if line.startswith("VmHWM")]
    assert int(peak.split()[1]) < 350_000, "kB"


_READS = """
import signal
import sys
from pathlib import Path
from lmms_eval_captions.model_wrappers.video.decoders import DECODERS
from lmms_eval_captions.model_wrappers.video.frames import read_frames
# Shells have what runs in the background ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
read_frames(Path(sys.argv[1]), 2)
print(DECODERS._idle[0].process.pid, flush=True)
read_frames(Path(sys.argv[2]), 2)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="processes are read from /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_decoders_end_with_their_parent(clip: Path, slow: Path, number: int) -> None:
    """Even in the midst of a clip, however the parent ends."""
    with subprocess.Popen(
        [sys.executable, "-c", _READS, str(clip), str(slow)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as parent:
        assert parent.stdout is not None
        decoder = int(parent.stdout.readline())
        time.sleep(0.5)
        assert _runs(decoder)
        parent.send_signal(number)
        parent.wait(timeout=30)
        _wait_for(lambda: not _runs(decoder))


def _runs(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _wait_for(condition: object, patience_s: float = 10.0) -> None:
    assert callable(condition)
    until_s = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < until_s, "waited in vain"
        time.sleep(0.05)
