"""Frames of clips as parts of messages, read ahead and kept within bounds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.request import Message
from lmms_eval_captions.lmms_eval_tasks.commands.building.videos import Video

Part = dict[str, Any]

_MOST_BYTES: Final = 256 * 2**20
"""Of pictures that are kept for the next request, and the next stage."""
_AHEAD: Final = 6
"""Clips that are read before they are asked about."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What is seen of a clip."""

    parts: tuple[Part, ...]
    """A picture for each frame, in order of time."""
    times_s: tuple[float, ...]
    """When each is shown, in seconds from the first frame of the clip."""
    duration_s: float
    size: tuple[int, int]
    """Width and height of a frame, in pixels."""

    @property
    def n_bytes(self) -> int:
        """Of all pictures."""
        return sum(len(part["image_url"]["url"]) for part in self.parts)


class Frames:
    """Reads clips, some of them ahead; to be asked from one thread.

    Args:
        n_frames: Of each clip, evenly spaced.
        frame_pixels: Larger frames are shrunk to that area.
    """

    def __init__(self, *, n_frames: int, frame_pixels: int) -> None:
        self._n_frames = n_frames
        self._frame_pixels = frame_pixels
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="frames")
        self._read: dict[str, Future[Shown]] = {}
        self._sizes: OrderedDict[str, int] = OrderedDict()
        """Bytes of the clips that are kept, the one that was asked for longest ago first."""
        self._n_bytes = 0
        self._order: dict[str, int] = {}
        self._videos: Sequence[Video] = ()

    def expect(self, videos: Sequence[Video]) -> None:
        """Say which clips are asked about next, in which order."""
        self._videos = videos
        self._order = {video.video_id: place for place, video in enumerate(videos)}

    def of(self, video: Video) -> Shown:
        """The frames of a clip.

        Raises:
            DataError: If it cannot be read.
        """
        place = self._order.get(video.video_id)
        if place is not None:
            for ahead in self._videos[place : place + _AHEAD]:
                self._begin(ahead)
        future = self._begin(video)
        shown = future.result()
        self._keep(video.video_id, shown.n_bytes)
        return shown

    def close(self) -> None:
        """End the threads."""
        self._readers.shutdown(wait=False, cancel_futures=True)

    def _begin(self, video: Video) -> Future[Shown]:
        if video.video_id not in self._read:
            self._read[video.video_id] = self._readers.submit(self._show, video)
        return self._read[video.video_id]

    def _keep(self, name: str, n_bytes: int) -> None:
        """Let go of what was asked for longest ago, beyond the bytes that may be kept."""
        if name not in self._sizes:
            self._sizes[name] = n_bytes
            self._n_bytes += n_bytes
        self._sizes.move_to_end(name)
        while self._n_bytes > _MOST_BYTES and len(self._sizes) > 1:
            oldest, n_freed = self._sizes.popitem(last=False)
            self._n_bytes -= n_freed
            del self._read[oldest]

    def _show(self, video: Video) -> Shown:
        from lmms_eval_captions.model_wrappers.chat_api import data_url
        from lmms_eval_captions.model_wrappers.video.frames import read_frames

        clip = read_frames(video.path, self._n_frames, max_pixels=self._frame_pixels)
        parts = tuple(
            {"type": "image_url", "image_url": {"url": data_url(frame)}} for frame in clip.frames
        )
        times_s = tuple(round(float(time_s), 3) for time_s in clip.timestamps_s)
        height, width = clip.frames.shape[1:3]
        return Shown(parts, times_s, round(clip.duration_s, 3), (width, height))


def with_frames(messages: Sequence[Message], shown: Shown) -> list[Message]:
    """Messages whose last text comes before the frames of a clip.

    The words are the same for every clip or every question, and the frames are long: where they
    are, servers that keep prefixes can keep most of them.
    """
    *before, last = messages
    text = {"type": "text", "text": last["content"]}
    return [*before, {**last, "content": [text, *shown.parts]}]


def behind_frames(messages: Sequence[Message], shown: Shown) -> list[Message]:
    """Messages whose last text comes behind the frames: questions about one clip share them."""
    *before, last = messages
    text = {"type": "text", "text": last["content"]}
    return [*before, {**last, "content": [*shown.parts, text]}]
