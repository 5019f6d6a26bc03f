"""``lmms-eval-captions stability`` on verdicts whose stability is planted, for every benchmark."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task
from planted_runs import PlantedCaption, Question, record_of, write_run
from planted_stability import NAMES, Asked, official_questions, plant, tasks_of_name


def _stability(capsys: pytest.CaptureFixture[str], *words: str | Path) -> dict[str, Any]:
    assert main(["stability", *map(str, words), "--format", "json"]) == 0
    (document,) = json.loads(capsys.readouterr().out)["stability"]
    return dict(document)


@pytest.mark.parametrize("name", NAMES)
def test_planted_shares_come_back(
    name: str, settings: DataSettings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By captioner, by group, for all captioners, and by the number of captioners."""
    questions: dict[Asked, Any] = {}
    for task in tasks_of_name(name):
        questions |= official_questions(settings, task)
    generator = random.Random(name)
    fates = {
        (asked, captioner): generator.choices(["same", "differs", "unscored"], [6, 3, 1])[0]
        for asked in questions
        for captioner in "abc"
    }
    plan = lambda asked, captioner: fates[asked, captioner]  # noqa: E731
    folders = plant(tmp_path, settings, name, dict.fromkeys("abc", plan))
    document = _stability(capsys, *folders)
    assert (document["name"], document["n_runs"]) == (name, 3)
    assert document["n_questions"] == len(questions)

    rows = {(row["section"], row["group"]): row for row in document["same_verdict"]}
    members: dict[tuple[str, str], list[Asked]] = {("overall", "all"): list(questions)}
    for asked, groups in questions.items():
        for pair in groups.items():
            members.setdefault(pair, []).append(asked)
    assert members.keys() <= rows.keys()
    for pair, of_group in members.items():
        for captioner in "abc":
            said = Counter(fates[asked, captioner] for asked in of_group)
            share = rows[pair]["captioners"][captioner]
            assert share["n_same"] == said["same"]
            assert share["n_known"] == said["same"] + said["differs"]
    known = [a for a in questions if all(fates[a, c] != "unscored" for c in "abc")]
    times = Counter(sum(fates[asked, c] == "same" for c in "abc") for asked in known)
    counted = {row["captioners"]: row["n_questions"] for row in document["consistent_times"]}
    assert counted == {n: times[n] for n in (3, 2, 1, 0)}
    together = rows["overall", "all"]["all_captioners"]
    assert together["percent"] == pytest.approx(100 * times[3] / len(known))
    assert together["low"] < together["percent"] < together["high"]
    metrics = benchmark_of_task(tasks_of_name(name)[0]).metrics
    assert set(document["noise_floor"]) == set(metrics)
    for noise in document["noise_floor"].values():
        assert noise["runs"]["1"] > noise["runs"]["3"] > noise["runs"]["5"] > 0


@pytest.mark.parametrize("name", NAMES)
def test_a_judge_that_says_the_same_has_no_noise(
    name: str, settings: DataSettings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All is stable, and the score over stable questions is the score."""
    folders = plant(tmp_path, settings, name, {"a": lambda *_: "same", "b": lambda *_: "same"})
    document = _stability(capsys, *folders)
    for row in document["same_verdict"]:
        assert row["all_captioners"]["percent"] == 100
    assert document["consistent_times"][0]["proportion"] == 100
    for noise in document["noise_floor"].values():
        assert set(noise["runs"].values()) == {0.0}
        assert noise["largest_seen"] == 0
    for score in document["scores"]:
        assert score["stable"] == pytest.approx(score["full"])


def _run(folder: Path, name: str, verdicts: Sequence[Sequence[object]], n_videos: int = 12) -> Path:
    questions = [Question(text, {"categories": "object"}) for text in ("a", "b", "a")]
    captions = [PlantedCaption(f"v{i}", questions, verdicts) for i in range(n_videos)]
    write_run(folder / name, {"vcapsbench": [record_of("vcapsbench", c) for c in captions]})
    return folder / name


def test_the_tables_for_a_paper(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Table 8's columns and rows, in text and in Markdown."""
    right, wrong = "positive", "negative"
    a = _run(tmp_path, "a", [[right, right, wrong], [right, wrong, wrong]])
    b = _run(tmp_path, "b", [[right, right, right], [right, wrong, wrong]])
    assert main(["stability", str(a), str(b)]) == 0
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("Consistent Times  # Samples  Proportion")
    assert [line.split() for line in lines[place + 1 : place + 5]] == [
        ["2", "12", "33%"], ["1", "12", "33%"], ["0", "12", "33%"], ["Total", "36", "100%"],
    ]  # fmt: skip
    assert any(line.startswith("all 2 captioners  33.3") for line in lines)
    assert main(["stability", str(a), str(b), "--format", "markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("| Consistent Times | # Samples | Proportion |")
    assert lines[place + 1 : place + 3] == ["| :--- | ---: | ---: |", "| 2 | 12 | 33% |"]


def test_too_few_runs_and_captioners_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code stays 0, and the words say how little it proves."""
    one_run = _run(tmp_path, "one", [["positive", "negative", "positive"]])
    assert main(["stability", str(one_run)]) == 0
    text = capsys.readouterr().out
    assert "1 judge run cannot tell whether a verdict is stable" in " ".join(text.split())
    assert "100.0" not in text
    few = _run(tmp_path, "few", [["positive", "negative", "positive"]] * 3)
    assert main(["stability", str(few)]) == 0
    text = capsys.readouterr().out
    assert "1 captioner with 3 judge runs are few" in text
    assert "chance of 73 % here, 21 % there" in " ".join(text.split())
    enough = [_run(tmp_path, f"e{i}", [["positive", "negative", "positive"]] * 3) for i in range(5)]
    assert main(["stability", *map(str, enough)]) == 0
    assert "are few" not in capsys.readouterr().out


def test_as_many_runs_are_compared_as_all_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A third run that differs would make a captioner that has three look less stable."""
    same = ["positive", "negative", "positive"]
    two = _run(tmp_path, "two", [same, same])
    three = _run(tmp_path, "three", [same, same, ["negative"] * 3])
    document = _stability(capsys, two, three)
    assert document["n_runs"] == 2
    assert document["same_verdict"][0]["all_captioners"]["percent"] == 100
    assert any("have 2 and 3 judge runs: the first 2 are compared" in n for n in document["notes"])


@pytest.mark.parametrize(
    ("within", "percent"), [pytest.param("5", 50.0, id="5"), pytest.param("0", 0.0, id="0")]
)
def test_numbers_are_the_same_within_a_part_of_their_scale(
    within: str, percent: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half of the captions have scores 4 apart of 100, the others 6."""
    records = [
        record_of("msvd_eval_ref_only", PlantedCaption(f"v{i}", [Question("", {})], [[70.0], [to]]))
        for i, to in enumerate([74.0, 76.0] * 6)
    ]
    write_run(tmp_path / "a", {"msvd_eval_ref_only": records})
    document = _stability(capsys, tmp_path / "a", "--within", within)
    shares = {row["group"]: row["all_captioners"] for row in document["same_verdict"]}
    names = ("all", "accuracy", "completeness", "conciseness", "relevance")
    assert {name: share["percent"] for name, share in shares.items()} == dict.fromkeys(
        names, percent
    )


def test_folders_without_a_common_task_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, and the words name what each has."""
    a = _run(tmp_path, "a", [["positive"] * 3] * 2)
    question = Question("q", {"types": "Entity"})
    record = record_of("capquiz", PlantedCaption("v", [question], [["true_positive"]] * 2))
    write_run(tmp_path / "b", {"capquiz": [record]})
    assert main(["stability", str(a), str(tmp_path / "b")]) == 2
    assert "a: vcapsbench; b: capquiz" in capsys.readouterr().err
    assert main(["stability", str(a), "--tasks", "vdc_score"]) == 2
    assert (
        "expected any of vcapsbench, which all results have, got 'vdc_score'"
        in capsys.readouterr().err
    )


def test_another_judge_and_empty_captions_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both make questions look more, or less, stable than they are."""
    planted = PlantedCaption("v", [Question("q", {})], [["positive"]] * 3)
    record = record_of("vcapsbench", planted)
    write_run(tmp_path / "a", {"vcapsbench": [record]})
    other = replace(record_of("vcapsbench", planted, judge="j"), n_empty=1)
    write_run(tmp_path / "b", {"vcapsbench": [other]})
    notes = _stability(capsys, tmp_path / "a", tmp_path / "b")["notes"]
    assert "the captioners were not judged alike: judge is gpt-4o for a, j for b" in notes
    assert any(note.startswith("1 of the captions is empty") for note in notes)
