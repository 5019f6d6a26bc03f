"""The verdict files of VCapsBench's authors: read as their script writes them, nothing guessed."""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakdowns import plain
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.data import GROUP_OF, GROUPS
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.published_verdicts import (
    PublishedVerdicts,
    read_published_verdicts,
)

HEADER = ["video_id", "cos_url", "caption", "question", "answer", "analysis"]


def _text(*rows: tuple[object, object, object]) -> str:
    """A file of ``question``, ``answer`` and ``analysis``, as the authors' script writes it."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(HEADER)
    for number, row in enumerate(rows):
        caption = 'A cat, "Tom",\nsits.'
        writer.writerow([f"{number}.mp4", "cos://bucket/0.mp4", caption, *row])
    return "\ufeff" + out.getvalue()


def _read(folder: Path, text: str) -> PublishedVerdicts:
    path = folder / "gpt4o_eval_Qwen2.5-VL-7B.csv"
    path.write_text(text, encoding="utf-8", newline="")
    (published,) = read_published_verdicts(path)
    return published


def test_verdicts_by_group_and_category(tmp_path: Path) -> None:
    """1 is positive, 0 negative, 2 unanswerable; micro averages overall, by group and category."""
    published = _read(
        tmp_path,
        _text(
            ("color*Is it red?*yes", 1, "Yes, it says red."),
            ("color*Is it blue?*no", 0, "Yes, it says blue."),
            ("lighting*Is it dark?*yes", 2, "Unanswerable, it does not say."),
            ("entity size*Is it 5* or more?*no", 1, "No, it is small."),
        ),
    )
    assert published.verdicts == ["positive", "negative", "unanswerable", "positive"]
    assert (published.n_unreadable, published.n_contradicted) == (0, 0)
    breakdown = published.breakdown()
    assert plain(breakdown["overall"]["all"]) == {
        "ar": 50.0,
        "ir": pytest.approx(100 / 3),
        "cr": 75.0,
        "n_questions": 4,
        "n_unscored": 0,
    }
    assert breakdown["groups"]["Color & Lighting"]["ar"] == pytest.approx(100 / 3)
    assert breakdown["groups"]["Content & Entity"]["ar"] == 100.0
    assert breakdown["categories"]["lighting"]["ir"] is None
    assert list(breakdown["categories"]) == ["entity size", "lighting", "color"]


@pytest.mark.parametrize(
    ("question", "answer", "analysis", "verdict"),
    [
        pytest.param("color*Red?*yes", " 1 ", "Yes, red", "positive", id="spaces"),
        pytest.param("color*Red?*yes", "2.0", "Unanswerable, red", "unanswerable", id="decimal"),
        pytest.param("color*Red?*yes", "", "Yes, red", None, id="empty"),
        pytest.param("color*Red?*yes", "3", "Yes, red", None, id="off-the-menu"),
        pytest.param("color*Red?*yes", "-1", "Yes, red", None, id="negative"),
        pytest.param("color*Red?*yes", "yes", "Yes, red", None, id="a-word"),
        pytest.param("color*Red?*yes", "1 0", "Yes, red", None, id="two"),
        pytest.param("color*Red?*yes", "nan", "Yes, red", None, id="nan"),
    ],
)
def test_only_the_three_codes_are_verdicts(
    tmp_path: Path, question: str, answer: str, analysis: str, verdict: str | None
) -> None:
    """What is none of the three codes is unscored in its category, and counted."""
    published = _read(tmp_path, _text((question, answer, analysis)))
    assert published.verdicts == [verdict]
    assert published.n_unreadable == (verdict is None)
    assert published.breakdown()["categories"]["color"]["n_unscored"] == (verdict is None)


@pytest.mark.parametrize("question", ["", "Is it red?", "*Is it red?*yes", " *?*no"])
def test_a_row_without_a_category_counts_in_nothing(tmp_path: Path, question: str) -> None:
    """It is counted as unreadable, and no number moves."""
    good = ("color*Is it red?*yes", 1, "Yes, red")
    published = _read(tmp_path, _text(good, (question, 0, "No, blue")))
    assert (published.verdicts, published.n_malformed) == (["positive"], 1)
    assert published.n_unreadable == 1


def test_a_row_that_ends_early_is_unreadable(tmp_path: Path) -> None:
    """A file that was cut off loses its last row, and says so."""
    text = _text(("color*Red?*yes", 1, "Yes, red"))
    published = _read(tmp_path, f"{text}9.mp4,cos,caption,color*Blue?*no\r\n8.mp4\r\n")
    assert published.verdicts == ["positive", None]
    assert (published.n_malformed, published.n_unreadable) == (1, 2)


@pytest.mark.parametrize(
    ("question", "answer", "analysis", "contradicted"),
    [
        pytest.param("color*Red?*yes", 0, "Yes, red", True, id="right-counted-as-wrong"),
        pytest.param("color*Red?*no", 1, "Yes, red", True, id="wrong-counted-as-right"),
        pytest.param("color*Red?* yes", 0, "Yes, red", True, id="gold-with-a-space"),
        pytest.param("color*Red?*yes", 2, "No, blue", True, id="answered-counted-as-silent"),
        pytest.param("color*Red?*yes", 0, "Unanswerable, no colour", True, id="silent"),
        pytest.param("color*Red?*yes", 1, "YES, red", False, id="upper-case"),
        pytest.param("color*Red?*maybe", 0, "Yes, red", False, id="gold-off-the-menu"),
        pytest.param("color*Red?*yes", 0, "It is red", False, id="no-answer"),
        pytest.param("color*Red?*yes", 0, "", False, id="no-analysis"),
    ],
)
def test_a_verdict_that_its_own_row_contradicts_is_counted(
    tmp_path: Path, question: str, answer: int, analysis: str, contradicted: bool
) -> None:
    """The code counts as it stands, as it did in the paper; the contradiction is reported."""
    published = _read(tmp_path, _text((question, answer, analysis)))
    assert published.verdicts == [("negative", "positive", "unanswerable")[answer]]
    assert published.n_contradicted == contradicted


def test_an_archive_has_a_captioner_a_file(tmp_path: Path) -> None:
    """Every table in it is read by its name; folders and a Mac's second entries are not."""
    path = tmp_path / "gpt_eval_results.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("gpt/gpt4o_eval_b.csv", _text(("text*A?*no", 2, "Unanswerable, no")))
        archive.writestr("gpt/gpt4o_eval_a.csv", _text(("text*A?*no", 1, "No, none")))
        archive.writestr("__MACOSX/gpt/._gpt4o_eval_a.csv", b"\x00\x05\x16\x07")
        archive.writestr("gpt/results.txt", "AR: 1%")
    tables = list(read_published_verdicts(path))
    assert [(table.name, table.verdicts) for table in tables] == [
        ("gpt/gpt4o_eval_b.csv", ["unanswerable"]),
        ("gpt/gpt4o_eval_a.csv", ["positive"]),
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("a.csv", b"", "expected the columns question, answer, got an empty", id="0"),
        pytest.param("a.csv", b"video_id,caption\n", "got video_id, caption", id="other-columns"),
        pytest.param("a.csv", b"question,answer\n\xff\xfe,1\n", "comma-separated UTF-8", id="utf"),
        pytest.param("a.zip", b"PK\x03\x04", "the archive is broken", id="broken-archive"),
        pytest.param("a.zip", b"PK\x05\x06" + bytes(18), "found none", id="empty-archive"),
        pytest.param("b.csv", None, "cannot be read", id="missing"),
        pytest.param("b.zip", None, "cannot be read", id="missing-archive"),
    ],
)
def test_other_files_are_refused(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    """The error names the file and says what was expected."""
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=message) as error:
        list(read_published_verdicts(path))
    assert name in str(error.value)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(GROUP_OF)),
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
            st.sampled_from("012"),
        )
    )
)
def test_any_question_comes_back_in_its_category(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]]
) -> None:
    """Stars, quotes and line ends of a question change neither its category nor its verdict."""
    texts = [(f"{category}*{question}*yes", code, "") for category, question, code in rows]
    published = _read(tmp_path_factory.mktemp("verdicts"), _text(*texts))
    codes = {"positive": "1", "negative": "0", "unanswerable": "2"}
    assert published.categories == [category for category, _, _ in rows]
    assert [codes[str(verdict)] for verdict in published.verdicts] == [code for _, _, code in rows]


def test_the_command_prints_the_papers_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Groups and categories are shown, and the exit status says whether all was readable."""
    path = tmp_path / "gpt4o_eval_a.csv"
    rows = [(f"{category}*A?*yes", 1, "Yes, so") for category in GROUP_OF]
    path.write_text(_text(*rows), encoding="utf-8", newline="")
    assert main(["vcapsbench-verdicts", str(path)]) == 0
    out = capsys.readouterr().out
    assert "gpt4o_eval_a.csv: 21 rows, 0 without a readable verdict, 0 without a category" in out
    assert all(f"\n  {name} " in out for name in (*GROUPS, *GROUP_OF))
    path.write_text(_text(*rows, ("color*A?*yes", "", "")), encoding="utf-8", newline="")
    assert main(["vcapsbench-verdicts", str(path)]) == 1
    assert "22 rows, 1 without a readable verdict" in capsys.readouterr().out


def test_the_command_refuses_other_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is not there is a usage error, not a traceback."""
    assert main(["vcapsbench-verdicts", str(tmp_path / "none.csv")]) == 2
    assert "none.csv cannot be read" in capsys.readouterr().err
