"""Clips of a folder: their names, and the links to them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.building.videos import find_videos, link_videos


def _clips(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(os.fsencode(name))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(["b.mp4", "a.MOV"], {"a": "a.MOV", "b": "b.mp4"}, id="plain"),
        pytest.param(["x/a.mp4", "y/b.mp4"], {"a": "x/a.mp4", "b": "y/b.mp4"}, id="folders"),
        pytest.param(["x/a.mp4", "y/a.mp4"], {"x_a": "x/a.mp4", "y_a": "y/a.mp4"}, id="same-name"),
        pytest.param(["a.mp4", "a.mkv"], {"a_mkv": "a.mkv", "a_mp4": "a.mp4"}, id="same-stem"),
        pytest.param(["A.mp4", "a.mkv"], {"A_mp4": "A.mp4", "a_mkv": "a.mkv"}, id="same-but-case"),
        pytest.param(
            ["a.mp4", "a.mp4.mov"], {"a": "a.mp4", "a_mp4": "a.mp4.mov"}, id="two-endings"
        ),
        pytest.param(
            ["x.mp4", "x.mp4.mov", "x_mp4.mkv"],
            {"x": "x.mp4", "x_mp4_mov": "x.mp4.mov", "x_mp4_mkv": "x_mp4.mkv"},
            id="two-endings-and-their-name",
        ),
        pytest.param([".a.mp4", ".x/b.mp4", "c.txt", "d.mp4"], {"d": "d.mp4"}, id="others"),
    ],
)
def test_every_clip_has_a_name_of_its_own(
    tmp_path: Path, names: list[str], expected: dict[str, str]
) -> None:
    """It is as short as can be; hidden files and other files are no clips."""
    _clips(tmp_path, *names)
    found = find_videos(tmp_path)
    assert {video.video_id: str(video.path.relative_to(tmp_path)) for video in found} == expected
    assert len({video.file.casefold() for video in found}) == len(found)


def test_names_that_meet_in_every_spelling_are_numbered(tmp_path: Path) -> None:
    """Folders and names can be spelled alike."""
    _clips(tmp_path, "a/b/c.mp4", "a_b/c.mp4", "a/b_c.mp4", "c.mp4")
    found = find_videos(tmp_path)
    assert len({video.video_id for video in found}) == 4


def test_a_name_in_another_encoding_is_one_that_can_be_written(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 would make a stage's file that names no clip."""
    _clips(tmp_path, os.fsdecode(b"caf\xe9.mp4"), os.fsdecode(b"caf\xe8.mp4"))
    found = find_videos(tmp_path)
    assert [video.video_id.encode().decode() for video in found] == [
        "caf\ufffd_mp4",
        "caf\ufffd_mp4_2",
    ]


def test_the_first_clips_are_taken_in_the_order_of_their_paths(tmp_path: Path) -> None:
    """Of the same folder the same clips, whatever order the disk has them in."""
    _clips(tmp_path, "c.mp4", "a.mp4", "b.mp4")
    assert [video.video_id for video in find_videos(tmp_path, 2)] == ["a", "b"]


def test_a_folder_without_clips_is_an_error(tmp_path: Path) -> None:
    """It says what was looked for."""
    _clips(tmp_path, "a.txt")
    with pytest.raises(DataError, match="expected clips in"):
        find_videos(tmp_path)
    with pytest.raises(DataError, match="expected a folder of clips"):
        find_videos(tmp_path / "none")


def test_links_lead_to_the_clips_and_no_others(tmp_path: Path) -> None:
    """What an earlier build linked and this one has not is taken away; files stay."""
    _clips(tmp_path / "clips", "a.mp4", "b.mp4")
    videos, folder = find_videos(tmp_path / "clips"), tmp_path / "data"
    link_videos(videos, folder)
    (folder / "notes.txt").write_text("mine")
    link_videos(videos[1:], folder)
    assert sorted(path.name for path in folder.iterdir()) == ["b.mp4", "notes.txt"]
    assert (folder / "b.mp4").read_bytes() == b"b.mp4"


def test_another_file_of_a_clips_name_is_not_written_over(tmp_path: Path) -> None:
    """It may be somebody's only copy."""
    _clips(tmp_path / "clips", "a.mp4")
    _clips(tmp_path, "data/a.mp4")
    with pytest.raises(DataError, match="got another file"):
        link_videos(find_videos(tmp_path / "clips"), tmp_path / "data")
    assert (tmp_path / "data" / "a.mp4").read_bytes() == b"data/a.mp4"
