"""What ``labels`` makes of exported files, on labels whose answer is known."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from label_runs import Row, judged_run, page_of, rows_of, write_rows
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.commands.label.corrected import compare
from lmms_eval_captions.lmms_eval_tasks.commands.label.label_file import read_labels
from lmms_eval_captions.lmms_eval_tasks.commands.label.matching import domains_of
from lmms_eval_captions.lmms_eval_tasks.commands.label.sampling import allocate, draw
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks
from lmms_eval_captions.lmms_eval_tasks.verdicts.captioners import captioners_of
from planted_runs import PlantedCaption, Question, record_of, write_run

CAPTIONS = ("A red circle moves to the right.", "Blue.", "", "A green square does not move.")
TASKS = [
    task
    for benchmark in all_benchmarks().values()
    for task in benchmark.tasks
    if benchmark.grading is not None
]
HE = "vidcapbench_he"
SAID = {
    "video motion": (("partial", "partial"), ("correct", "wrong")),
    "physical laws": (("neutral", "correct"), ("correct", "correct")),
}
"""Dimension to what the judge says of its two questions of every video, and what people say."""


def planted_he(folder: Path, name: str, *, n_videos: int = 12) -> list[Row]:
    """A captioner's run on VidCapBench-HE, and labels of all of it by one person."""
    questions = [
        Question(f"{dimension} {place}?", {"dimensions": dimension})
        for dimension in SAID
        for place in range(2)
    ]
    judge = [verdict for said, _ in SAID.values() for verdict in said]
    people = [verdict for _, said in SAID.values() for verdict in said]
    captions = [
        PlantedCaption(f"v{video}", questions, [judge], text=f"{name} {video} has words six in")
        for video in range(n_videos)
    ]
    records = [record_of(HE, caption) for caption in captions]
    write_run(folder / name, {HE: records})
    return [
        label_of(name, record.video_id, place, verdict, digest=record.caption_digest)
        for record in records
        for place, verdict in enumerate(people)
    ]


def label_of(
    captioner: str, video: str, place: int, choice: str, *, digest: str = "", **more: object
) -> Row:
    """A line as the page exports it."""
    return {
        "kind": "verdict", "task": HE, "captioner": captioner, "video_id": video,
        "question_index": place, "caption_digest": digest, "annotator": "ann",
        "label": {"choice": choice, "ratings": {}}, **more,
    }  # fmt: skip


def document_of(
    capsys: pytest.CaptureFixture[str], labels: Sequence[Row], *folders: Path
) -> dict[str, Any]:
    """What ``labels --format json`` prints."""
    file = write_rows(folders[0].parent / "labels.jsonl", labels)
    assert main(["labels", str(file), "--format", "json", "--against", *map(str, folders)]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_tables_4_and_11_of_planted_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Judge, people and their difference, overall and by dimension, are those planted."""
    labels = [*planted_he(tmp_path, "one"), *planted_he(tmp_path, "two")]
    document = document_of(capsys, labels, tmp_path / "one", tmp_path / "two")
    assert [each["captioner"] for each in document["verdicts"]] == ["one", "two"]
    for each in document["verdicts"]:
        scores: Mapping[str, Any] = each["scores"]
        assert {m: (s["judge"], s["people"]) for m, s in scores.items()} == {
            "acc": pytest.approx((25, 75)),
            "pre": pytest.approx((100, 75)),
            "cov": pytest.approx((75, 100)),
            "con": pytest.approx((100 * 25 / 6, 100 * 75 / 6)),
        }
        assert scores["acc"]["difference"]["difference"] == pytest.approx(50)
        assert scores["acc"]["corrected"]["value"] == pytest.approx(75)
        of_groups = {group["group"]: group["scores"] for group in each["groups"]}
        found = {
            dimension: [(of[m]["judge"], of[m]["people"]) for m in ("acc", "pre", "cov")]
            for dimension, of in of_groups.items()
        }
        assert found == {
            "video motion": [(0, 50), (100, 50), (100, 100)],
            "physical laws": [(50, 100), (100, 100), (50, 100)],
        }
    file = tmp_path / "labels.jsonl"
    assert (
        main(["labels", str(file), "--against", str(tmp_path / "one"), str(tmp_path / "two")]) == 0
    )
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert f"{HE} one 25.0 75.0 50.0 100.0 75.0 25.0 75.0 100.0 25.0 416.7 1250.0 833.3" in printed
    assert f"{HE} two judge 0.0 / 100.0 / 100.0 / 0.0 50.0 / 100.0 / 50.0 / 833.3" in printed
    assert f"{HE} two people 50.0 / 50.0 / 100.0 / 833.3 100.0 / 100.0 / 100.0 / 1666.7" in printed


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("task", TASKS)
def test_a_person_who_repeats_the_judge_gives_the_judge_s_numbers(
    task: str, tmp_path: Path
) -> None:
    """Every metric of every benchmark, overall and by group; so labels are weighed as it weighs."""
    judged_run(tmp_path, {task: CAPTIONS})
    rows = rows_of(page_of(tmp_path, n=10_000), lambda item: item["judge"][0])
    captioners = captioners_of([tmp_path])
    labels = read_labels([write_rows(tmp_path / "l.jsonl", rows)]).verdicts
    (domain,), left_out = domains_of(labels, captioners)
    assert left_out == []
    scores = captioners[0].runs[task].tasks[task].scores
    for metric, score in scores.items():
        if metric in domain.pairs[0].benchmark.metrics and not np.isnan(score):
            found = compare(domain, metric)
            assert found.people == pytest.approx(score)
            assert found.judge == pytest.approx(score)
            if metric != "con":
                assert found.corrected is not None
                assert found.corrected.value == pytest.approx(score)
    for section, names in domain.pairs[0].benchmark.sections.items():
        there = {pair.group(section) for pair in domain.pairs}
        for name in filter(there.__contains__, names):
            of_group = compare(domain, domain.pairs[0].benchmark.headline, (section, name))
            assert of_group.judge_all is not None
            assert of_group.people == pytest.approx(of_group.judge_all.value, nan_ok=True)


@pytest.mark.usefixtures("offline")
def test_a_stratified_sample_is_weighed_by_its_strata(tmp_path: Path) -> None:
    """People who always disagree in one dimension move the score by its share of the pairs."""
    judged_run(tmp_path, {"vidcapbench_ae": CAPTIONS})
    page = page_of(tmp_path, n=16, by=("dimensions",))
    rows = rows_of(
        page,
        lambda item: {
            "choice": "correct" if item["row"]["design"]["stratum"] == "video motion" else "wrong",
            "ratings": {},
        },
    )
    labels = read_labels([write_rows(tmp_path / "l.jsonl", rows)]).verdicts
    (domain,), _ = domains_of(labels, captioners_of([tmp_path]))
    share = np.mean([pair.group("dimensions") == "video motion" for pair in domain.pairs])
    found = compare(domain, "acc")
    assert found.labels_alone is not None
    assert found.labels_alone.value == pytest.approx(100 * share)
    assert sum(label.label.choice == "correct" for label in labels) / len(labels) != share


def test_labels_of_two_people_agree_as_planted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """AC1 and alpha of the two, and kappa of each with the judge."""
    ann = planted_he(tmp_path, "one")
    bob = [{**row, "annotator": "bob", "label": dict(row["label"])} for row in ann]
    bob[0]["label"]["choice"] = "neutral"
    (found,) = document_of(capsys, [*ann, *bob], tmp_path / "one")["verdicts"]
    among, *with_judge, everyone = found["agreement"]
    assert among["n_pairs"] == 48
    # 47 of 48 pairs; of the 96 labels, 71 are correct, 24 wrong and 1 neutral.
    shares = np.array([71, 24, 1]) / 96
    chance = (shares * (1 - shares)).sum() / 2
    assert among["coefficients"]["ac1"]["value"] == pytest.approx((47 / 48 - chance) / (1 - chance))
    assert [each["who"] for each in with_judge] == ["ann with the judge", "bob with the judge"]
    # People and judge agree on a quarter: both say correct; by chance on 0.75 * 0.25.
    assert with_judge[0]["coefficients"]["kappa"]["value"] == pytest.approx(
        (0.25 - 0.1875) / (1 - 0.1875)
    )
    assert everyone["n_pairs"] == 96


def test_what_cannot_be_told_or_is_said_twice(tmp_path: Path) -> None:
    """The last word counts, and what was left out is said."""
    rows: list[Row] = [
        label_of("one", "v1", 0, "correct", answered_at="2026-01-01"),
        label_of("one", "v1", 0, "wrong", answered_at="2026-01-02", changed_after_reveal=True),
        {**label_of("one", "v2", 0, "correct"), "label": None},
    ]
    labels = read_labels([write_rows(tmp_path / "l.jsonl", rows)])
    assert [label.label.choice for label in labels.verdicts] == ["wrong"]
    assert [note.split(" ", 2)[1] for note in labels.notes] == ["lines", "questions", "labels"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param("{", "line 1: expected one JSON object per line", id="cut"),
        pytest.param("[]", r"line 1: expected a label, got \[\]", id="a list"),
        pytest.param(
            '{"label": {"choice": "yes"}}', "line 1: the label lacks 'task'", id="no task"
        ),
        pytest.param(json.dumps(label_of("m", "v", 0, "yes")), "has the choice 'yes'", id="choice"),
        pytest.param(
            json.dumps(label_of("m", "v", 0, "wrong", task="vdc_x")), "'vdc_x'", id="task"
        ),
        pytest.param("", "there is no label in it", id="empty"),
        pytest.param(
            json.dumps(label_of("m", "v", 0, "left", kind="pair", left="m", right="m")),
            "is a choice between two captions of 'm'",
            id="one captioner",
        ),
        pytest.param(
            json.dumps(label_of("m", "v", 0, "wrong", label="wrong")),
            r"line 1: the label cannot be read \('str' object .*\); export it again",
            id="a word",
        ),
        pytest.param(
            json.dumps(label_of("m", "v", 0, "wrong", question_index=float("inf"))),
            "line 1: the label cannot be read",
            id="an endless number",
        ),
        pytest.param(
            json.dumps(label_of("m", "v", 0, "wrong", design={"by": "dimensions"})),
            "stratified by 'dimensions', expected a list",
            id="design",
        ),
        pytest.param(
            json.dumps(
                label_of("m", "v", 0, "yes", task="vdc_camera")
                | {"label": {"choice": "yes", "ratings": {"score": 9}}}
            ),
            "has 9.0 for 'score', expected 0 to 5",
            id="rating",
        ),
    ],
)
def test_a_broken_file_is_named_with_its_line(line: str, message: str, tmp_path: Path) -> None:
    """Whatever is in it, the message says what was expected."""
    path = tmp_path / "labels.jsonl"
    path.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_labels([path])


def test_labels_of_other_runs_are_left_out(tmp_path: Path) -> None:
    """Of other captions, questions or videos; where all are, it is an error."""
    rows = planted_he(tmp_path, "one")
    captioners = captioners_of([tmp_path / "one"])
    others = [
        label_of("one", "v0", 0, "wrong", digest="another"),
        label_of("one", "v0", 0, "wrong", question="Another?"),
        label_of("one", "v99", 0, "wrong"),
    ]
    labels = read_labels([write_rows(tmp_path / "l.jsonl", [*rows[4:], *others[:2], others[2]])])
    (domain,), left_out = domains_of(labels.verdicts, captioners)
    assert len(domain.labels) == 44
    assert len(left_out) == 3
    labels = read_labels([write_rows(tmp_path / "l.jsonl", others)])
    with pytest.raises(DataError, match="none is of these runs"):
        domains_of(labels.verdicts, captioners)


def test_samples_drawn_in_different_ways_are_not_mixed(tmp_path: Path) -> None:
    """Their weights would be of neither."""
    rows = planted_he(tmp_path, "one")
    rows[0]["design"] = {"by": ["dimensions"]}
    labels = read_labels([write_rows(tmp_path / "l.jsonl", rows)])
    with pytest.raises(DataError, match="at random and by dimensions cannot be weighed together"):
        domains_of(labels.verdicts, captioners_of([tmp_path / "one"]))


def test_choices_give_ratings_and_correlations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of three captioners, the better wins more: their order, and a correlation of 1."""
    names = {"good": 9, "fair": 5, "poor": 1}
    for name, n_right in names.items():
        questions = [Question(f"q{place}", {}) for place in range(10)]
        said = ["yes"] * n_right + ["no"] * (10 - n_right)
        captions = [PlantedCaption(f"v{v}", questions, [said], text=name) for v in range(3)]
        write_run(tmp_path / name, {"vdc_camera": [record_of("vdc_camera", c) for c in captions]})
    pairs = [("good", "fair"), ("fair", "poor"), ("poor", "good")]
    rows = [
        {
            "kind": "pair", "task": "vdc_camera", "video_id": f"v{video}", "annotator": "ann",
            "left": left, "right": right,
            "label": {"choice": "left" if (names[left] > names[right]) != (video < 4) else "right"},
        }
        for video in range(20)
        for left, right in pairs
    ]  # fmt: skip
    folders = [tmp_path / name for name in names]
    found = document_of(capsys, rows, *folders)["choices"]
    assert found["captioners"] == ["fair", "good", "poor"]
    fair, good, poor = found["bradley_terry"]["values"]
    assert good - fair == pytest.approx(fair - poor)
    # The better of two won 16 of 20: "poor" lost as often as "good" won.
    assert good > 1000 > poor
    assert np.argsort(found["elo"]["values"]).tolist() == [2, 0, 1]
    correlations = found["correlations"]["vdc_camera"]["vdc_acc"]
    assert correlations["Bradley-Terry"]["pearson"] == pytest.approx(1)
    assert correlations["Elo"]["kendall"] == pytest.approx(1)
    assert correlations["Elo"]["n"] == 3
    assert main(["labels", str(tmp_path / "labels.jsonl")]) == 0
    assert "Table O14" in capsys.readouterr().out


def test_strata_get_as_many_as_they_have() -> None:
    """Equal shares, what small strata lack going to the others; all of it where it is little."""
    assert allocate({"a": 100, "b": 3, "c": 50}, 21) == {"a": 9, "b": 3, "c": 9}
    assert allocate({"a": 2, "b": 2}, 3) in ({"a": 1, "b": 2}, {"a": 2, "b": 1})
    assert allocate({"a": 2, "b": 2}, 99) == {"a": 2, "b": 2}
    places = draw(["a"] * 50 + ["b"] * 5, 10, seed=3)
    assert len(set(places)) == 10
    assert sum(place >= 50 for place in places) == 5
    assert draw(["a"] * 50 + ["b"] * 5, 10, seed=3) == places != draw(["a"] * 55, 10, seed=4)


def planted_tasks(
    folder: Path, tasks: Sequence[str], said: Mapping[str, str], *, n_videos: int = 30
) -> list[Row]:
    """A run over a group's tasks in which the judge is right of one of two, and labels of all.

    Args:
        folder: Gets the run.
        tasks: Of one benchmark; the first has three questions of each video, others one.
        said: Verdict of the judge to people's, where people think otherwise.
        n_videos: The same for all tasks.
    """
    names = {"vdc_score": ("yes", "no"), "vidcapbench": ("correct", "wrong")}
    group = "vdc_score" if tasks[0].startswith("vdc") else "vidcapbench"
    records, rows = {}, []
    for order, task in enumerate(tasks):
        captions = []
        for video in range(n_videos):
            questions = [Question(f"{place}?", {}) for place in range(1 if order else 3)]
            judge = [names[group][(video + place + order) % 2] for place in range(len(questions))]
            captions.append(PlantedCaption(f"v{video}", questions, [judge], text="some words"))
            rows += [
                label_of("one", f"v{video}", place, said.get(verdict, verdict), task=task)
                for place, verdict in enumerate(judge)
                if (video + order) % 3 or said[verdict] == verdict
            ]
        records[task] = [record_of(task, caption) for caption in captions]
    write_run(folder, records, groups={group: tasks})
    return rows


VDC_TASKS = [f"vdc_{aspect}" for aspect in ("camera", "short", "background")]


def test_a_group_is_the_mean_of_its_tasks_by_people_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """VDC's headline: the judge's on all pairs, the labels' and the corrected score."""
    labels = planted_tasks(tmp_path / "one", VDC_TASKS, {"yes": "yes", "no": "no"})
    del labels[::4]
    labels += [{**row, "label": {"choice": "yes", "ratings": {}}} for row in labels[-3:]]
    document = document_of(capsys, labels, tmp_path / "one")
    (group,) = document["groups_of_tasks"]
    assert (group["group"], group["captioner"]) == ("vdc_score", "one")
    of_tasks = [each["scores"]["vdc_acc"] for each in document["verdicts"]]
    assert len(of_tasks) == 3
    found = group["scores"]["vdc_acc"]
    for name in ("judge_all", "labels_alone"):
        assert found[name]["value"] == pytest.approx(
            np.mean([of[name]["value"] for of in of_tasks])
        )
    lam = found["corrected"]["lam"]
    rectified = found["people"] + lam * (found["judge_all"]["value"] - found["judge"])
    assert found["corrected"]["value"] == pytest.approx(rectified)
    assert lam > 0
    for name in ("judge", "people"):
        assert found[name] == pytest.approx(np.mean([of[name] for of in of_tasks]))
    assert found["difference"]["difference"] == pytest.approx(found["people"] - found["judge"])
    assert found["n_labels"] == sum(of["n_labels"] for of in of_tasks)
    assert main(["labels", str(tmp_path / "labels.jsonl"), "--against", str(tmp_path / "one")]) == 0
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert sum(words[:3] == ["vdc_score", "one", "vdc_acc"] for words in printed) == 1


def test_a_pooled_group_counts_the_questions_of_its_tasks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """VidCapBench: three questions of AE for one of HE, however many of each were labelled."""
    tasks = ("vidcapbench_ae", "vidcapbench_he")
    labels = planted_tasks(tmp_path / "one", tasks, {"correct": "wrong", "wrong": "wrong"})[:-9]
    document = document_of(capsys, labels, tmp_path / "one")
    (group,) = document["groups_of_tasks"]
    ae, he = (each["scores"]["acc"] for each in document["verdicts"])
    assert ae["n_labels"] / he["n_labels"] != 3
    found = group["scores"]["acc"]
    assert found["judge_all"]["value"] == pytest.approx(50)
    for name in ("people", "judge"):
        assert found[name] == pytest.approx(0.75 * ae[name] + 0.25 * he[name])
    alone = [of["labels_alone"]["value"] for of in (ae, he)]
    assert found["labels_alone"]["value"] == pytest.approx(0.75 * alone[0] + 0.25 * alone[1])
    assert found["corrected"] is not None
    assert group["scores"]["con"]["corrected"] is None


def test_a_group_with_a_task_without_labels_is_not_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which one is said; nothing is guessed for it."""
    labels = planted_tasks(tmp_path / "one", VDC_TASKS, {"yes": "no", "no": "no"})
    some = [row for row in labels if row["task"] != "vdc_short"]
    assert document_of(capsys, some, tmp_path / "one")["groups_of_tasks"] == []
    assert main(["labels", str(tmp_path / "labels.jsonl"), "--against", str(tmp_path / "one")]) == 0
    note = "note: vdc_score of one is not given: no label is of vdc_short"
    assert note in capsys.readouterr().out.splitlines()


def test_captions_that_two_captioners_share_are_not_mixed_up(tmp_path: Path) -> None:
    """Labels of a captioner that is not there are not another's; those of a renamed folder are."""
    (tmp_path / "two").mkdir()
    rows = [{**row, "captioner": "one"} for row in planted_he(tmp_path, "two")]
    captioners = captioners_of([tmp_path / "two"])
    labels = read_labels([write_rows(tmp_path / "l.jsonl", rows)]).verdicts
    (domain,), left_out = domains_of(labels, captioners)
    assert (domain.captioner, len(domain.labels), left_out) == ("two", 48, [])
    for row in rows[8:]:
        row["caption_digest"] = "another"
    labels = read_labels([write_rows(tmp_path / "l.jsonl", rows)]).verdicts
    with pytest.raises(DataError, match="they are of other captions"):
        domains_of(labels, captioners)


@pytest.mark.parametrize("by", ["dimensions", "verdict"])
def test_a_stratum_that_is_another_now_is_refused(by: str, tmp_path: Path) -> None:
    """Weights would be of another sample: after another judging, or of an edited file."""
    rows = planted_he(tmp_path, "one")
    captioners = captioners_of([tmp_path / "one"])
    for row in rows:
        row["design"] = {"by": [by], "stratum": "x"}
    labels = read_labels([write_rows(tmp_path / "l.jsonl", rows)]).verdicts
    with pytest.raises(DataError, match=by):
        domains_of(labels, captioners)


def test_what_some_labels_lack_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """VDC's grade is optional: who grades only right answers grades no random sample."""
    labels = planted_tasks(tmp_path / "one", VDC_TASKS[:1], {"yes": "yes", "no": "no"})
    for row in labels[:40]:
        row["label"]["ratings"] = {"score": 5}
    document = document_of(capsys, labels, tmp_path / "one")
    scores = document["verdicts"][0]["scores"]
    assert scores["vdc_score"]["note"].startswith("50 of 90 labelled pairs lack it")
    assert scores["vdc_acc"]["note"] == ""


def test_the_document_is_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is not known is null: other programs read no NaN."""
    labels = planted_tasks(tmp_path / "one", VDC_TASKS[:1], {"yes": "yes", "no": "no"})
    document = document_of(capsys, labels, tmp_path / "one")
    assert document["verdicts"][0]["scores"]["vdc_score"]["people"] is None


@pytest.mark.parametrize("choice", ["tie", "left"])
def test_choices_that_are_all_the_same_give_no_interval(
    choice: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Resamples of them are the same, too: an interval without width would be false."""
    rows = [
        label_of("", f"v{video}", 0, choice, kind="pair", left="a", right="b")
        for video in range(30)
    ]
    file = write_rows(tmp_path / "labels.jsonl", rows)
    assert main(["labels", str(file), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["choices"]
    for name in ("elo", "bradley_terry"):
        assert (found[name]["low"], found[name]["high"]) == (None, None)
    assert main(["labels", str(file)]) == 0
    assert "so Elo has no interval, either" in capsys.readouterr().out
