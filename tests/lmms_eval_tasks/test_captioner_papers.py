"""DREAM-1K, CaReBench, video-SALMONN 2, UGC-VideoCap, questions from captions: files to numbers.

The expected numbers are worked out from the real files and the definitions, without our readers and
metrics: a judge whose verdicts follow from the events, captions and questions alone.
"""

from __future__ import annotations

import ast
import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import datasets
import pytest

from captioner_papers import OBJECTS, chosen, errors, extracted, label, ratings, reply
from five_tasks import Texts, write_data
from judge_server import JudgeServer
from lmms_eval_captions.cli.main import main
from lmms_eval_captions.judges.settings import read_data_settings
from lmms_eval_captions.lmms_eval_tasks.caption_qa.benchmark import _question, read_set
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks

Numbers = dict[str, float]


def caption_of(number: int) -> str:
    """Return a caption with three events, or with none for every 50th clip."""
    if number % 50 == 7:
        return "nothing happens"
    return f'A dog runs past "{number}". A man sits down. It leaves by door {number % 9}.'


def shares(events: Sequence[str]) -> float:
    return fmean(label(event) == "entailment" for event in events) if events else 1.0


def f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall)


def of_dream1k(rows: Sequence[Mapping[str, Any]]) -> Numbers:
    recall, precision = defaultdict(list), defaultdict(list)
    for number, row in enumerate(rows):
        events = row["extra_info"]["events"]
        own = extracted(caption_of(number))
        if events or own:
            recall[row["dataset"]].append(shares(events))
            precision[row["dataset"]].append(shares(own))
    assert len(recall) == 5
    r, p = (100 * fmean(map(fmean, values.values())) for values in (recall, precision))
    return {"dream_recall": r, "dream_precision": p, "dream_f1": f1(p, r)}


def of_carebench(rows: Sequence[Mapping[str, Any]]) -> Numbers:
    numbers: Numbers = {}
    own_objects = [[n for n in OBJECTS if n.split()[-1] in caption_of(k)] for k in range(len(rows))]
    own_events = [extracted(caption_of(number)) for number in range(len(rows))]
    for name, kind, own in (("action", "events", own_events), ("object", "objects", own_objects)):
        r = 100 * fmean(shares(row[kind]) for row in rows)
        p = 100 * fmean(map(shares, own))
        numbers |= {f"care_{name}_recall": r, f"care_{name}_precision": p}
        numbers[f"care_{name}_f1"] = f1(p, r)
    return numbers


def of_salmonn2(rows: Sequence[Mapping[str, Any]]) -> Numbers:
    sums, n_events = dict.fromkeys(("missed", "incorrect", "hallucinated"), 0), 0
    for number, row in enumerate(rows):
        events = row["events"]
        if isinstance(events, str):
            events = ast.literal_eval(events)
        n_events += len(events)
        for kind, found in errors(events, caption_of(number)).items():
            sums[kind] += len(found)
    names = zip(("miss", "incorrect", "hall"), sums.values(), strict=True)
    rates = {name: 100 * n / n_events for name, n in names}
    return {**rates, "total": sum(rates.values())}


def of_ugc_videocap(rows: Sequence[Mapping[str, Any]]) -> Numbers:
    rated = [ratings(row["answer"]) for row in rows]
    columns = zip(("visual", "audio", "details"), zip(*rated, strict=True), strict=True)
    means = {f"ugc_{name}": fmean(column) for name, column in columns}
    return {**means, "ugc_avg": 100 * fmean(map(fmean, rated)) / 5}


def of_daily_omni(rows: Sequence[Mapping[str, Any]]) -> Numbers:
    asked = [question for row in rows for question in row["questions"]]
    replies = [chosen(question["Question"], "ABCDE") for question in asked]
    n_right = sum(
        letter == question["Answer"] for letter, question in zip(replies, asked, strict=True)
    )
    n_answered = len(asked) - replies.count("E")
    return {
        "qa_accuracy": 100 * n_right / len(asked),
        "qa_coverage": 100 * n_answered / len(asked),
        "qa_precision": 100 * n_right / n_answered,
    }


def made_carebench() -> list[dict[str, Any]]:
    """Return rows of the published shape."""
    return [
        {
            "idx": number,
            "video": f"v_{number}.mp4",
            "caption": f"A dog runs. Number {number}.",
            "events": [f"a dog runs {n} of {number}" for n in range(number % 4)],
            "objects": [f"object {n} of {number}" for n in range(1 + number % 3)],
        }
        for number in range(40)
    ]


def real_rows(path: Path) -> Any:
    text = gzip.decompress(path.read_bytes()).decode()
    return list(map(json.loads, text.splitlines())) if ".jsonl" in path.name else json.loads(text)


FILES: Final = {
    "dream1k": ("dream1k/DREAM-1k.jsonl.gz", "dream1k/DREAM-1k.jsonl.gz"),
    "salmonn2": (
        "salmonn2_test/video_salmonn2_test.json.gz", "salmonn2/video_salmonn2_test.json.gz",
    ),
    "ugc_videocap": (
        "ugc_videocap/final_caption_qa.json.gz", "ugc_videocap/final_caption_qa.json.gz",
    ),
    "caption_qa_daily_omni": (
        "daily_omni/grouped_data.json.gz", "caption_qa/daily_omni/grouped_data.json.gz",
    ),
}  # fmt: skip
"""Task to its real file below the shared data, and to its path below ``LMMS_CAPTIONS_DATA``."""


def prepared(task: str, data: Path, shared_data: Path) -> tuple[list[str], Numbers]:
    """Put a task's file in place; return the names of its videos and the expected numbers."""
    if task == "carebench":
        rows = made_carebench()
        path = data / "carebench/json/metadata.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(rows))
        return [row["video"] for row in rows], of_carebench(rows)
    source, target = FILES[task]
    (data / target).parent.mkdir(parents=True)
    (data / target).symlink_to(shared_data / source)
    rows = real_rows(shared_data / source)
    if task == "dream1k":
        return [str(row.get("vid", row["idx"])) for row in rows], of_dream1k(rows)
    if task == "salmonn2":
        return [Path(row["video"]).name for row in rows], of_salmonn2(rows)
    if task == "ugc_videocap":
        return [row["video_id"] for row in rows["samples"]], of_ugc_videocap(rows["samples"])
    return [row["video_id"] for row in rows], of_daily_omni(rows)


def scored(task: str, names: Iterable[str], root: Path, *options: str) -> Mapping[str, Any]:
    """Score a file of captions; return the task's entry in the results file."""
    captions = root / "captions.jsonl"
    rows = [{"video": name, "caption": caption_of(n)} for n, name in enumerate(names)]
    captions.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    data = ("--data", str(root / "data"), "--cache", str(root / "cache"))
    line = ("score", str(captions), "--tasks", task, "-o", str(root / "out"), *data, *options)
    assert main(line) == 0
    (path,) = (root / "out").rglob("*_results.json")
    entry: Mapping[str, Any] = json.loads(path.read_text())["results"][task]
    return entry


@pytest.mark.parametrize("task", [*FILES, "carebench"])
@pytest.mark.usefixtures("bench")
def test_numbers_follow_the_definitions(task: str, shared_data: Path, tmp_path: Path) -> None:
    names, expected = prepared(task, tmp_path / "data", shared_data)
    with JudgeServer(reply=reply) as server:
        options = ("--judge", "a-judge", "--judge-url", server.url, "--max-cost", "none")
        entry = scored(task, names, tmp_path, *options)
    assert entry["unscored,none"] == 0
    assert {name: entry[f"{name},none"] for name in expected} == pytest.approx(expected, rel=1e-9)


def row_of(**fields: object) -> dict[str, object]:
    return {"question": "Who?", "answer": "B", "task_type": "Counting", **fields}


LETTERED: Final = ["A. A cat.", "B. A dog."]
TAKEN: Final = {
    "videomme": (row_of(videoID="fFjv93", options=LETTERED), "fFjv93", "A dog.", "Counting"),
    "worldsense": (
        row_of(video_path="v/a.mp4", candidates=LETTERED), "a.mp4", "A dog.", "Counting",
    ),
    "mvbench": (
        row_of(video="V1.mp4", candidates=["cat", "dog"], answer="dog", start=1.5, end=9.0),
        "V1_1.5_9", "dog", "action_antonym",
    ),
}  # fmt: skip
"""Set to a made-up row of the published form; its video, right option and category."""


@pytest.mark.parametrize("name", TAKEN)
def test_tasks_of_lmms_eval_are_asked_from_captions(
    name: str, monkeypatch: pytest.MonkeyPatch, logged: list[str]
) -> None:
    """lmms-eval's own YAML names dataset and split; a row that cannot be used is left out."""
    row, video, answer, category = TAKEN[name]
    loaded = []

    def load(path: str, config: str | None, split: str) -> list[dict[str, object]]:
        loaded.append((path, config, split))
        return [row, {**row, "answer": "Z"}]

    monkeypatch.setattr(datasets, "load_dataset", load)
    (read,) = read_set(read_data_settings({}), name)
    assert len(loaded) == (20 if name == "mvbench" else 1)
    assert all("/" in path and split in ("test", "train") for path, _, split in loaded)
    assert read["video"] == video
    assert len(read["questions"]) == len(loaded)  # type: ignore[arg-type]
    assert (read["questions"][0]["answer"], read["questions"][0]["category"]) == (answer, category)  # type: ignore[index]
    assert any(f"{len(loaded)} of {2 * len(loaded)} questions" in line for line in logged)


DAMAGED: Final = {
    "dream1k": {"idx": 7, "dataset": "DREAM/youtube", "extra_info": {"events": ["a"]}},
    "carebench": {"video": "a.mp4", "caption": "A man.", "events": "none", "objects": []},
    "salmonn2": {"video": "a.mp4", "events": "[" * 100_000},
    "ugc_videocap": {"video_id": "a", "path": "a.mp4"},
}


@pytest.mark.parametrize("task", DAMAGED)
@pytest.mark.usefixtures("bench")
def test_a_damaged_row_costs_its_clip_alone(task: str, tmp_path: Path) -> None:
    root = write_data(tmp_path / "data", [Texts("clip")])
    (path,) = (
        root / name
        for name in (
            "dream1k/DREAM-1k.jsonl", "carebench/json/metadata.json",
            "salmonn2/video_salmonn2_test.json", "ugc_videocap/final_caption_qa.json",
        )
        if name.startswith(task)
    )  # fmt: skip
    if path.suffix == ".jsonl":
        path.write_text(f"{path.read_text()}{json.dumps(DAMAGED[task])}\n")
    else:
        rows = json.loads(path.read_text())
        (rows["samples"] if isinstance(rows, dict) else rows).append(DAMAGED[task])
        path.write_text(json.dumps(rows))
    entry = scored(task, ["clip"], tmp_path, "--judge", "lexical")
    assert entry["unscored,none"] == 0


def test_an_answer_is_one_option_by_its_text_or_letter() -> None:
    """Not part of the alphabet that holds its letters."""
    options = ["I. Newton", "A. Einstein"]
    assert _question("Who?", options, "I. Newton", "all")["answer"] == "I. Newton"
    assert _question("Who?", ["cat", "dog", "cow"], "b", "all")["answer"] == "dog"
    with pytest.raises(ValueError, match="or its letter"):
        _question("Who?", ["cat", "dog", "cow"], "BC", "all")


def test_files_of_several_sets_are_one_captioner(
    tmp_path: Path, bench: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file per set and a folder per captioner, which the page of captioner papers shows."""
    bench.chdir(tmp_path)
    bench.setenv("LMMS_CAPTIONS_DATA", "sample")
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    for folder, words in (("mine", "A dog runs."), ("other", "A red circle moves to the right.")):
        for task in ("dream1k", "salmonn2"):
            benchmark = our_benchmarks()[task]
            clips = benchmark.read(read_data_settings(), benchmark.tasks[task])
            rows = [{"video": clip["video"], "caption": words} for clip in clips]
            path = Path(folder, f"{task}.jsonl")
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
            assert main(["score", str(path), "--tasks", task, "-o", f"results/{folder}"]) == 0
    capsys.readouterr()
    assert main(["compare", "results/mine", "results/other", "--format", "json"]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert {of["task"] for of in compared["compared"]} == {"dream1k", "salmonn2"}
    assert {row["captioner"] for of in compared["compared"] for row in of["rows"]} == {
        "mine", "other",
    }  # fmt: skip
    assert main(["stability", "results/mine", "--tasks", "dream1k"]) == 2
    assert "the judge's replies say what it is asked" in capsys.readouterr().err
    assert main(["stability", "results/mine"]) == 2
    assert "at least 2 judge runs" in capsys.readouterr().err, "of salmonn2 alone"
