"""Pictures of every kind, read or named."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFile

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.video.pictures import read_picture

PIXELS = np.stack([np.full((6, 9), level, np.uint8) for level in (200, 100, 50)], axis=-1)
PIXELS[0, 0] = (0, 0, 0)
"""One dark corner tells how a picture is turned."""


def _bytes(picture: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def test_a_picture_is_the_same_whatever_it_comes_as(tmp_path: Path) -> None:
    """One frame in RGB that knows that it is a picture."""
    picture = Image.fromarray(PIXELS)
    raw = _bytes(picture)
    (tmp_path / "odd.bin").write_bytes(raw)
    for given in (picture, PIXELS, raw, tmp_path / "odd.bin"):
        clip = read_picture(given)
        assert np.array_equal(clip.frames[0], PIXELS)
        assert (clip.is_image, clip.n_total, len(clip.frames), clip.duration_s) == (True, 1, 1, 0)


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "1", "LA"])
def test_other_kinds_of_pixels_become_rgb(mode: str) -> None:
    picture = Image.fromarray(PIXELS).convert(mode)
    assert np.array_equal(read_picture(picture).frames[0], np.array(picture.convert("RGB")))


def test_a_picture_stands_as_its_file_says() -> None:
    """A photograph that was taken upright is shown upright."""
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn to the right
    clip = read_picture(_bytes(Image.fromarray(PIXELS), exif=exif))
    assert np.array_equal(clip.frames[0], np.rot90(PIXELS, -1))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (b"nonsense", "one of 8 bytes is not one"),
        (Path("gone.png"), "gone.png is not one: there is no such file"),
        (np.zeros((2, 2), np.complex128), "given as ndarray is not one"),
        (_bytes(Image.fromarray(PIXELS))[:60], "one of 60 bytes is not one"),
    ],
    ids=["nonsense", "gone", "odd numbers", "cut off"],
)
def test_a_picture_that_cannot_be_read_is_named(
    given: object, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # lmms-eval has Pillow read what there is of a picture that was cut off.
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", False)
    with pytest.raises(DataError, match=words):
        read_picture(given)
