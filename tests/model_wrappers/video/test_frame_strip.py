"""Frames that G-VEval's judge sees."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.video import frame_strip as frame_strip_module
from lmms_eval_captions.model_wrappers.video import frames
from lmms_eval_captions.model_wrappers.video.clip import Clip, make_clip
from lmms_eval_captions.model_wrappers.video.frame_strip import Sampling, frame_strip
from lmms_eval_captions.model_wrappers.video.sampling import Thirds, Uniform


def _video(path: Path, n_frames: int) -> Path:
    """A clip whose frames get brighter, and are bluer on the right."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10, options={"qscale:v": "2"})
        stream.width, stream.height, stream.pix_fmt = 160, 96, "yuv420p"
        for index in range(n_frames):
            level = round(220 * index / max(1, n_frames - 1))
            picture = np.full((96, 160, 3), level, dtype=np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    return path


def _pixels(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), dtype=np.int16)


def _levels(data: bytes) -> list[float]:
    pixels = _pixels(data)
    return [float(pixels[100:400, left + 100 : left + 400].mean()) for left in (0, 512, 1024)]


def test_the_strip_shows_the_first_middle_and_last_frame(tmp_path: Path) -> None:
    """1536x512, in order of time."""
    picture = frame_strip(_video(tmp_path / "clip.avi", 21), cache=tmp_path / "cache")
    assert picture.media_type == "image/jpeg"
    assert _pixels(picture.data).shape == (512, 1536, 3)
    assert _levels(picture.data) == pytest.approx([0, 110, 220], abs=8)


def test_a_kept_strip_that_was_cut_off_is_drawn_again(tmp_path: Path) -> None:
    video = _video(tmp_path / "clip.avi", 21)
    drawn = frame_strip(video, cache=tmp_path).data
    (kept,) = (tmp_path / "frames").glob("*.jpg")
    for n_bytes in (0, 9000):
        kept.write_bytes(drawn[:n_bytes])
        assert frame_strip(video, cache=tmp_path).data == drawn == kept.read_bytes()


@pytest.mark.parametrize("sampling", ["first_middle_last", "thirds"])
def test_the_frames_of_a_strip_never_move(
    sampling: Sampling, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored verdicts depend on them: of a clip of any length, those that were always drawn.

    And the captioners' ``Uniform(3)`` looks at the same.
    """

    def numbered(_: Path, chosen: Thirds | Uniform) -> Clip:
        times_s = np.arange(n_total) / 25
        return make_clip(np.asarray(chosen.indices(times_s)), times_s, fps=25, n_total=n_total)

    drawn: list[list[int]] = []

    def draw(shown: list[int]) -> bytes:
        drawn.append(shown)
        return b""

    monkeypatch.setattr(frames, "read_frames", numbered)
    monkeypatch.setattr(frame_strip_module, "draw_strip", draw)
    for n_total in range(1, 1201):
        video = tmp_path / f"{n_total}.mp4"
        video.write_text(str(n_total))
        frame_strip(video, cache=tmp_path / "cache", sampling=sampling)
        last = n_total - 1
        wanted = {
            "first_middle_last": [0, 0 if n_total == 2 else round(last / 2), last],
            "thirds": [0, round(last / 3), round(2 * last / 3)],
        }[sampling]
        if sampling == "thirds" and n_total < 4:
            wanted = [0, *([1, 1] if n_total == 3 else [0, 0])]
        assert drawn[-1] == wanted, n_total
        if sampling == "first_middle_last":
            assert Uniform(3).indices(np.arange(n_total) / 25) == sorted({0, round(last / 2), last})


@pytest.mark.parametrize(("n_frames", "levels"), [(1, [0, 0, 0]), (2, [0, 0, 220])])
@pytest.mark.parametrize("sampling", ["first_middle_last", "thirds"])
def test_a_very_short_clip_shows_a_frame_again(
    n_frames: int, levels: list[int], sampling: Sampling, tmp_path: Path
) -> None:
    """Three panels are three panels."""
    video = _video(tmp_path / "clip.avi", n_frames)
    picture = frame_strip(video, cache=tmp_path / "cache", sampling=sampling)
    assert _pixels(picture.data).shape == (512, 1536, 3)
    if sampling == "first_middle_last":
        assert _levels(picture.data) == pytest.approx(levels, abs=8)


def test_the_same_clip_gives_the_same_bytes_wherever_it_is(tmp_path: Path) -> None:
    """Stored verdicts stay valid: for a second run, another folder, and a new cache."""
    video = _video(tmp_path / "clip.avi", 9)
    first = frame_strip(video, cache=tmp_path / "cache")
    moved = tmp_path / "other.avi"
    moved.write_bytes(video.read_bytes())
    assert frame_strip(moved, cache=tmp_path / "new") == first
    kept = next((tmp_path / "cache" / "frames").iterdir())
    kept.write_bytes(b"from another version of the codecs")
    assert frame_strip(video, cache=tmp_path / "cache").data == kept.read_bytes()


def test_a_missing_or_broken_video_is_an_error(tmp_path: Path) -> None:
    """It says which file."""
    with pytest.raises(DataError, match=r"nowhere\.avi"):
        frame_strip(tmp_path / "nowhere.avi", cache=tmp_path)
    broken = tmp_path / "broken.avi"
    broken.write_bytes(b"RIFF no video")
    with pytest.raises(DataError, match=r"broken\.avi"):
        frame_strip(broken, cache=tmp_path)
