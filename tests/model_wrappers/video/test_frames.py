"""Reading frames: what is sampled, and what broken files give."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostile_clips import write_gif
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.video.frames import VideoReader, read_frames
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


@pytest.fixture(params=["pyav", "decord"])
def reader(request: pytest.FixtureRequest) -> VideoReader:
    """Runs a test with PyAV, and with decord."""
    if request.param == "decord":
        pytest.importorskip("decord")
        return "decord"
    return "pyav"


def test_frames_are_spread_from_the_first_to_the_last(tmp_path: Path, reader: VideoReader) -> None:
    """The sampled frames are those at evenly rounded positions, with their times."""
    clip = read_frames(_write(tmp_path / "clip.mp4"), 4, video_reader=reader)
    wanted = [0, 8, 15, 23]
    levels = clip.frames.mean(axis=(1, 2, 3))
    assert levels == pytest.approx([_level(index) for index in wanted], abs=4)
    assert clip.timestamps_s == pytest.approx([index / FPS for index in wanted], abs=1e-3)
    assert (clip.n_total, clip.fps, clip.duration_s) == (N_FRAMES, FPS, N_FRAMES / FPS)
    assert clip.frames.dtype == np.uint8


def test_colors_are_red_green_blue(tmp_path: Path, reader: VideoReader) -> None:
    """The last axis is RGB, not BGR."""
    path = tmp_path / "red.mp4"
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=FPS)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        picture = np.zeros((48, 64, 3), dtype=np.uint8)
        picture[..., 0] = 220
        container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    red, green, blue = read_frames(path, 1, video_reader=reader).frames[0].mean(axis=(0, 1))
    assert red > 180
    assert max(green, blue) < 60


@pytest.mark.parametrize(("n_written", "n_asked", "n_given"), [(3, 16, 3), (1, 8, 1), (5, 1, 1)])
def test_short_clips_give_what_they_have(
    tmp_path: Path, n_written: int, n_asked: int, n_given: int, reader: VideoReader
) -> None:
    """A clip with fewer frames than asked for gives each once."""
    path = _write(tmp_path / "clip.mp4", n_written)
    clip = read_frames(path, n_asked, video_reader=reader)
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
def test_the_real_clip(reader: VideoReader) -> None:
    """A 720p H.264 clip whose first time stamp is not zero."""
    clip = read_frames(REAL, 8, video_reader=reader)
    assert clip.frames.shape == (8, 720, 1280, 3)
    assert (clip.n_total, clip.fps) == (217, 25.0)
    assert clip.timestamps_s[0] == pytest.approx(0.0)
    assert clip.timestamps_s[-1] == pytest.approx(216 / 25, abs=0.05)


@needs_real
def test_both_readers_see_the_same() -> None:
    """Decord and PyAV return the same pictures for the same positions."""
    pytest.importorskip("decord")
    with_av, with_decord = (
        read_frames(REAL, 3, video_reader=reader).frames.astype(int)
        for reader in get_args(VideoReader)
    )
    assert np.abs(with_decord - with_av).mean() < 3


def test_decord_never_stands_in_for_pyav(tmp_path: Path) -> None:
    """A clip that decord cannot read is refused by name, not read by another reader."""
    pytest.importorskip("decord")
    path = tmp_path / "clip.gif"
    write_gif(path, 3, 40)
    assert read_frames(path, 2).n_total == 3
    with pytest.raises(DataError, match=r"clip\.gif"):
        read_frames(path, 2, video_reader="decord")
