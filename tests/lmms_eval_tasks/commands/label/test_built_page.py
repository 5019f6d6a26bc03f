"""The page on which people check questions that were built, and a person at it in a browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from built_stages import page_of_build, question_rows, write_stages
from label_runs import reload_saved, rows_of, write_page, write_rows
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.commands.building.answers import read_answers, text_digest
from lmms_eval_captions.lmms_eval_tasks.commands.building.criteria import CRITERIA
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.commands.label.built_questions import questions_to_check
from lmms_eval_captions.lmms_eval_tasks.commands.label.label_file import read_labels


@pytest.fixture
def clips(sample: Path) -> dict[str, Path]:
    """Two of the sample's clips by name."""
    paths = sorted((sample / "capquiz" / "videos").iterdir())[:2]
    return {path.stem: path for path in paths}


@pytest.mark.parametrize("kind", CRITERIA)
def test_each_kind_asks_each_criterion_of_each_question(
    kind: str, clips: dict[str, Path], tmp_path: Path
) -> None:
    """Frames of its clip, the options where it has some, the answer; clip by clip."""
    rows = question_rows(kind, list(clips))
    write_stages(tmp_path / kind, [*rows, {**rows[0], "id": "gone", "dropped": "form"}], clips)
    page: Any = page_of_build(tmp_path / kind, n_frames=2).data
    names = [criterion.name for criterion in CRITERIA[kind]]
    assert [item["grading"] for item in page["items"]] == names * len(rows)
    asked = [item["row"]["question_id"] for item in page["items"]]
    assert asked[:: len(names)] == [row["id"] for row in rows]
    assert {key: len(frames) for key, frames in page["frames"].items()} == dict.fromkeys(clips, 2)
    first = page["items"][0]
    assert first["row"]["text_digest"] == text_digest(rows[0])
    assert first["answer"] == "a circle"
    lines = first["question"].split("\n")
    assert lines[0] == rows[0]["question"]
    assert lines[1:3] == (["A. a circle", "B. a square"] if kind == "capquiz" else [])
    for name, criterion in zip(names, CRITERIA[kind], strict=True):
        assert page["gradings"][name]["asks"] == criterion.asks
        assert [choice["name"] for choice in page["gradings"][name]["choices"]] == ["yes", "no"]


@pytest.mark.parametrize(
    "then", [("people", "chosen"), ("sighted", "chosen"), ("review", "split"), ()]
)
def test_questions_are_those_before_the_check(
    then: tuple[str, ...], clips: dict[str, Path], tmp_path: Path
) -> None:
    """Whoever checked last time; a build that ended before its check is asked about, too."""
    write_stages(tmp_path / "vdc", question_rows("vdc", list(clips)), clips, then=then)
    questions = questions_to_check(tmp_path / "vdc")
    assert (questions.kind, questions.stage, len(questions.rows)) == ("vdc", "similar", 4)


def test_a_limit_draws_the_same_questions_for_everyone(
    clips: dict[str, Path], tmp_path: Path
) -> None:
    """By the seed, in the order of the clips, with all criteria of each."""
    write_stages(tmp_path / "vdc", question_rows("vdc", list(clips), 20), clips)
    pages: list[Any] = [page_of_build(tmp_path / "vdc", n=5, seed=seed).data for seed in (1, 1, 2)]
    drawn = [[item["row"]["question_id"] for item in page["items"]] for page in pages]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 5
    places = [row["id"] for row in question_rows("vdc", list(clips), 20)]
    assert [places.index(name) for name in drawn[0][::2]] == sorted(
        places.index(name) for name in set(drawn[0])
    )


def test_what_is_not_there_is_said(clips: dict[str, Path], tmp_path: Path) -> None:
    """No benchmark, no stage, no question, no clip."""
    with pytest.raises(SettingsError, match=r"one of capquiz, .*got '.*/mine'"):
        questions_to_check(tmp_path / "mine")
    with pytest.raises(DataError, match="got none; run lmms-eval-captions build vdc first"):
        questions_to_check(tmp_path / "vdc")
    write_stages(tmp_path / "vdc", [{"video": "a", "domain": "Nature"}], clips)
    with pytest.raises(DataError, match="expected questions that people can be asked about"):
        questions_to_check(tmp_path / "vdc")
    gone = dict.fromkeys(clips, tmp_path / "gone.mp4")
    write_stages(tmp_path / "vdc", question_rows("vdc", list(clips)), gone)
    page: Any = page_of_build(tmp_path / "vdc", n_frames=2)
    assert page.notes[0] == "frames of 0 of 2 videos are in the page"
    assert "make the page in the folder that the build was run in" in page.notes[1]
    assert "gone.mp4" in page.data["items"][0]["no_frames"]


def test_a_person_checks_two_questions(
    browser: Any, clips: dict[str, Path], tmp_path: Path
) -> None:
    """By keyboard, with a name that is filled in, over a reload, to the file that build reads."""
    folder = write_stages(tmp_path / "capquiz", question_rows("capquiz", list(clips), 1), clips)
    write_page(tmp_path / "page.html", page_of_build(folder, n_frames=1, annotator="Ann"))
    page = browser.new_context(accept_downloads=True).new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((tmp_path / "page.html").as_uri())
    assert page.input_value("#annotator") == "Ann"
    assert page.inner_text("#asks") == "Is the question answerable only using the video?"
    assert "B. a square" in page.inner_text("#question")
    assert page.inner_text("#answer") == "a circle"
    assert page.locator("#frames img").count() == 1
    for key in ("y", "Enter", "n", "Enter", "y", "Enter"):
        page.keyboard.press(key)
        assert not page.locator("#judge").is_visible()
    assert page.inner_text("#count").startswith("3 of 6 answered")
    reload_saved(page)
    assert page.inner_text("#count").startswith("3 of 6 answered")
    assert page.inner_text("#where").startswith("4 of 6")
    for key in ("s", "y", "Enter", "y", "Enter"):
        page.keyboard.press(key)
    with page.expect_download() as download:
        page.keyboard.press("x")
    file = tmp_path / "labels.jsonl"
    download.value.save_as(file)
    assert errors == []
    answers = read_answers([file], "capquiz")
    first, second = (row["id"] for row in question_rows("capquiz", list(clips), 1))
    assert [(answer.question_id, answer.said) for answer in answers] == [
        (first, "yes"), (first, "no"), (first, "yes"),
        (second, None), (second, "yes"), (second, "yes"),
    ]  # fmt: skip
    assert {answer.annotator for answer in answers} == {"Ann"}
    with pytest.raises(DataError, match="give the folder of the build, such as --build DATA/capq"):
        read_labels([file])


def test_the_command_writes_the_page_and_says_what_is_next(
    clips: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its options reach the page; what does not go together is said in a sentence."""
    folder = write_stages(tmp_path / "capquiz", question_rows("capquiz", list(clips)), clips)
    output = tmp_path / "page.html"
    words = ["label", "--build", str(folder), "-o", str(output)]
    assert main([*words, "--frames", "1", "--limit", "1", "--annotator", "Ann B."]) == 0
    html = output.read_text(encoding="utf-8")
    text = html.partition('<script id="data" type="application/json">')[2].partition("</script>")[0]
    data = json.loads(text)
    assert (len(data["items"]), data["annotator"], data["reveal"]) == (3, "Ann B.", "never")
    assert "build capquiz ... --labels EXPORTED.jsonl" in capsys.readouterr().out
    for given, said in (
        ([*words, "results"], "got both"),
        (["label"], "got neither"),
        ([*words, "--pairs"], "label --pairs: this goes with a page of results"),
        (["label", "results", "--limit", "3"], "label --limit: this goes with --build"),
        (["label", "--build", str(tmp_path)], "expected the folder of a benchmark"),
    ):
        assert main(given) == 2
        assert said in capsys.readouterr().err


def test_labels_of_a_build_say_how_far_people_agree(
    clips: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By each criterion, with what is kept and dropped, as text and as numbers."""
    rows = question_rows("vdc", list(clips), 5)
    folder = write_stages(tmp_path / "vdc", rows, clips)
    page = page_of_build(folder)
    wrong = {row["id"] for row in rows[:2]}

    def say(item: Any) -> dict[str, object]:
        is_wrong = item["grading"] == "factual correctness" and item["row"]["question_id"] in wrong
        return {"choice": "no" if is_wrong else "yes", "ratings": {}}

    old = [{**row, "text_digest": "0", "annotator": "Cy"} for row in rows_of(page, say)[:3]]
    files = [
        write_rows(tmp_path / "ann.jsonl", rows_of(page, say, annotator="Ann")),
        write_rows(tmp_path / "ben.jsonl", [*rows_of(page, say, annotator="Ben"), *old]),
    ]
    words = ["labels", *map(str, files), "--build", str(folder)]
    assert main(words) == 0
    printed = capsys.readouterr().out.splitlines()
    assert (
        printed[0]
        == "10 questions of the stage 'similar'; 10 were answered by at least 2 of 2 people"
    )
    assert [line.split() for line in printed[2:5]] == [
        ["criterion", "questions", "answered", "most", "say", "yes", "AC1"],
        ["visual", "relevance", "10", "10", "1.000"],
        ["factual", "correctness", "10", "8", "1.000"],
    ]
    assert printed[8].split() == ["Ann", "10", "of", "10", "8", "of", "10"]
    assert "kept: 8 of 10 questions" in printed
    assert "  dropped: 2 x people: the answer is not right" in printed
    assert any(line.startswith("note: 3 answers are not used: question,") for line in printed)
    assert any(line.startswith("note: 8 of the questions that are kept") for line in printed)
    assert main([*words, "--annotators", "3", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)["built"]
    assert (document["n_kept"], document["n_shared"], document["n_other_text"]) == (0, 10, 3)
    assert document["dropped"] == {"people: fewer than 3 annotators": 10}
    assert document["criteria"]["factual correctness"]["ac1"]["value"] == 1.0
    assert main([*words, "--against", "results"]) == 2
    assert "expected --build or --against, got both" in capsys.readouterr().err
