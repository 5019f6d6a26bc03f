"""What the column of a video is called."""

from __future__ import annotations

VIDEO_KEYS = ("video_id", "video", "video_dir", "video_name", "vname")
"""Columns that may name the video, of a file's row or of a task's document; the first wins."""
