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
from lmms_eval_captions.judges.files import bounded_parquet
from lmms_eval_captions.model_wrappers.caption_files.paths import files_of
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


def test_a_table_with_too_many_cells_names_its_separator(tmp_path: Path) -> None:
    """What to quote depends on it."""
    path = tmp_path / "c.csv"
    path.write_text("video;caption\na;A; and more\n")
    with pytest.raises(CaptionError, match=r"line 2: more cells .* quote captions that hold ';'"):
        open_captions(path)


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


def test_a_parquet_that_repeats_one_long_text_is_refused(tmp_path: Path) -> None:
    """A dictionary spells a text of a megabyte once: unfolding it would fill the memory."""
    places = pyarrow.array([0] * 100_000, pyarrow.int32())
    texts = pyarrow.DictionaryArray.from_arrays(places, pyarrow.array(["x" * 2**20]))
    table = pyarrow.table({"video": pyarrow.array(range(100_000)), "caption": texts})
    pyarrow.parquet.write_table(table, tmp_path / "c.parquet")
    with pytest.raises(CaptionError, match="its texts have more than"):
        open_captions(tmp_path / "c.parquet")


def test_a_parquet_of_too_much_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own words on rows and sizes are enough."""
    table = pyarrow.table({"video": ["a"] * 2**12, "caption": ["x" * 2**15] * 2**12})
    path = tmp_path / "c.parquet"
    pyarrow.parquet.write_table(table, path, use_dictionary=False, compression="zstd")
    with pytest.raises(CaptionError, match=r"more than .* unpacked"):
        open_captions(path)
    monkeypatch.setattr(bounded_parquet, "MOST_LINES", 4000)
    with pytest.raises(CaptionError, match="more than 4,000 rows"):
        open_captions(path)


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


def test_a_file_with_a_plus_sign_is_itself(tmp_path: Path) -> None:
    """What is there as a whole is not taken apart."""
    path = rows(tmp_path / "a+b[1].jsonl", ("a", "A"))
    assert files_of(str(path)) == [path]
    assert open_captions(str(path))("any").find("a") == "A"


def test_a_part_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The one file, pattern or folder, not all of them together."""
    one = rows(tmp_path / "one.jsonl", ("a", "A"))
    (tmp_path / "empty").mkdir()
    for part, words in (
        ("gone.jsonl", "'[^+]*gone.jsonl' does not exist"),
        ("no*.jsonl", "no file is like '[^+]*no"),
        ("empty", "empty: expected caption files"),
    ):
        with pytest.raises(CaptionError, match=words):
            open_captions(f"{one}+{tmp_path / part}")


def test_files_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    """Within a file the last row counts; of two files nobody can tell which one does."""
    one = rows(tmp_path / "one.jsonl", ("b", "B"), ("a", "A"))
    two = rows(tmp_path / "two.jsonl", ("a", "old"), ("a", "A"))
    assert open_captions(f"{one}+{two}")("any").find("a") == "A"
    rows(two, ("a", "another"))
    with pytest.raises(CaptionError, match=r"one\.jsonl and .*two\.jsonl have different .* 'a'"):
        open_captions(f"{one}+{two}")


def test_files_of_different_tasks_and_aspects_do_not_contradict_each_other(tmp_path: Path) -> None:
    """A caption of another aspect or task is another caption."""
    rows(tmp_path / "camera.jsonl", ("a", "camera"), aspect="camera")
    rows(tmp_path / "short.jsonl", ("a", "short"), aspect="short")
    rows(tmp_path / "task.jsonl", ("a", "of capquiz"), task="capquiz")
    captions_of = open_captions(tmp_path)
    assert captions_of("vdc_short").find("a", "short") == "short"
    assert captions_of("vdc_camera").find("a", "camera") == "camera"
    assert captions_of("capquiz").find("a") == "of capquiz"


def test_a_file_of_several_is_named_where_it_is_wrong(tmp_path: Path) -> None:
    """File and line, as in a single file."""
    rows(tmp_path / "one.jsonl", ("a", "A"))
    (tmp_path / "two.jsonl").write_text('{"video": "b", "caption": 3}\n')
    with pytest.raises(CaptionError, match=r"two\.jsonl, line 1: expected a caption as text"):
        open_captions(tmp_path)


def test_what_a_run_writes_beside_captions_is_passed_over(tmp_path: Path) -> None:
    """Results, judging and breakdowns are no captions."""
    rows(tmp_path / "mine.jsonl", ("a", "A"))
    for name in ("1_results.json", "1_breakdown_vdc.json", "1_judging.json", ".hidden.json"):
        (tmp_path / name).write_text('{"results": {}}')
    assert open_captions(tmp_path)("any").find("a") == "A"
