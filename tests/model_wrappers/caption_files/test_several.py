"""Captions in several files, and in formats of spreadsheets and data frames."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from lmms_eval.utils import simple_parse_args_string

from lmms_eval_captions.judges.errors import CaptionError
from lmms_eval_captions.model_wrappers.caption_files.records import open_captions

CAPTION = 'A "red" ball; it rolls, slowly.'
QUOTED = '"A ""red"" ball; it rolls, slowly."'
TABLES = {
    "c.tsv": f"video\tcaption\na\t{QUOTED}\nb\tB\n",
    "comma.csv": f"video,caption\na,{QUOTED}\nb,B\n",
    "semicolon.csv": f"video;caption\na;{QUOTED}\nb;B\n",
    "semicolons and commas.csv": f"video;note, if any;caption\na;;{QUOTED}\nb;x, y;B\n",
    "tabs.csv": f"video\tcaption\na\t{QUOTED}\nb\tB\n",
}


def rows(path: Path, *pairs: tuple[str, str], **more: str) -> Path:
    """A file of captions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"video": video, "caption": text, **more}) for video, text in pairs]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize("is_packed", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("name", TABLES)
def test_tables_are_read_whatever_separates_their_columns(
    tmp_path: Path, name: str, is_packed: bool
) -> None:
    """Tabs, semicolons or commas, with the others in captions and in further columns."""
    text = TABLES[name].encode()
    path = tmp_path / (f"{name}.gz" if is_packed else name)
    path.write_bytes(gzip.compress(text) if is_packed else text)
    captions = open_captions(path)("any")
    assert (captions.find("a"), captions.find("b")) == (CAPTION, "B")


def test_parquet_is_read(tmp_path: Path) -> None:
    """Texts, also of a dictionary or missing, and numbers; pictures and lists are passed over."""
    table = pyarrow.table(
        {
            "video_id": pyarrow.array(["a", "b", "c"]),
            "caption": pyarrow.array([CAPTION, None, "C"]).dictionary_encode(),
            "clip": pyarrow.array([b"x", b"y", b"z"]),
            "words": pyarrow.array([["A"], [], ["C"]]),
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "c.parquet")
    captions = open_captions(tmp_path / "c.parquet")("any")
    assert [captions.find(video) for video in "abc"] == [CAPTION, None, "C"]
    with pytest.raises(CaptionError, match="its columns are 'video_id', 'caption', 'clip', 'words"):
        open_captions(tmp_path / "c.parquet", "text")


def test_a_damaged_parquet_is_told(tmp_path: Path) -> None:
    """Cut off, or no Parquet at all."""
    path = tmp_path / "c.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"video": ["a"], "caption": ["A"]}), path)
    for content in (path.read_bytes()[:-20], b"video,caption", b""):
        path.write_bytes(content)
        with pytest.raises(CaptionError, match=r"c\.parquet' cannot be read .*no Parquet"):
            open_captions(path)


@pytest.mark.parametrize(
    "path", ["{0}/one.jsonl+{0}/two.tsv", "{0}/*", "{0}/[ot]*", "{0}", "{0}/one.jsonl+{0}/t*.tsv"]
)
def test_several_files_serve_as_one(tmp_path: Path, path: str) -> None:
    """Joined by plus signs, a pattern, or a folder, as lmms-eval hands them over."""
    rows(tmp_path / "one.jsonl", ("a", "A"))
    (tmp_path / "two.tsv").write_text("video\tcaption\nb\tB\n")
    arguments = simple_parse_args_string(f"path={path.format(tmp_path)},missing=drop")
    assert set(arguments) == {"path", "missing"}
    captions = open_captions(arguments["path"])("any")
    assert (captions.find("a"), captions.find("b")) == ("A", "B")


def test_files_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    """Within a file the last row counts; of two files nobody can tell which one does."""
    one = rows(tmp_path / "one.jsonl", ("b", "B"), ("a", "A"))
    two = rows(tmp_path / "two.jsonl", ("a", "old"), ("a", "A"))
    assert open_captions(f"{one}+{two}")("any").find("a") == "A"
    rows(two, ("a", "another"))
    with pytest.raises(CaptionError, match=r"one\.jsonl and .*two\.jsonl have different .* 'a'"):
        open_captions(f"{one}+{two}")
