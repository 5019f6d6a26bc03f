"""Parts of a video as files of their own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.sound import Sound
from lmms_eval_captions.model_wrappers.video.decoding import TimedFrames

if TYPE_CHECKING:
    from pathlib import Path

    from av.video.frame import VideoFrame

_CLOCK: Final = 90_000
"""Ticks of a second: time stamps of common frame rates are whole numbers of them."""
_JUMP_S: Final = 10.0
"""Seconds from frame to frame above which the clock of a broadcast began anew."""
_DRAFT: Final = ".partial"
_X264: Final = {
    "crf": "18",
    "preset": "veryfast",
    # Looking ahead, x264 gave other bytes for the same frames once in some twenty clips.
    "x264-params": "rc-lookahead=0:mbtree=0",
}
_BT601: Final = 5
"""FFmpeg's number (AVCOL_SPC), which is what pictures become where nobody says otherwise."""
_LIMITED_RANGE: Final = 1


def cut_parts(source: Path, parts: Sequence[tuple[tuple[int, int], Path]]) -> None:
    """Write parts of a video, exact to the frame, in one pass over it.

    Frames are encoded again (H.264 where FFmpeg has an encoder for it, else MPEG-4 part 2), the
    right way up, at their own times, with the video's sound as AAC. Each file is there whole or not
    at all.

    Args:
        source: The video.
        parts: First frame and the one behind the last, of parts that do not overlap, rising; each
            with the file to write.

    Raises:
        DataError: If a part has no frame, or a file cannot be written.
    """
    import av

    frames = TimedFrames(source)
    waiting = list(parts)
    writer: _Writer | None = None
    try:
        for index, frame in enumerate(frames):
            if writer is not None and index >= writer.end:
                writer.finish()
                writer = None
            if writer is None:
                if not waiting:
                    break
                if index < waiting[0][0][0]:
                    continue
                (_, end), path = waiting.pop(0)
                writer = _Writer(path, end, frames, source)
            writer.add(frame)
        if writer is not None:
            writer.finish()
    except (av.FFmpegError, OSError, ValueError, MemoryError) as error:
        raise DataError(f"{source}: a clip of it cannot be made: {error}") from error
    finally:
        if writer is not None:
            writer.give_up()


class _Writer:
    """One part as it is written: below another name until it is whole."""

    def __init__(self, path: Path, end: int, frames: TimedFrames, source: Path) -> None:
        self.end = end
        self._source = source
        self._path = path
        self._draft = path.with_name(f".{path.name}{_DRAFT}")
        self._frames = frames
        self._stream: _Stream | None = None
        self._sound: Sound | None = None
        self._last_pts: int | None = None

    def add(self, frame: VideoFrame) -> None:
        """Encode the next frame."""
        import av

        pixels = self._frames.picture(frame)
        if self._stream is None:
            height, width = pixels.shape[:2]
            self._stream = _open(self._draft, width, height)
            if frame.pts is not None:
                start_s = frame.pts * self._frames.unit_s
                self._sound = Sound(self._source, start_s, self._stream.container)
        stream = self._stream
        stream.clock += self._ticks_since(frame.pts)
        self._last_pts = frame.pts
        shown = av.VideoFrame.from_ndarray(pixels, format="rgb24")
        # Scaled where a stream changes its size, and by a pixel where a side is odd.
        shown = shown.reformat(stream.width, stream.height, format="yuv420p")
        shown.pts, shown.time_base = stream.clock, Fraction(1, _CLOCK)
        stream.container.mux(stream.video.encode(shown))
        self._write_sound()

    def _write_sound(self) -> None:
        """Write the sound up to the end of the last frame."""
        if self._sound is not None and self._last_pts is not None:
            self._sound.write_until(self._last_pts * self._frames.unit_s + 1 / self._frames.fps)

    def _ticks_since(self, pts: int | None) -> int:
        """Ticks from the frame before: a step by the rate where stamps are missing or jump."""
        if self._last_pts is None or pts is None:
            is_first = self._stream is not None and self._stream.clock < 0
            return 1 if is_first else round(_CLOCK / self._frames.fps)
        ticks = round((pts - self._last_pts) * self._frames.unit_s * _CLOCK)
        return ticks if 0 < ticks < _JUMP_S * _CLOCK else round(_CLOCK / self._frames.fps)

    def finish(self) -> None:
        """Close the file and give it its name."""
        if self._stream is not None:
            self._stream.container.mux(self._stream.video.encode())
            if self._sound is not None:
                self._sound.close()
            self._stream.container.close()
            self._stream = None
            self._draft.replace(self._path)

    def give_up(self) -> None:
        """Close a file that was not finished, and leave nothing of it."""
        if self._stream is not None:
            with suppress(OSError, ValueError):
                if self._sound is not None:
                    self._sound.close()
                self._stream.container.close()
            self._stream = None
            self._draft.unlink(missing_ok=True)


@dataclass(slots=True)
class _Stream:
    """An opened file."""

    container: Any
    video: Any
    width: int
    height: int
    clock: int = -1
    """Ticks at which the last frame is shown; the first one is at 0."""


def _open(path: Path, width: int, height: int) -> _Stream:
    import av

    encoder = "libx264" if "libx264" in av.codecs_available else "mpeg4"
    options = _X264 if encoder == "libx264" else {"qscale": "3"}
    path.parent.mkdir(parents=True, exist_ok=True)
    container = av.open(str(path), "w", format="mp4")
    video = container.add_stream(encoder, options=options)
    # H.264 in this pixel format has even sides.
    width, height = max(2, width - width % 2), max(2, height - height % 2)
    video.width, video.height, video.pix_fmt = width, height, "yuv420p"
    context = video.codec_context
    context.time_base = Fraction(1, _CLOCK)
    context.colorspace, context.color_range = _BT601, _LIMITED_RANGE
    # One thread: several encode in pieces that depend on the number of cores.
    context.thread_count = 1
    return _Stream(container, video, width, height)
