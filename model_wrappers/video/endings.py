"""Endings of video files, and names without them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

VIDEO_ENDINGS: Final = frozenset((
    ".mp4", ".mkv", ".webm", ".avi", ".mov", ".m4v", ".mpg", ".mpeg", ".wmv", ".flv", ".gif", ".ts",
    ".3gp", ".ogv",
))  # fmt: skip
"""Endings of most clips, in lower case; never a part of a video's id."""
RARE_VIDEO_ENDINGS: Final = frozenset((
    ".3g2", ".ogg", ".ogm", ".asf", ".m2ts", ".mts", ".m2t", ".vob", ".mpv", ".m1v",
    ".m2v", ".f4v", ".qt", ".mxf", ".nut", ".y4m", ".dv", ".divx", ".ivf", ".h264", ".264", ".hevc",
    ".265", ".obu", ".rm", ".rmvb", ".bin",
))  # fmt: skip
"""Further ones, in lower case: endings of files that exist, but in a caption file rather a part of
an id."""


def without_ending(name: str, endings: Collection[str] = VIDEO_ENDINGS) -> str:
    """Return a file's name without a video's ending; other dots belong to the name.

    >>> without_ending("eyhzdC936uk_15_27.avi"), without_ending("a.b"), without_ending("a.b.MP4")
    ('eyhzdC936uk_15_27', 'a.b', 'a.b')
    """
    head, dot, ending = name.rpartition(".")
    return head if head and f"{dot}{ending}".lower() in endings else name
