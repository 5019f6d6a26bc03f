"""The sample's clips as the user's clips."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmms_eval_captions.lmms_eval_tasks.sample import share_clips

if TYPE_CHECKING:
    from pathlib import Path


def write_sample(root: Path, clips: Path) -> None:
    """Put the clips where the tasks look for them."""
    share_clips(clips, root / "own/videos")
