"""Frames that a judge sees of a video."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lmms_eval_captions.judges.endpoint.request import Picture
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.video import frames
from lmms_eval_captions.model_wrappers.video.frame_strip import shown_frames


def _video(path: Path, n_frames: int, size: tuple[int, int] = (160, 96)) -> Path:
    """A clip whose frames get brighter."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10, options={"qscale:v": "2"})
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        for index in range(n_frames):
            level = round(220 * index / max(1, n_frames - 1))
            picture = np.full((size[1], size[0], 3), level, dtype=np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    return path


def _level(picture: Picture) -> float:
    return float(np.asarray(Image.open(io.BytesIO(picture.data))).mean())


def test_frames_are_evenly_spaced_from_the_first_to_the_last(tmp_path: Path) -> None:
    found = shown_frames(_video(tmp_path / "clip.avi", 21), 5, cache=tmp_path / "cache")
    assert [_level(picture) for picture in found] == pytest.approx([0, 55, 110, 165, 220], abs=3)
    assert {picture.media_type for picture in found} == {"image/jpeg"}


def test_a_short_clip_shows_each_of_its_frames_once(tmp_path: Path) -> None:
    """Three frames are three, whatever is asked for."""
    assert len(shown_frames(_video(tmp_path / "clip.avi", 3), 16, cache=tmp_path)) == 3


def test_kept_frames_have_the_same_bytes_and_need_no_decoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a copy under another name; another number of frames is drawn anew."""
    cache, clip = tmp_path / "cache", _video(tmp_path / "clip.avi", 9)
    first = shown_frames(clip, 4, cache=cache)
    copy = tmp_path / "copy.avi"
    copy.write_bytes(clip.read_bytes())

    def refuse(*_: object, **__: object) -> None:
        raise DataError("decoded again")

    monkeypatch.setattr(frames, "read_frames", refuse)
    assert shown_frames(copy, 4, cache=cache) == first
    with pytest.raises(DataError, match="decoded again"):
        shown_frames(copy, 5, cache=cache)


@pytest.mark.parametrize("damage", ["cut", "emptied", "no zip", "no frame"])
def test_damaged_frames_are_drawn_again(damage: str, tmp_path: Path) -> None:
    clip = _video(tmp_path / "clip.avi", 9)
    first = shown_frames(clip, 4, cache=tmp_path)
    (kept,) = (tmp_path / "frames").iterdir()
    if damage == "no frame":
        with zipfile.ZipFile(kept, "w"):
            pass
    else:
        raw = kept.read_bytes()
        kept.write_bytes({"cut": raw[: len(raw) // 2], "emptied": b"", "no zip": b"hello"}[damage])
    assert shown_frames(clip, 4, cache=tmp_path) == first
    assert zipfile.ZipFile(kept).testzip() is None


@pytest.mark.parametrize("content", [None, b"no clip"])
def test_what_is_no_clip_is_an_error_that_names_it(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=r"clip\.mp4"):
        shown_frames(path, 4, cache=tmp_path / "cache")
