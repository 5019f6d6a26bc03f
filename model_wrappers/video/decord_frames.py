"""Frames by decord, which counts, finds and colours them in its own way; only on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from lmms_eval_captions.model_wrappers.video.clip import Clip, make_clip
from lmms_eval_captions.model_wrappers.video.containers import (
    GIANT,
    UnreadableError,
    may_be_list,
    nameless,
    open_clip,
    pick_stream,
)
from lmms_eval_captions.model_wrappers.video.pictures import fit, one_line

if TYPE_CHECKING:
    from pathlib import Path

    import decord

    from lmms_eval_captions.model_wrappers.video.sampling import Sampling

_LONGEST_S: Final = 1e7
"""Longer clips, in seconds, have no clock."""
_PIXELS_AT_ONCE: Final = 48_000_000


def read(path: Path, sampling: Sampling, *, max_pixels: int | None, n_threads: int) -> Clip:
    """Read the chosen frames; arguments as in ``read_frames``."""
    import decord

    # decord opens whatever its libavformat knows, so PyAV checks the file first.
    with open_clip(path) as container:
        context = pick_stream(container).codec_context
        if context.width * context.height > GIANT:
            raise UnreadableError("would hold pictures larger than 8K complete")
    if may_be_list(path):
        raise UnreadableError("is not asked: it may see a list of other files in it")
    try:
        with nameless(path) as name:
            reader = decord.VideoReader(name, ctx=decord.cpu(0), num_threads=n_threads)
            return _clip(reader, sampling, max_pixels)
    except (
        decord.DECORDError, decord.DECORDLimitReachedError, RuntimeError, ValueError, IndexError
    ) as error:  # fmt: skip
        raise UnreadableError(one_line(error)) from error


def _clip(reader: decord.VideoReader, sampling: Sampling, max_pixels: int | None) -> Clip:
    n_total = len(reader)
    if n_total < 1:
        raise UnreadableError("found no frames")
    stamps = np.asarray(reader.get_frame_timestamp(range(n_total)), dtype=np.float64)
    times_s, fps = stamps[:, 0] - stamps[0, 0], float(reader.get_avg_fps())
    end_s: float | None = float(stamps[-1, 1] - stamps[0, 0])
    # AVI has no clock: decord gives whatever its memory held, or the same moment for all.
    if np.any(np.diff(times_s) <= 0) or not times_s[-1] < _LONGEST_S:
        times_s, end_s = np.arange(n_total) / (fps or 1.0), None
    chosen = sampling.indices(times_s)
    height, width = reader.get_batch(chosen[:1]).shape[1:3]
    n_at_once = max(1, _PIXELS_AT_ONCE // (height * width))
    frames = [
        fit(frame, max_pixels)
        for at in range(0, len(chosen), n_at_once)
        for frame in reader.get_batch(chosen[at : at + n_at_once]).asnumpy()
    ]
    return make_clip(np.stack(frames), times_s[chosen], fps=fps, n_total=n_total, end_s=end_s)
