"""From decoded frames to RGB: the levels that ffmpeg's own filters give."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import av
import numpy as np
import pytest
from av.filter import Graph
from numpy.typing import NDArray

from lmms_eval_captions.model_wrappers.video.frame_pictures import picture

MATRICES = {"bt709": 1, "unspecified": 2, "fcc": 4, "bt470bg": 5, "smpte170m": 6, "bt2020nc": 9}


def _frame(pixels: str, matrix: int = 2, spread: int = 0) -> av.VideoFrame:
    """Coloured blocks, whose edges show how chroma is spread, that say how they are coded."""
    random = np.random.default_rng(3)
    blocks = random.integers(0, 256, (16, 24, 3), dtype=np.uint8)
    rgb = np.ascontiguousarray(blocks.repeat(4, axis=0).repeat(4, axis=1))
    frame = av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format=pixels)
    frame.colorspace, frame.color_range = matrix, spread
    return frame


def _by_filters(frame: av.VideoFrame) -> NDArray[np.uint8]:
    """RGB as ffmpeg makes it: a filter graph that puts in what it needs to convert."""
    graph = Graph()
    ends = [
        graph.add_buffer(
            width=frame.width, height=frame.height, format=frame.format, time_base=Fraction(1, 25)
        ),
        graph.add("format", "pix_fmts=rgb24"),
        graph.add("buffersink"),
    ]
    for first, second in pairwise(ends):
        first.link_to(second)
    graph.configure()
    graph.push(frame)
    shown = graph.pull()
    return np.asarray(shown.to_ndarray(), dtype=np.uint8)


@pytest.mark.parametrize("spread", [0, 1, 2], ids=["unspecified", "tv", "pc"])
@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("pixels", ["yuv420p", "yuv420p10le", "yuv444p", "nv12"])
def test_levels_are_those_of_the_matrix_and_range_that_a_frame_names(
    pixels: str, matrix: str, spread: int
) -> None:
    """Every matrix and range, 8 and 10 bits: level for level what ffmpeg's filters make."""
    frame = _frame(pixels, MATRICES[matrix], spread)
    assert np.array_equal(picture(frame, None), _by_filters(frame))


@pytest.mark.parametrize(
    "pixels",
    ["yuv410p", "yuv411p", "yuv422p", "yuv422p10le", "yuv440p", "yuvj420p", "yuva420p", "p010le",
     "yuyv422", "uyvy422", "gray", "gray10le", "ya8", "gbrp", "gbrp10le", "rgb24", "bgra",
     "rgb48le", "rgb565le"],
)  # fmt: skip
def test_levels_of_every_kind_of_frame(pixels: str) -> None:
    """Whatever the decoder gives: 4:1:0 to RGB of 16 bits, and grey."""
    frame = _frame(pixels)
    assert np.array_equal(picture(frame, None), _by_filters(frame))
