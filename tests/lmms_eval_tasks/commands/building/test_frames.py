"""Frames of clips: read ahead, kept within bounds, a broken clip an error of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_captions.judges.endpoint.request import Message
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.building import frames
from lmms_eval_captions.lmms_eval_tasks.commands.building.frames import (
    Frames,
    behind_frames,
    with_frames,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.videos import Video, find_videos
from lmms_eval_captions.model_wrappers.video import frames as video_frames
from scripted_crew import write_clip


@pytest.fixture
def videos(tmp_path: Path) -> list[Video]:
    """Twelve clips of six frames, a fifth of a second each."""
    for number in range(12):
        write_clip(tmp_path / f"{number:02d}.mp4", shade=10 * number)
    return find_videos(tmp_path)


def test_frames_are_spread_over_the_clip_with_their_times(videos: list[Video]) -> None:
    """The first and the last are among them; size and length are told."""
    reader = Frames(n_frames=3, frame_pixels=32 * 32)
    shown = reader.of(videos[0])
    reader.close()
    assert shown.times_s == (0.0, 0.4, 1.0)
    assert (shown.duration_s, shown.size) == (1.2, (32, 32))
    assert all(part["image_url"]["url"].startswith("data:image/jpeg") for part in shown.parts)


def test_clips_are_read_once_while_they_are_kept(
    videos: list[Video], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of twelve three are kept here: asking about all of them twice reads most of them twice."""
    read: list[Path] = []
    really = video_frames.read_frames

    def counted(path: Path, *args: object, **options: object) -> object:
        read.append(path)
        return really(path, *args, **options)  # type: ignore[arg-type] # as they came

    monkeypatch.setattr(video_frames, "read_frames", counted)
    reader = Frames(n_frames=2, frame_pixels=32 * 32)
    reader.expect(videos)
    for video in videos:
        for _ in range(3):
            reader.of(video)
    assert sorted(read) == [video.path for video in videos]
    monkeypatch.setattr(frames, "_MOST_BYTES", 3 * reader.of(videos[0]).n_bytes)
    read.clear()
    for video in (*videos, *videos):
        reader.of(video)
    reader.close()
    assert len(read) > len(videos)
    assert len(reader._sizes) <= 4


def test_a_broken_clip_is_an_error_each_time_and_costs_no_other(
    videos: list[Video], tmp_path: Path
) -> None:
    """It is asked about again by a later stage, perhaps."""
    (tmp_path / "05.mp4").write_bytes(b"none" * 99)
    reader = Frames(n_frames=2, frame_pixels=32 * 32)
    reader.expect(videos)
    for _ in range(2):
        with pytest.raises(DataError, match=r"05\.mp4"):
            reader.of(videos[5])
    assert len(reader.of(videos[6]).parts) == 2
    reader.close()


def test_words_stand_before_the_frames_or_behind_them(videos: list[Video]) -> None:
    """The system's message stays as it is."""
    reader = Frames(n_frames=2, frame_pixels=32 * 32)
    shown = reader.of(videos[0])
    reader.close()
    system: Message = {"role": "system", "content": "S"}
    user: Message = {"role": "user", "content": "U"}
    text = {"type": "text", "text": "U"}
    for put, content in (
        (with_frames, [text, *shown.parts]),
        (behind_frames, [*shown.parts, text]),
    ):
        assert put([system, user], shown) == [system, {"role": "user", "content": content}]
