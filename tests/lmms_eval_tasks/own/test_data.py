"""One's own clips: which files are clips, and what they are called."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_captions.judges.errors import DataError, NoVideosError
from lmms_eval_captions.judges.settings import DataSettings, read_data_settings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.own.benchmark import OWN_GVEVAL, OWN_RATING, documents


def _settings(root: Path | str | None) -> DataSettings:
    return read_data_settings({} if root is None else {"LMMS_CAPTIONS_DATA": str(root)})


def _ids(root: Path | str) -> list[object]:
    task = OWN_RATING.tasks["own_vllm_judge"]
    return [doc["video_id"] for doc in documents(_settings(root), task)]


def _put(root: Path, *names: str) -> None:
    for name in names:
        path = root / "own/videos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.fsencode(name))


def test_every_clip_at_any_depth_is_a_document_by_its_path(tmp_path: Path) -> None:
    """Sorted by path, whatever the case of the ending; no other file, and nothing hidden."""
    _put(
        tmp_path, "b.mp4", "a/z.MKV", "a/b/c.webm", "same.mp4", "a/same.mp4", "notes.txt", "b.srt",
        ".hidden.mp4", ".trash/old.mp4",
    )  # fmt: skip
    assert _ids(tmp_path) == ["a/b/c.webm", "a/same.mp4", "a/z.MKV", "b.mp4", "same.mp4"]


def test_clips_of_one_name_are_told_of(tmp_path: Path, logged: list[str]) -> None:
    """A caption file that names one of them without its folder would caption all of them."""
    _put(tmp_path, "a/clip.mp4", "b/clip.mkv", "c.mp4")
    _ids(tmp_path)
    [line] = [line for line in logged if line.startswith("WARNING own: ")]
    assert "1 names are those of several clips, such as 'clip'" in line
    (tmp_path / "own/videos/b/clip.mkv").rename(tmp_path / "own/videos/b/other.mkv")
    _ids(tmp_path)
    assert len([line for line in logged if line.startswith("WARNING own: ")]) == 1


@pytest.mark.parametrize("known", [OWN_GVEVAL, OWN_RATING], ids=["gveval", "rating"])
def test_both_tasks_have_the_same_clips_and_their_own_rows(
    known: Benchmark[Any, Any], tmp_path: Path
) -> None:
    """A document leads to its task and to its file, of two of the same name to the right one."""
    _put(tmp_path, "a/clip.mp4", "b/clip.mp4")
    settings = _settings(tmp_path)
    (task,) = known.tasks.values()
    docs = known.read(settings, task)
    assert [known.task_of(doc) for doc in docs] == [task, task]
    assert [known.video_path(settings, doc).read_text() for doc in docs] == [
        "a/clip.mp4", "b/clip.mp4"
    ]  # fmt: skip


@pytest.mark.parametrize("names", [(), ("notes.txt",)], ids=["no-folder", "no-clip"])
def test_no_clip_is_an_error_that_says_where_they_go(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    _put(tmp_path, *names)
    with pytest.raises(NoVideosError) as caught:
        _ids(tmp_path)
    assert str(tmp_path / "own/videos") in str(caught.value)
    assert "Put the clips, or links to them, into DATA/own/videos" in str(caught.value)
    with pytest.raises(DataError, match="DATA/own/videos"):
        OWN_RATING.find_data(_settings(tmp_path))


def test_without_local_data_it_is_said_that_clips_are_ones_own() -> None:
    """No hub has them, and none is asked."""
    task = OWN_GVEVAL.tasks["own_gveval_ref_free"]
    with pytest.raises(DataError, match=r"own is data of your own\. Put the clips") as caught:
        OWN_GVEVAL.read(_settings(None), task)
    assert "LMMS_CAPTIONS_DATA=DATA" in str(caught.value)
