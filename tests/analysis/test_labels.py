"""Output of ``labels`` for exported files, from the page to JSON."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from label_runs import Row, judged_run, page_of, rows_of, write_rows
from lmms_eval_captions.analysis.label.built import built_page, questions_to_check
from lmms_eval_captions.analysis.label.page import PageOptions
from lmms_eval_captions.cli.main import main
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task
from scripted_crew import write_clip

TASK = "vcapsbench"
CAPTIONS = tuple(f"A red circle moves to the right, {number}." for number in range(4))

pytestmark = pytest.mark.usefixtures("offline")


@dataclass
class Labels:
    """The command, and what it printed."""

    capsys: pytest.CaptureFixture[str]

    def __call__(self, *words: object, code: int = 0) -> dict[str, Any]:
        """Run it; the document, and the errors as ``error``."""
        self.capsys.readouterr()
        assert main(["labels", *map(str, words), "--format", "json"]) == code
        printed = self.capsys.readouterr()
        return {"error": printed.err, **json.loads(printed.out or "{}")}


@pytest.fixture
def labels(capsys: pytest.CaptureFixture[str]) -> Labels:
    """The command ``labels``."""
    return Labels(capsys)


def _as_judge(item: Row) -> Mapping[str, object]:
    return item["judge"][0] or {"choice": "unanswerable", "ratings": {}}


def test_people_who_agree_with_the_judge_leave_its_score(tmp_path: Path, labels: Labels) -> None:
    """Kappa is 1, the difference 0, and all pairs are labelled."""
    judged_run(tmp_path / "a", {TASK: CAPTIONS})
    path = write_rows(tmp_path / "ann.jsonl", rows_of(page_of(tmp_path / "a"), _as_judge))
    (found,) = labels(path, "--against", tmp_path / "a")["verdicts"]
    assert found["n_labelled"] == found["n_pairs"] > 4
    assert found["agreement"][0]["coefficients"]["kappa"]["value"] == 1
    for compared in found["scores"].values():
        assert compared["people"] == compared["judge"]
        assert compared["corrected"]["value"] == pytest.approx(compared["judge_all"]["value"])


def test_labels_find_a_captioner_whose_folder_was_renamed(tmp_path: Path, labels: Labels) -> None:
    """By its captions; labels of other captions are left out, with a note."""
    judged_run(tmp_path / "a", {TASK: CAPTIONS})
    judged_run(tmp_path / "b", {TASK: [f"{text} It stops." for text in CAPTIONS[:3]] + ["Else."]})
    rows = rows_of(page_of(tmp_path / "a"), _as_judge)
    path = write_rows(tmp_path / "ann.jsonl", rows)
    shutil.move(tmp_path / "a", tmp_path / "renamed")
    found = labels(path, "--against", tmp_path / "b", tmp_path / "renamed")
    assert [of["captioner"] for of in found["verdicts"]] == ["renamed"]
    assert found["left_out"] == []
    assert "other captions" in labels(path, "--against", tmp_path / "b", code=2)["error"]
    rows[0]["caption_digest"] = "other"
    write_rows(path, rows)
    (note,) = labels(path, "--against", tmp_path / "renamed")["left_out"]
    assert note.startswith("1 label left out")


def test_each_of_two_captions_of_a_video_has_its_labels(tmp_path: Path, labels: Labels) -> None:
    """All pairs of both captions are asked about, with their own text, and are labelled."""
    n_docs = len(benchmark_of_task(TASK).read(data_settings(), benchmark_of_task(TASK).tasks[TASK]))
    captions = [f"A red circle moves to the right, {number}." for number in range(n_docs + 1)]
    judged_run(tmp_path / "a", {TASK: captions})
    page: Any = page_of(tmp_path / "a", n=10_000)
    assert set(page.data["captions"]) == set(captions)
    path = write_rows(tmp_path / "ann.jsonl", rows_of(page, _as_judge))
    document = labels(path, "--against", tmp_path / "a")
    (found,) = document["verdicts"]
    assert found["n_labelled"] == found["n_pairs"] == len(page.data["items"])
    assert found["agreement"][0]["coefficients"]["kappa"]["value"] == 1
    assert document["left_out"] == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"annotator": ...}, "lacks 'annotator'", id="no-annotator"),
        pytest.param({"label": {"choice": "maybe"}}, "got 'maybe'", id="unknown-choice"),
        pytest.param({"task": "mmlu"}, "'mmlu'", id="unknown-task"),
        pytest.param({"kind": "question"}, "--build DATA/vcapsbench", id="built"),
    ],
)
def test_a_label_that_cannot_be_used_is_a_sentence(
    change: Row, words: str, tmp_path: Path, labels: Labels
) -> None:
    """It names the line, or the video."""
    judged_run(tmp_path / "a", {TASK: CAPTIONS})
    (row, *_) = rows_of(page_of(tmp_path / "a"), _as_judge)
    changed = {key: value for key, value in {**row, **change}.items() if value is not ...}
    path = write_rows(tmp_path / "ann.jsonl", [changed])
    assert words in labels(path, "--against", tmp_path / "a", code=2)["error"]


def test_choices_rank_captioners(tmp_path: Path, labels: Labels) -> None:
    """The captioner that is always chosen is first; one person has no agreement."""
    for name in "abc":
        judged_run(tmp_path / name, {TASK: [f"{text} {name}" for text in CAPTIONS]})
    page = page_of(*(tmp_path / name for name in "abc"), pairs=True)

    def say(item: Row) -> Mapping[str, object]:
        is_left = item["row"]["left"] < item["row"]["right"]
        return {"choice": "left" if is_left else "right", "ratings": {}}

    path = write_rows(tmp_path / "ann.jsonl", rows_of(page, say))
    found = labels(path)["choices"]
    assert (found["n_choices"], found["captioners"]) == (12, ["a", "b", "c"])
    assert found["elo"]["values"] == sorted(found["elo"]["values"], reverse=True)
    assert found["agreement"] == {}


def test_built_questions_are_kept_if_most_people_say_yes(tmp_path: Path, labels: Labels) -> None:
    """Each question once per criterion, with frames; one that is found wrong is dropped."""
    folder = tmp_path / "vdc"
    clip = tmp_path / "clip.mp4"
    write_clip(clip, shade=90)
    head = {"fingerprint": "x"}
    questions = [
        {"id": f"q{n}", "video": "clip", "question": f"What is {n}?", "answer": "red"}
        for n in range(3)
    ]
    (folder / "build").mkdir(parents=True)
    write_rows(folder / "build/01-clips.jsonl", [head, {"video": "clip", "path": str(clip)}])
    write_rows(folder / "build/02-form.jsonl", [head, *questions])
    options = PageOptions(n=3, n_frames=2)
    page = built_page(questions_to_check(folder, tmp_path), options)
    data: Any = page.data
    assert len(data["items"]) == 6
    assert list(map(len, data["frames"].values())) == [2]
    elsewhere: Any = built_page(questions_to_check(folder, folder), options).data
    assert elsewhere["frames"] == {}  # the stage's file may name any file of this machine
    paths = [
        write_rows(tmp_path / f"{name}.jsonl", rows_of(page, _yes_but("q1"), annotator=name))
        for name in ("ann", "bob")
    ]
    found = labels(*paths, "--build", folder, "--annotators", 2)["built"]
    assert (found["n_questions"], found["n_kept"], found["n_shared"]) == (3, 2, 3)
    assert found["criteria"]["factual correctness"]["ac1"]["value"] == 1


def _yes_but(name: str) -> Callable[[Row], Mapping[str, object]]:
    return lambda item: {
        "choice": "no" if item["row"]["question_id"] == name else "yes",
        "ratings": {},
    }
