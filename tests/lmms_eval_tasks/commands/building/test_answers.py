"""Files of people's answers are read as the page exports them, and nothing else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from label_runs import write_rows
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.building.answers import read_answers

LINE: dict[str, Any] = {
    "kind": "question",
    "benchmark": "capquiz",
    "annotator": "Ann",
    "question_id": "a/frames/m/0",
    "text_digest": "00ff",
    "criterion": "visual relevance",
    "label": {"choice": "yes", "ratings": {}},
    "answered_at": "2026-01-01T00:00:00Z",
}


def test_the_last_word_of_each_person_counts(tmp_path: Path) -> None:
    """Over files and lines, by the time of the answer; a name's blanks are no other person."""
    later = {**LINE, "answered_at": "2026-01-03", "label": {"choice": "no", "ratings": {}}}
    skipped = {**LINE, "annotator": "Ben", "label": None, "skipped": True}
    first = write_rows(tmp_path / "1.jsonl", [later, skipped])
    second = write_rows(tmp_path / "2.jsonl", [LINE, {**LINE, "annotator": " Ann "}])
    answers = read_answers([first, second], "capquiz")
    assert [(answer.annotator, answer.said) for answer in answers] == [("Ann", "no"), ("Ben", None)]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        pytest.param({"annotator": "  "}, "expected a text as 'annotator'", id="nobody"),
        pytest.param({"question_id": 7}, "expected a text as 'question_id', got 7", id="number"),
        pytest.param({"text_digest": None}, "expected a text as 'text_digest'", id="no digest"),
        pytest.param({"criterion": "beauty"}, "expected as 'criterion' any of", id="criterion"),
        pytest.param({"criterion": ["x"]}, "expected as 'criterion' any of", id="a list"),
        pytest.param({"label": "yes"}, "expected as 'choice' any of yes, no", id="bare choice"),
        pytest.param({"label": {"choice": "maybe"}}, "got 'maybe'", id="no such choice"),
        pytest.param({"label": {}}, "expected as 'choice' any of yes, no, got None", id="empty"),
        pytest.param({"kind": "verdict"}, "label --build exports for capquiz", id="other page"),
        pytest.param({"benchmark": "vdc"}, "got one of kind 'question' about 'vdc'", id="other"),
    ],
)
def test_a_line_that_is_no_answer_is_named(
    tmp_path: Path, changed: dict[str, Any], words: str
) -> None:
    """File and line, what was expected and what came."""
    path = write_rows(tmp_path / "labels.jsonl", [LINE, {**LINE, **changed}])
    with pytest.raises(DataError) as raised:
        read_answers([path], "capquiz")
    assert f"{path}, line 2: " in str(raised.value)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("{\n", "line 1: expected one JSON object per line", id="cut"),
        pytest.param("[1]\n", "line 1: expected a label, got [1]", id="a list"),
        pytest.param("\n", "got no line; export them again", id="nothing"),
    ],
)
def test_a_file_that_is_none_is_named(tmp_path: Path, text: str, words: str) -> None:
    """Damaged, of another form, or empty."""
    path = tmp_path / "labels.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as raised:
        read_answers([path], "capquiz")
    assert str(path) in str(raised.value)
    assert words in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Without a trace of what reads files."""
    with pytest.raises(DataError, match=r"gone\.jsonl cannot be read"):
        read_answers([tmp_path / "gone.jsonl"], "capquiz")
