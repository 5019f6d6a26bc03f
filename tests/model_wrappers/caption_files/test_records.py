"""Captions in files: formats, columns, names of videos, sample logs, and every refusal."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from loguru import logger

from lmms_eval_captions.judges.errors import CaptionError
from lmms_eval_captions.model_wrappers.caption_files.records import CaptionTable, open_captions
from lmms_eval_captions.model_wrappers.caption_files.tables import CaptionRow

if TYPE_CHECKING:
    from collections.abc import Mapping

TEXT = '  Ein Mädchen läuft。\r\n一个女孩 👩‍👧 \u2028 "quoted", ok\t '
"""A caption that suffers from stripping, splitting at odd line ends, or a wrong encoding."""


def write(path: Path, text: str) -> Path:
    """Write a file, gzipped where its name says so."""
    data = text.encode("utf-8")
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def jsonl(*rows: object) -> str:
    """Rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def csv_text(*rows: dict[str, str]) -> str:
    """Rows as CSV."""
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def table(*rows: Mapping[str, object], column: str | None = None) -> CaptionTable:
    """A table of rows that never were in a file."""
    numbered = [CaptionRow(f"line {number}", row) for number, row in enumerate(rows, start=1)]
    return CaptionTable(numbered, path=Path("captions.jsonl"), column=column)


FORMATS = {
    "captions.jsonl": jsonl({"video_id": "a", "caption": TEXT}, {"video_id": "b", "caption": ""}),
    "list.json": json.dumps([{"video": "a", "caption": TEXT}, {"video": "b", "caption": ""}]),
    "map.json": json.dumps({"a": TEXT, "b": ""}, ensure_ascii=False),
    "rows.json": json.dumps({"a": {"caption": TEXT}, "b": {"prediction": ""}}),
    "captions.csv": csv_text({"video_id": "a", "caption": TEXT}, {"video_id": "b", "caption": ""}),
}


@pytest.mark.parametrize("bom", ["", "\ufeff"], ids=["plain", "bom"])
@pytest.mark.parametrize("ending", ["", ".gz"], ids=["raw", "gz"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_captions_unchanged(
    tmp_path: Path, name: str, ending: str, bom: str
) -> None:
    """White space, scripts and emptiness of a caption survive each format and a BOM."""
    path = write(tmp_path / f"{name}{ending}", bom + FORMATS[name])
    captions = open_captions(path)("any_task")
    assert (captions.find("a"), captions.find("b"), captions.find("c")) == (TEXT, "", None)


@pytest.mark.parametrize(
    ("header", "video_column"),
    [
        ("Video_ID,Caption", None),
        ("videoID,caption", None),
        ("id,video_path,Model Generation", None),
        ("image_id,caption", None),
        ("ID,CAPTION", None),
        ("id,Clip-ID,prediction", None),
        ("video_id,source,caption", "source"),
    ],
)
def test_a_video_goes_by_many_columns(
    tmp_path: Path, header: str, video_column: str | None
) -> None:
    """Nearly the known names, or the one that is given; the other columns do not count."""
    *others, _, _ = header.split(",")
    row = ",".join([*("x" for _ in others), "videos/abc.mp4", "A dog runs."])
    path = write(tmp_path / "a.csv", f"{header}\n{row}\n")
    captions = open_captions(path, video_column=video_column)("vdc_camera")
    assert captions.find("abc") == "A dog runs."
    with pytest.raises(CaptionError, match="no column 'clip'; its columns are '"):
        open_captions(path, video_column="clip")


SEGMENTS = [("start", "end"), ("Start_Time", "end_time"), ("begin_s", "x"), ("timestamp", "x")]


@pytest.mark.parametrize("columns", SEGMENTS)
def test_captions_of_segments_are_refused(columns: tuple[str, str]) -> None:
    """None of them stands for the video; a row that is repeated is no segment."""
    rows = [
        {"video_id": "abc", columns[0]: n, columns[1]: 9, "caption": f"Event {n}."} for n in (0, 5)
    ]
    with pytest.raises(CaptionError, match="line 2: video 'abc' has captions of several segments"):
        table(*rows)
    assert table(rows[1], rows[1]).find("abc") == "Event 5."


@pytest.mark.parametrize(
    ("in_file", "asked"),
    [
        pytest.param("clip", "a/b/clip.mp4", id="bare in file"),
        pytest.param("a/b/clip.mp4", "clip", id="full in file"),
        pytest.param("x/clip.mp4", "y/clip.mp4", id="other folder"),
        pytest.param("clip.MKV", "clip.mp4", id="other ending"),
        pytest.param("a\\clip.mp4", "clip", id="backslash"),
        pytest.param("eyhzdC936uk_15_27.avi", "eyhzdC936uk_15_27", id="msvd"),
        pytest.param("foo.bar", "foo.bar.mp4", id="dot in id"),
        pytest.param("foo.bar.mp4", "foo.bar", id="dot in id, ending in file"),
    ],
)
def test_spellings_of_one_video_match(in_file: str, asked: str) -> None:
    """Folders and video endings on either side do not keep a caption from its video."""
    assert table({"video_id": in_file, "caption": "x"}).find(asked) == "x"


def test_an_ambiguous_name_is_refused() -> None:
    """Two videos of one base name with different captions are never chosen between."""
    captions = table(
        {"video": "a/clip.mp4", "caption": "A"}, {"video": "b/clip.mp4", "caption": "B"}
    )
    with pytest.raises(CaptionError, match=r"'clip.mp4' may be any of 'a/clip.mp4', 'b/clip.mp4'"):
        captions.find("clip.mp4")


def test_an_aspect_gets_its_own_column_first() -> None:
    """``<aspect>_caption`` wins over ``caption``, which serves the other aspects."""
    captions = table({"video": "a", "caption": "general", "camera_caption": "camera"})
    assert captions.find("a", "camera") == "camera"
    assert captions.find("a", "short") == "general"
    assert captions.find("a") == "general"


def test_one_aspect_never_stands_in_for_another() -> None:
    """A file with the camera caption alone has none for the background."""
    captions = table({"video": "a", "camera_caption": "camera"})
    assert captions.find("a", "background") is None
    assert captions.find("a") is None


def test_null_is_missing_and_empty_is_a_caption() -> None:
    """Null falls through to the next column, an empty string does not."""
    captions = table(
        {"video": "a", "caption": None, "prediction": "x"},
        {"video": "b", "caption": "", "prediction": "x"},
        {"video": "c", "caption": None},
    )
    assert [captions.find(video) for video in "abc"] == ["x", "", None]


def test_the_last_of_repeated_videos_counts_with_one_warning() -> None:
    """Repeats are counted in a single warning."""
    heard: list[str] = []
    sink = logger.add(heard.append, level="WARNING", format="{message}")
    try:
        captions = table(*({"video": "a", "caption": str(number)} for number in range(4)))
    finally:
        logger.remove(sink)
    assert captions.find("a") == "3"
    assert len(heard) == 1
    assert "3 of 4 rows repeat" in heard[0]


def test_rows_that_name_a_task_are_that_tasks_alone(tmp_path: Path) -> None:
    """A caption log of several tasks: each gets its own captions back, or none; others get any."""
    heard: list[str] = []
    sink = logger.add(heard.append, level="WARNING", format="{message}")
    try:
        captions_of = open_captions(
            write(
                tmp_path / "log.jsonl",
                jsonl(
                    {"task": "capquiz", "video_id": "a", "caption": "short"},
                    {"task": "capquiz_detailed", "video_id": "a", "caption": "long"},
                    {"task": "vidcapbench_ae", "video_id": "a", "caption": None, "reason": "cut"},
                ),
            )
        )
        tasks = ("capquiz", "capquiz_detailed", "vidcapbench_ae", "vcapsbench")
        found = [captions_of(task).find("a") for task in tasks]
    finally:
        logger.remove(sink)
    assert found == ["short", "long", None, "long"]
    assert not heard


BROKEN = {
    "line": (
        "c.jsonl",
        '{"video": "a", "caption": "x"}\n\n{"video": "b", "cap\n',
        r"c\.jsonl, line 3",
    ),
    "not an object": ("c.jsonl", '["a"]\n', r"line 1: expected an object .* got \['a'\]"),
    "json": ("c.json", '{"video": "a"}\n{"video": "b"}\n', r"Extra data.*name it \.jsonl"),
    "json scalar": ("c.json", "3", "expected a list of rows"),
    "json entry": ("c.json", '{"a": ["x"]}', r"entry 'a': expected an object"),
    "csv cells": ("c.csv", "video,caption\na,one, two\n", r"line 2: more cells than the 2 columns"),
    "csv quote": ("c.csv", 'video,caption\na,"one\n', r"c\.csv, after line"),
    "number": ("c.jsonl", jsonl({"video": "a", "caption": 3}), r"line 1: expected .* text, got 3"),
    "list": ("c.jsonl", jsonl({"video": "a", "caption": ["x"]}), r"got \['x'\]"),
    "no video": (
        "c.jsonl",
        jsonl({"source": "a", "caption": "x"}),
        "video under 'video_id'.*'source'",
    ),
    "no caption": (
        "c.jsonl",
        jsonl({"video": "a", "text": "x"}),
        "caption under 'caption'.*'text'",
    ),
    "empty": ("c.jsonl", "\n", "no rows"),
    "format": ("c.txt", "a: x", r"ending in \.jsonl, \.json, \.csv"),
}


@pytest.mark.parametrize(("name", "text", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_refused_and_named(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    """Each kind of broken file gives an error that says where and what."""
    path = write(tmp_path / name, text)
    with pytest.raises(CaptionError, match=f"(?s){message}") as caught:
        open_captions(path)
    assert str(path) in str(caught.value)


def test_other_encodings_are_refused(tmp_path: Path) -> None:
    """A file that is not UTF-8 is not read as something else."""
    for name, text in (
        ("c.jsonl", '{"video": "a", "caption": "ä"}'),
        ("c.csv", "video,caption\na,ä"),
    ):
        path = tmp_path / name
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(CaptionError, match="utf-8"):
            open_captions(path)


def log_row(video: str, caption: object, **more: object) -> dict[str, object]:
    """A row as lmms-eval 0.7.3 logs it for our tasks."""
    return {
        "doc_id": 0,
        "target": video,
        "filtered_resps": caption,
        "doc_hash": "0",
        "token_counts": [None],
        "vdc_acc": {"video_id": video, "score": 50.0},
        "input": "Describe.",
    } | more


def test_sample_logs_of_our_tasks_are_read(tmp_path: Path) -> None:
    """The video comes from the metric item or the target, the caption from the answer."""
    path = write(
        tmp_path / "20260101_000000_samples_vdc_camera.jsonl",
        jsonl(
            log_row("a", TEXT),
            log_row("b", [TEXT]),
            log_row("c", "x", vdc_acc=1.0),
            log_row("ignored", "y", video_id="d"),
        ),
    )
    captions = open_captions(path)("some_other_task")
    assert [captions.find(video) for video in "abcd"] == [TEXT, TEXT, "x", "y"]
    assert captions.find("ignored") is None


def test_a_log_tells_an_empty_caption_from_none(tmp_path: Path) -> None:
    """Also one of ``--predict_only``, which has no verdicts, by the tokens of our captioners."""
    none = {"input_tokens": 0, "output_tokens": 0}
    path = write(
        tmp_path / "20260101_000000_samples_vdc_camera.jsonl",
        jsonl(
            log_row("a", ""),
            log_row("b", "", vdc_acc={"video_id": "b", "no_caption": "no caption: it is cut off"}),
            log_row("c", "", vdc_acc=None, bypass=[["c"], [""]], token_counts=[none]),
            log_row("d", "", vdc_acc=None, bypass=[["d"], [""]]),
        ),
    )
    captions = open_captions(path)("vdc_camera")
    assert [captions.find(video) for video in "abcd"] == ["", None, None, ""]


def test_a_folder_serves_each_task_its_newest_log(tmp_path: Path) -> None:
    """Tasks whose names contain one another keep their own logs, and the later date wins."""
    for date, task, text in (
        ("20260101_000000", "vdc_camera", "old"),
        ("20260102_000000", "vdc_camera", "new"),
        ("20251231_000000", "my_samples_vdc", "nested"),
        ("20251231_000000", "vdc", "short"),
    ):
        (tmp_path / "run").mkdir(exist_ok=True)
        write(tmp_path / "run" / f"{date}_samples_{task}.jsonl", jsonl(log_row("a", text)))
    for folder in (tmp_path, tmp_path / "run"):
        captions_of = open_captions(folder)
        tasks = ("vdc_camera", "my_samples_vdc", "vdc")
        assert [captions_of(task).find("a") for task in tasks] == ["new", "nested", "short"]
        with pytest.raises(CaptionError, match="no sample log of task 'capquiz', only of"):
            captions_of("capquiz")
