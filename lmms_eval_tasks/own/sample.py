"""The sample's clips as the user's clips."""

from __future__ import annotations

from pathlib import Path

from lmms_eval_captions.lmms_eval_tasks.sample import share_clips


def write_sample(root: Path, clips: Path) -> None:
    """Put the clips where the tasks look for them."""
    share_clips(clips, root / "own/videos")
