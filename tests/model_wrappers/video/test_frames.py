"""Reading frames: what is sampled, and what broken files give."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.video import readers
from lmms_eval_captions.model_wrappers.video.frames import read_frames
from lmms_eval_captions.model_wrappers.video.sampling import spread

REAL = Path(__file__).parents[4] / "shared" / "data" / "media" / "video1.mp4"
needs_real = pytest.mark.skipif(not REAL.is_file(), reason=f"the real clip is not at {REAL}")

N_FRAMES, FPS = 24, 12


def _level(index: int) -> int:
    """Gray level of a numbered frame."""
    return 20 + 9 * index


def _write(
    path: Path,
    n_frames: int = N_FRAMES,
    *,
    options: dict[str, str] | None = None,
    codec: str = "mpeg4",
) -> Path:
    with av.open(str(path), "w", format="mp4", options=options or {}) as container:
        stream = container.add_stream(codec, rate=FPS)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for index in range(n_frames):
            picture = np.full((48, 64, 3), _level(index), dtype=np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    return path


@pytest.fixture(params=["PyAV", "decord"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs a test with PyAV, and with decord."""
    kept = ("PyAV, seeking" if request.param == "PyAV" else "decord", "PyAV")
    monkeypatch.setattr(readers, "READERS", kept)
    return str(request.param)


@pytest.mark.usefixtures("reader")
def test_frames_are_spread_from_the_first_to_the_last(tmp_path: Path) -> None:
    """The sampled frames are those at evenly rounded positions, with their times."""
    clip = read_frames(_write(tmp_path / "clip.mp4"), 4)
    wanted = [0, 8, 15, 23]
    levels = clip.frames.mean(axis=(1, 2, 3))
    assert levels == pytest.approx([_level(index) for index in wanted], abs=4)
    assert clip.timestamps_s == pytest.approx([index / FPS for index in wanted], abs=1e-3)
    assert (clip.n_total, clip.fps, clip.duration_s) == (N_FRAMES, FPS, N_FRAMES / FPS)
    assert clip.frames.dtype == np.uint8


@pytest.mark.usefixtures("reader")
def test_colors_are_red_green_blue(tmp_path: Path) -> None:
    """The last axis is RGB, not BGR."""
    path = tmp_path / "red.mp4"
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=FPS)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        picture = np.zeros((48, 64, 3), dtype=np.uint8)
        picture[..., 0] = 220
        container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    red, green, blue = read_frames(path, 1).frames[0].mean(axis=(0, 1))
    assert red > 180
    assert max(green, blue) < 60


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(("n_written", "n_asked", "n_given"), [(3, 16, 3), (1, 8, 1), (5, 1, 1)])
def test_short_clips_give_what_they_have(
    tmp_path: Path, n_written: int, n_asked: int, n_given: int
) -> None:
    """A clip with fewer frames than asked for gives each once."""
    clip = read_frames(_write(tmp_path / "clip.mp4", n_written), n_asked)
    assert len(clip.frames) == len(clip.timestamps_s) == n_given
    assert clip.n_total == n_written


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "is empty"), (b"this is no video\n" * 50, "no video container")],
    ids=["empty", "text"],
)
def test_files_that_are_no_video_name_path_and_reason(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    """A file without video data gives one error with the path and what is wrong with it."""
    path = tmp_path / "clip.mp4"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"clip\.mp4.*{reason}"):
        read_frames(path, 4)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A missing file gives an error with its path."""
    with pytest.raises(DataError, match=r"nowhere\.mp4"):
        read_frames(tmp_path / "nowhere.mp4", 4)


@pytest.mark.usefixtures("reader")
def test_a_file_cut_off_gives_its_readable_start(tmp_path: Path) -> None:
    """A half-downloaded clip with its index in front gives frames of the half that is there."""
    path = _write(tmp_path / "clip.mp4", options={"movflags": "faststart"})
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * 0.7)])
    clip = read_frames(path, 4)
    assert 1 <= clip.n_total < N_FRAMES
    assert clip.frames[0].mean() == pytest.approx(_level(0), abs=4)
    assert clip.frames[-1].mean() == pytest.approx(_level(clip.n_total - 1), abs=12)


def test_a_file_cut_off_before_its_index_is_unreadable(tmp_path: Path) -> None:
    """Where the index was at the end, nothing can be read and the error says so."""
    path = _write(tmp_path / "clip.mp4")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"clip\.mp4"):
        read_frames(path, 4)


@given(st.integers(1, 500), st.integers(1, 64))
def test_indices_are_distinct_ordered_and_inside(n_total: int, n_frames: int) -> None:
    """Positions rise strictly, start at the first frame and, from two on, end at the last."""
    indices = spread(n_total, n_frames)
    assert len(indices) == min(n_total, n_frames)
    assert indices == sorted(set(indices))
    assert indices[0] == 0
    assert len(indices) == 1 or indices[-1] == n_total - 1


@needs_real
@pytest.mark.usefixtures("reader")
def test_the_real_clip() -> None:
    """A 720p H.264 clip whose first time stamp is not zero."""
    clip = read_frames(REAL, 8)
    assert clip.frames.shape == (8, 720, 1280, 3)
    assert (clip.n_total, clip.fps) == (217, 25.0)
    assert clip.timestamps_s[0] == pytest.approx(0.0)
    assert clip.timestamps_s[-1] == pytest.approx(216 / 25, abs=0.05)


@needs_real
def test_both_readers_see_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decord and PyAV return the same pictures for the same positions."""
    with_av = read_frames(REAL, 3)
    monkeypatch.setattr(readers, "READERS", ("decord",))
    with_decord = read_frames(REAL, 3)
    difference = np.abs(with_decord.frames.astype(int) - with_av.frames.astype(int))
    assert difference.mean() < 3
