"""Local benchmark data: files, videos, JSON lines, and what is said where they are missing."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.judges.errors import DataError, NoVideosError
from lmms_eval_captions.judges.settings import Settings, read_settings
from lmms_eval_captions.lmms_eval_tasks.data.files import (
    find_file,
    find_video,
    index_videos,
    local_root,
    read_jsonl,
)
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import SOURCE as VDC


def settings_of(root: Path | str, cache: Path | None = None) -> Settings:
    """Settings with local data."""
    return read_settings(
        {"LMMS_CAPTIONS_DATA": str(root), "LMMS_CAPTIONS_CACHE": str(cache or "/nowhere")}
    )


def put(root: Path, *names: str) -> None:
    """Files that hold their own names."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")


def test_files_are_found_plain_or_gzipped(tmp_path: Path) -> None:
    """A file is found by its name, the plain one before the gzipped."""
    put(tmp_path, "vdc/qa/a.jsonl", "vdc/qa/a.jsonl.gz", "vdc/qa/b.jsonl.gz")
    settings = settings_of(tmp_path)
    assert find_file(settings, VDC, "qa/a.jsonl") == tmp_path / "vdc/qa/a.jsonl"
    assert find_file(settings, VDC, "qa/b.jsonl") == tmp_path / "vdc/qa/b.jsonl.gz"


def test_a_missing_file_says_where_and_how(tmp_path: Path) -> None:
    """The error has the full path, the command, the page and the setting."""
    with pytest.raises(DataError) as caught:
        find_file(settings_of(tmp_path), VDC, "VDCScore_qa/camera.jsonl")
    for part in (
        str(tmp_path / "vdc/VDCScore_qa/camera.jsonl"),
        "hf download",
        VDC.page,
        "DATA/vdc",
    ):
        assert part in str(caught.value)


def test_no_local_data_means_the_hub() -> None:
    """Without the setting there is no local root."""
    assert local_root(read_settings({})) is None


def test_the_sample_is_laid_out_like_local_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``LMMS_CAPTIONS_DATA=sample`` takes files and videos from the sample in the cache folder."""
    module = "lmms_eval_captions.lmms_eval_tasks.sample"
    monkeypatch.setattr(f"{module}.sample_root", lambda cache: cache / "sample")
    put(tmp_path / "sample", "vdc/VDCScore_qa/camera.jsonl", "vdc/videos/a.mp4")
    settings = settings_of("sample", tmp_path)
    assert find_file(settings, VDC, "VDCScore_qa/camera.jsonl").is_relative_to(tmp_path / "sample")
    assert find_video(settings, VDC, "a").name == "a.mp4"


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("a.mp4", "a"),
        ("a.MP4", "a"),
        ("a.mkv", "a.mp4"),
        ("a.webm", "sub/a.webm"),
        ("deep/down/a.avi", "a"),
        ("a.b_1_2.avi", "a.b_1_2"),
        ("a.b_1_2.avi", "a.b_1_2.avi"),
        ("a", "a"),
        ("07309684-1f6e-4977-ab74-f3e63c361f36.mp4", "07309684-1f6e-4977-ab74-f3e63c361f36"),
    ],
)
def test_a_video_is_found_by_any_spelling(tmp_path: Path, stored: str, asked: str) -> None:
    """Endings, their case, folders and dots in ids do not hide a video."""
    put(tmp_path, f"vdc/videos/{stored}")
    assert find_video(settings_of(tmp_path), VDC, asked) == tmp_path / "vdc/videos" / stored


@pytest.mark.parametrize("beside", ["clip.bin", "clip.ogg", "CLIP/clip.3g2"])
def test_a_clip_wins_over_what_lies_beside_it(tmp_path: Path, beside: str) -> None:
    """Endings that often stand for sound or features count where there is no plainer one."""
    (tmp_path / beside).parent.mkdir(exist_ok=True)
    (tmp_path / beside).write_bytes(b"x")
    assert index_videos(tmp_path)["clip"] == tmp_path / beside
    index_videos.cache_clear()
    (tmp_path / "clip.webm").write_bytes(b"x")
    assert index_videos(tmp_path)["clip"] == tmp_path / "clip.webm"


@pytest.mark.parametrize(
    ("stored", "asked"),
    [("a.json", "a"), (".a.mp4", "a"), ("a.b.mp4", "a"), ("a.mp4", "../videos")],
)
def test_other_files_are_not_videos(tmp_path: Path, stored: str, asked: str) -> None:
    """Other files, hidden ones, and ids that continue after a dot do not match."""
    put(tmp_path, f"vdc/videos/{stored}")
    with pytest.raises(DataError, match=re.escape(f"no video {asked!r} in")):
        find_video(settings_of(tmp_path), VDC, asked)


IDS = st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,12}[A-Za-z0-9_-]", fullmatch=True)


@given(video=IDS, ending=st.sampled_from([".mp4", ".MP4", ".webm", ".mov", ".m4v"]))
def test_every_id_is_found_with_and_without_ending(
    tmp_path_factory: pytest.TempPathFactory, video: str, ending: str
) -> None:
    """A stored video is found by its id and by its file name, whatever the id."""
    root = tmp_path_factory.mktemp("data")
    put(root, f"vdc/videos/{video}{ending}")
    settings = settings_of(root)
    for asked in (video, f"{video}{ending}"):
        assert find_video(settings, VDC, asked).name == f"{video}{ending}"


def test_archives_left_packed_are_pointed_out(tmp_path: Path) -> None:
    """Whoever downloaded the official files and did not unpack them is told so."""
    put(tmp_path, "vdc/videos/videos_1.tar.gz")
    with pytest.raises(NoVideosError, match=r"not yet unpacked: videos_1\.tar\.gz"):
        find_video(settings_of(tmp_path), VDC, "a")


def test_a_missing_video_folder_is_told(tmp_path: Path) -> None:
    """Without a folder of videos the error says that it is the folder that is missing."""
    with pytest.raises(NoVideosError, match="there is no such folder"):
        find_video(settings_of(tmp_path), VDC, "a")


def test_json_lines_are_read_plain_and_gzipped(tmp_path: Path) -> None:
    """Both forms give the same rows, whatever BOM, empty lines and line ends they have."""
    text = '\ufeff{"a": "x\u2028y"}\n\n{"ü": 1}\r\n'.encode()
    (tmp_path / "a.jsonl").write_bytes(text)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(text))
    for name in ("a.jsonl", "a.jsonl.gz"):
        assert read_jsonl(tmp_path / name) == [{"a": "x\u2028y"}, {"ü": 1}]


@pytest.mark.parametrize("line", ['{"a": [', "[1]", "3", '"é"'])
def test_a_broken_line_is_named(tmp_path: Path, line: str) -> None:
    """The error has the file and the number of the line, empty ones counted."""
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"a": 1}}\n\n{line}\n', encoding="latin-1")
    with pytest.raises(DataError, match=r"a\.jsonl, line 3: expected"):
        read_jsonl(path)


def test_a_truncated_gzip_file_is_told(tmp_path: Path) -> None:
    """A gzip file that was cut off is an error, wherever the cut is."""
    whole = gzip.compress(b'{"a": 1}\n' * 1000)
    path = tmp_path / "a.jsonl.gz"
    for size in (0, 5, len(whole) // 2, len(whole) - 4):
        path.write_bytes(whole[:size])
        if size == 0:
            assert read_jsonl(path) == []
        else:
            with pytest.raises(DataError, match="download it again"):
                read_jsonl(path)
