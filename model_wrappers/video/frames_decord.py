"""Frames by decord, which seeks on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.video.clip import Clip, make_clip
from lmms_eval_captions.model_wrappers.video.containers import (
    GIANT,
    may_be_list,
    nameless,
    open_clip,
    pick_stream,
)
from lmms_eval_captions.model_wrappers.video.reading_errors import UnreadableError, one_line
from lmms_eval_captions.model_wrappers.video.resizing import fit

if TYPE_CHECKING:
    from pathlib import Path

    import decord
    from numpy.typing import NDArray

    from lmms_eval_captions.model_wrappers.video.sampling import Sampling

_MOST_S: Final = 1e7
"""Longer clips, in seconds, are none."""
_MOST_PIXELS: Final = 48_000_000
"""Pixels read at once: full frames of a large clip are shrunk before the next ones are read."""


def check() -> None:
    """Stop where decord is asked for and cannot be had.

    Raises:
        SettingsError: If it cannot be imported.
    """
    try:
        import decord  # noqa: F401
    except (ImportError, OSError) as error:  # OSError: its shared library does not load here.
        raise SettingsError(
            f"video_reader=decord: decord cannot be imported here ({error}); install decord (or "
            "eva-decord, where it has no wheel), or leave video_reader at pyav"
        ) from error


def read(path: Path, sampling: Sampling, *, max_pixels: int | None, n_threads: int) -> Clip:
    """The chosen frames; arguments as of ``read_frames``.

    Raises:
        UnreadableError: If decord is missing or cannot read the file.
    """
    try:
        check()
    except SettingsError as error:
        raise UnreadableError(str(error.__cause__)) from error
    import decord

    try:
        # decord opens whatever its libavformat knows: what it may open is found out by another.
        with open_clip(path) as container:
            context = pick_stream(container).codec_context
            if context.width * context.height > GIANT:
                raise UnreadableError("would hold pictures larger than 8K whole")
        if may_be_list(path):
            raise UnreadableError("is not asked: it may see a list of other files in it")
        with nameless(path) as name:
            reader = decord.VideoReader(name, ctx=decord.cpu(0), num_threads=n_threads)
            return _clip(reader, sampling, max_pixels)
    except (
        decord.DECORDError,
        decord.DECORDLimitReachedError,
        RuntimeError,
        ValueError,
        IndexError,
    ) as error:
        raise UnreadableError(one_line(error)) from error


def _clip(reader: decord.VideoReader, sampling: Sampling, max_pixels: int | None) -> Clip:
    n_total = len(reader)
    if n_total < 1:
        raise UnreadableError("found no frames")
    stamps = np.asarray(reader.get_frame_timestamp(range(n_total)), dtype=np.float64)
    times_s, fps = stamps[:, 0] - stamps[0, 0], float(reader.get_avg_fps())
    end_s: float | None = float(stamps[-1, 1] - stamps[0, 0])
    # AVI has no clock: decord gives what its memory held, or the same moment for all.
    if np.any(np.diff(times_s) <= 0) or not times_s[-1] < _MOST_S:
        times_s, end_s = np.arange(n_total) / (fps or 1.0), None
    chosen = sampling.indices(times_s)
    frames = _pictures(reader, chosen, max_pixels)
    return make_clip(frames, times_s[chosen], fps=fps, n_total=n_total, end_s=end_s)


def _pictures(
    reader: decord.VideoReader, chosen: list[int], max_pixels: int | None
) -> NDArray[np.uint8]:
    first = reader.get_batch(chosen[:1]).asnumpy()
    n_pixels = first.shape[1] * first.shape[2]
    if max_pixels is None or n_pixels <= max_pixels:
        rest = [reader.get_batch(chosen[1:]).asnumpy()] if len(chosen) > 1 else []
        return np.concatenate([first, *rest]) if rest else first
    n_at_once = max(1, _MOST_PIXELS // n_pixels)
    small = [fit(first[0], max_pixels)]
    for start in range(1, len(chosen), n_at_once):
        large = reader.get_batch(chosen[start : start + n_at_once]).asnumpy()
        small += [fit(frame, max_pixels) for frame in large]
    return np.stack(small)
