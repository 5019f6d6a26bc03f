"""VidCapBench's files are read as they are published, and what is wrong with one is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import Settings, read_settings
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.benchmark import VIDCAPBENCH, read_videos
from vidcapbench_files import write_files


def _settings(root: Path) -> Settings:
    return read_settings({"LMMS_CAPTIONS_DATA": str(root)})


def _write(root: Path, *rows: object, name: str = "VidCapBench-AE_QA.jsonl") -> Settings:
    folder = root / "vidcapbench"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return _settings(root)


def _pair(primary: str = "video motion", sub: str = "object motion") -> dict[str, str]:
    return {"question": "Q?", "answer": "A", "sub_category": sub, "primary_category": primary}


def test_both_subsets_are_read(tmp_path: Path, logged: list[str]) -> None:
    """All pairs and all videos are there; those without a pair come last and are counted."""
    write_files(tmp_path, n_videos=20, n_pairs={"AE": 50, "HE": 40}, n_empty=3)
    for subset, n_pairs in (("AE", 50), ("HE", 40)):
        videos = read_videos(_settings(tmp_path), subset)
        assert [bool(video["questions"]) for video in videos] == [True] * 17 + [False] * 3
        assert sum(len(video["questions"]) for video in videos) == n_pairs
        assert videos[0]["video_id"] == "Clip_3.mp4"
    assert any("50 pairs of 17 videos; 3 videos without a pair" in line for line in logged)


@pytest.mark.parametrize(
    ("video_dir", "video_id"),
    [
        ("Tarsier_20.mp4", "Tarsier_20.mp4"),
        ("VidCapBench/videos/Tarsier_20.mp4", "Tarsier_20.mp4"),
        ("D:\\videos\\a b.mp4", "a b.mp4"),
        ("./a.b.mp4", "a.b.mp4"),
    ],
)
def test_videos_go_by_their_base_name(video_dir: str, video_id: str, tmp_path: Path) -> None:
    """A folder before the name does not hide a video, nor its file."""
    settings = _write(tmp_path, {"video_dir": video_dir, "QA_pairs": [_pair()]})
    videos = tmp_path / "vidcapbench" / "videos"
    videos.mkdir()
    (videos / video_id).write_text("")
    (video,) = read_videos(settings, "AE")
    assert video["video_id"] == video_id
    assert VIDCAPBENCH.video_path(settings, {"video_dir": video["video_dir"]}) == videos / video_id


def test_rows_of_one_video_are_put_together(tmp_path: Path) -> None:
    """Every row counts, with and without a folder, as in the released script."""
    settings = _write(
        tmp_path,
        {"video_dir": "a.mp4", "QA_pairs": [_pair()]},
        {"video_dir": "b.mp4", "QA_pairs": []},
        {"video_dir": "x/a.mp4", "QA_pairs": [_pair(), _pair()]},
        {"video_dir": "c.mp4"},
        {"video_dir": "d.mp4", "QA_pairs": None},
    )
    assert [(v["video_id"], len(v["questions"])) for v in read_videos(settings, "AE")] == [
        ("a.mp4", 3),
        ("b.mp4", 0),
        ("c.mp4", 0),
        ("d.mp4", 0),
    ]


def test_categories_are_compared_without_case_and_underscores(
    tmp_path: Path, logged: list[str]
) -> None:
    """Another spelling of a category is that category; an unknown one is kept and told."""
    pairs = [_pair("Video_Motion", " Object  motion"), _pair("video sound", "music")]
    settings = _write(tmp_path, {"video_dir": "a.mp4", "QA_pairs": pairs})
    (video,) = read_videos(settings, "AE")
    assert [(p["primary_category"], p["sub_category"]) for p in video["questions"]] == [
        ("video motion", "object motion"),
        ("video sound", "music"),
    ]
    warnings = [line for line in logged if "WARNING" in line]
    assert len(warnings) == 1
    assert "1 questions" in warnings[0]
    assert "video sound / music" in warnings[0]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        pytest.param({"QA_pairs": [_pair()]}, "video_dir", id="no-video"),
        pytest.param({"video_dir": 3, "QA_pairs": []}, "video_dir", id="number-as-video"),
        pytest.param({"video_dir": "a", "QA_pairs": "[]"}, "list under 'QA_pairs'", id="text"),
        pytest.param({"video_dir": "a", "QA_pairs": [{"question": "Q"}]}, "answer", id="no-answer"),
        pytest.param(
            {"video_dir": "a", "QA_pairs": [{"question": "Q", "answer": 2}]},
            "expected text",
            id="number-as-answer",
        ),
        pytest.param({"video_dir": "a", "QA_pairs": []}, "at least one video", id="no-pairs"),
    ],
)
def test_a_row_of_another_shape_is_told(row: object, words: str, tmp_path: Path) -> None:
    """The error names the file and what was expected."""
    settings = _write(tmp_path, row)
    with pytest.raises(DataError, match=words) as caught:
        read_videos(settings, "AE")
    assert "VidCapBench-AE_QA.jsonl" in str(caught.value)
