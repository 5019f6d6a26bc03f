"""The people's step: who said what, how far they agree, and a build that goes by it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from built_stages import Row, page_of_build, question_rows, said
from label_runs import rows_of, write_rows
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.commands.building.answers import Answer, text_digest
from lmms_eval_captions.lmms_eval_tasks.commands.building.building import Built, build
from lmms_eval_captions.lmms_eval_tasks.commands.building.card import card_data, write_card
from lmms_eval_captions.lmms_eval_tasks.commands.building.cli import options_of
from lmms_eval_captions.lmms_eval_tasks.commands.building.criteria import CRITERIA
from lmms_eval_captions.lmms_eval_tasks.commands.building.estimating import estimate_build
from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.kind import Kind
from lmms_eval_captions.lmms_eval_tasks.commands.building.options import Options
from lmms_eval_captions.lmms_eval_tasks.commands.building.people import check_by_people, n_few
from lmms_eval_captions.lmms_eval_tasks.commands.cli import _parser
from scripted_crew import ScriptedCrew

pytestmark = pytest.mark.usefixtures("bench")
RELEVANT, CORRECT, DIFFICULT = (criterion.name for criterion in CRITERIA["capquiz"])


def answers_of(rows: Iterable[Row], say: Callable[[str, str, int], str]) -> list[Answer]:
    """What people said.

    Args:
        rows: The questions.
        say: From person, criterion and place of the question to ``y``, ``n``, ``-`` (cannot tell)
            or blank (not answered).
    """
    choices: dict[str, Any] = {"y": "yes", "n": "no", "-": None}
    return [
        Answer(
            annotator=person,
            question_id=row["id"],
            text_digest=text_digest(row),
            criterion=criterion.name,
            said=choices[sign],
        )
        for place, row in enumerate(rows)
        for person in ("Ann", "Ben", "Cy")
        for criterion in CRITERIA["capquiz"]
        if (sign := say(person, criterion.name, place)) != " "
    ]


def ac1_by_hand(votes: list[str]) -> float:
    """Gwet's AC1 of yes and no, from its definition: a word for each question.

    The chance that two people drawn at random for a question agree, less the chance agreement
    2 p (1 - p), where p is the mean share of yes.
    """
    told = [(word.count("y"), word.count("n")) for word in votes]
    pairs = [(y, n) for y, n in told if y + n > 1]
    agreeing = sum((y * (y - 1) + n * (n - 1)) / ((y + n) * (y + n - 1)) for y, n in pairs)
    shares = [y / (y + n) for y, n in told if y + n]
    p = sum(shares) / len(shares)
    chance = 2 * p * (1 - p)
    return (agreeing / len(pairs) - chance) / (1 - chance)


@pytest.mark.parametrize(
    ("votes", "ac1"),
    [
        # Of 10 questions 8 agree fully and 2 by a third: 26/30. p = 25/30, by chance 10/36.
        pytest.param(["yyy"] * 7 + ["nnn"] + ["yyn", "nyy"], 0.8154, id="planted"),
        pytest.param(["yyy", "yyy", "yyy", "yyy"], 1.0, id="all the same"),
        pytest.param(["yn ", "ny ", "y n", " yn"], -1.0, id="never the same"),
        pytest.param(["yy-", "y  ", "nn ", "nyy", "-yn"], None, id="some cannot tell"),
    ],
)
def test_agreement_is_that_of_its_definition(votes: list[str], ac1: float | None) -> None:
    """AC1 by each criterion, beside its formula worked out on its own."""
    rows = question_rows("capquiz", [f"clip {place}" for place in range(len(votes))], 1)
    people = ("Ann", "Ben", "Cy")

    def say(person: str, criterion: str, place: int) -> str:
        return votes[place][people.index(person)] if criterion == DIFFICULT else "y"

    checked = check_by_people(rows, answers_of(rows, say), "capquiz")
    expected = ac1_by_hand(votes)
    assert ac1 is None or expected == pytest.approx(ac1, abs=5e-5)
    assert checked.ac1[DIFFICULT].value == pytest.approx(expected, abs=1e-12)
    assert checked.agreement()["ac1"] == {
        RELEVANT: 1.0, CORRECT: 1.0, DIFFICULT: round(expected, 4),
    }  # fmt: skip
    assert (checked.agreement()["n_people"], checked.n_shared) == (3, len(votes))


def test_one_annotator_agrees_with_nobody() -> None:
    """Questions are kept by one person, without an agreement, and counted as those of few."""
    rows = question_rows("capquiz", ["a", "b"])

    def say(person: str, criterion: str, place: int) -> str:
        return " " if person != "Ben" else "n" if (place, criterion) == (1, CORRECT) else "y"

    checked = check_by_people(rows, answers_of(rows, say), "capquiz")
    assert checked.agreement() == {"n_people": 1, "n_shared": 0, "ac1": {}}
    assert [row.get("dropped") for row in checked.rows] == [
        None, "people: the answer is not right", None, None,
    ]  # fmt: skip
    assert checked.rows[1]["check"] == {
        "by": "people",
        "n": 1,
        "criteria": {RELEVANT: [1, 1], CORRECT: [0, 1], DIFFICULT: [1, 1]},
    }
    assert n_few(row for row in checked.rows if "dropped" not in row) == 3
    assert n_few([{"check": {"by": "a model", "looks": ["right"]}}, {}]) == 0


def test_answers_about_nothing_that_is_there_are_an_error() -> None:
    """All of another text, of other questions, or none that says yes or no."""
    rows = question_rows("capquiz", ["a"])
    answers = answers_of(rows, lambda *_: "y")
    changed = [{**row, "answer": "a square"} for row in rows]
    with pytest.raises(DataError, match="18 are of another text than the question has now"):
        check_by_people(changed, answers, "capquiz")
    with pytest.raises(DataError, match="18 of a question that is not there"):
        check_by_people([{**row, "id": "b"} for row in rows], answers, "capquiz")
    with pytest.raises(DataError, match="got none that says yes or no"):
        check_by_people(rows, answers_of(rows, lambda *_: "-"), "capquiz")


def test_an_estimate_with_labels_asks_no_viewer(clips: Path, tmp_path: Path) -> None:
    """People have taken the place of the sighted check; what they said is of other questions."""
    page = tmp_path / "labels.jsonl"
    rows = question_rows("capquiz", ["a"], 1)
    row = {"kind": "question", "benchmark": "capquiz", "annotator": "Ann", "criterion": RELEVANT}
    write_rows(page, [{**row, "question_id": rows[0]["id"], "text_digest": "0", "label": None}])
    of_words = [
        {prompt for prompt, _ in estimate_build(*given(clips, tmp_path, *words), settings).counts}
        for settings in [read_judge_settings()]
        for words in ((), ("--labels", str(page)))
    ]
    assert of_words[0] - of_words[1] == {"build_capquiz_sighted"}
    assert of_words[1] < of_words[0]


@pytest.fixture
def clips(sample: Path) -> Path:
    """The sample's clips."""
    return sample / "capquiz" / "videos"


def given(clips: Path, data: Path, *words: str) -> tuple[Kind, Options]:
    """What ``build capquiz`` is asked for, with one model."""
    of_clips = ["build", "capquiz", "--videos", str(clips), "-o", str(data), "--frames", "1"]
    models = ["--writer", "w@http://127.0.0.1:9/v1", "--limit", "2", "--per-video", "4"]
    return options_of(_parser().parse_args([*of_clips, *models, *words]))


def run(clips: Path, data: Path, *words: str) -> tuple[Built, ScriptedCrew]:
    """``build capquiz`` with typical models."""
    kind, options = given(clips, data, *words)
    crew = ScriptedCrew(lambda request: request.stand_in())
    return build(kind, options, read_judge_settings(), crew), crew


def test_a_build_keeps_what_most_people_found_right(clips: Path, tmp_path: Path) -> None:
    """From the page's file to the benchmark's files and the card; models are asked nothing more."""
    run(clips, tmp_path)
    page: Any = page_of_build(tmp_path / "capquiz").data
    ids = list(dict.fromkeys(item["row"]["question_id"] for item in page["items"]))
    wrong, split = set(ids[::3]), set(ids[1::3])

    def sayer(person: str) -> Callable[[Row], Mapping[str, object] | None]:
        def say(item: Row) -> Mapping[str, object] | None:
            name = item["row"]["question_id"]
            is_no = name in wrong and person != "Cy" and item["grading"] == CORRECT
            return said("no" if is_no or (name in split and person == "Cy") else "yes")

        return say

    files = [
        write_rows(
            tmp_path / f"{person}.jsonl",
            rows_of(page_of_build(tmp_path / "capquiz"), sayer(person), annotator=person),
        )
        for person in ("Ann", "Ben", "Cy")
    ]
    built, crew = run(clips, tmp_path, "--labels", *map(str, files), "--annotators", "3")
    assert crew.requests == []
    stage = {done.stage.name: done.head for done in built.done}["people"]
    assert stage["dropped"] == {"people: the answer is not right": len(wrong)}
    assert stage["n_kept"] == len(ids) - len(wrong)
    rows = [row for row in built.work.rows["people"] if "dropped" not in row]
    assert {row["id"] for row in rows} == set(ids) - wrong
    n_split = len(split)
    by_hand = ac1_by_hand(["nny"] * len(wrong) + ["yyn"] * n_split + ["yyy"] * len(ids[2::3]))
    assert rows[0]["agreement"]["ac1"][CORRECT] == pytest.approx(by_hand, abs=1e-4)
    lines = (tmp_path / "capquiz" / "capquiz.jsonl").read_text(encoding="utf-8").splitlines()
    written = {pair["question"] for line in lines for pair in json.loads(line)["questions"]}
    assert written <= {row["question"] for row in rows}
    assert len(written) == built.n_questions == 8
    write_card(built)
    card = (tmp_path / "capquiz" / "DATA_CARD.md").read_text(encoding="utf-8")
    assert "Checked by 3 people; agreement" in card
    assert f"{CORRECT} {by_hand:.2f}" in card
    assert "looked at by fewer" not in card


def test_a_card_says_where_few_people_looked(clips: Path, tmp_path: Path) -> None:
    """One annotator keeps questions, the card bewares; a second run reads the stage's file."""
    run(clips, tmp_path)
    page = page_of_build(tmp_path / "capquiz")
    file = write_rows(tmp_path / "ann.jsonl", rows_of(page, lambda _item: said("yes")))
    built, _ = run(clips, tmp_path, "--labels", str(file))
    (warning,) = [text for text in card_data(built)["warnings"] if "looked at" in text]
    assert warning.startswith("8 of 8 questions were looked at by fewer than 3 people")
    again, _ = run(clips, tmp_path, "--labels", str(file))
    assert not any(done.is_new for done in again.done)
    with pytest.raises(DataError, match="no question is left"):
        run(clips, tmp_path, "--labels", str(file), "--annotators", "2")


def test_labels_that_cannot_be_read_end_a_build_before_models_are_asked(
    clips: Path, tmp_path: Path
) -> None:
    """Nothing is paid for a build that would fail at its people's step."""
    (tmp_path / "labels.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"labels\.jsonl, line 1"):
        run(clips, tmp_path, "--labels", str(tmp_path / "labels.jsonl"))
    assert not (tmp_path / "capquiz").exists()
