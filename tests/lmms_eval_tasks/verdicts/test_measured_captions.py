"""What is said of finished runs whose captions were measured, and no judge was asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drawn_captions import COUNTED
from lmms_eval_captions.lmms_eval_tasks.breakdown import breakdown_item
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task
from lmms_eval_captions.lmms_eval_tasks.verdicts.verdict_file import (
    verdict_path,
    write_verdicts,
)
from lmms_eval_captions.metrics.bleu import bleu
from lmms_eval_captions.metrics.meteor import meteor
from planted_runs import STAMP, PlantedCaption, Question, record_of, write_run

N_VIDEOS = 14
TASK = "vdc_classic_camera"


def _record(video: int, seed: int) -> CaptionRecord:
    rng = np.random.default_rng([video, seed])
    (bleu_row, _), (meteor_row, _) = (
        COUNTED["vdc_classic", "bleu_4"],
        COUNTED["vdc_classic", "meteor"],
    )
    counts = [[list(bleu_row(rng))]]
    return CaptionRecord(
        task=TASK,
        video_id=f"v{video}",
        judge="none",
        runs=1,
        protocol=1,
        extras={"tokenizer": "ptb"},
        n_questions=1,
        n_unscored=0,
        questions=f"q{video}",
        values={
            "rouge_l": [[float(rng.uniform(0.2, 0.6))]],
            "cider": [[float(rng.uniform(0, 2))]],
            "bleu_1": counts,
            "bleu_4": counts,
            "meteor": [[list(meteor_row(rng))]],
        },
        asked=[""],
        n_words=20,
        caption_digest=f"{video}-{seed}",
    )


def _run(folder: Path, videos: range, seed: int, *, has_judge: bool = False) -> list[CaptionRecord]:
    records = [_record(video, seed) for video in videos]
    tasks = {TASK: records}
    if has_judge:
        runs = [["yes"], ["no"]]
        tasks["vdc_camera"] = [
            record_of("vdc_camera", PlantedCaption(f"v{video}", [Question("Red?", {})], runs))
            for video in videos
        ]
    write_run(folder, tasks)
    return records


def _error(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main([*map(str, words)]) == 2
    return " ".join(capsys.readouterr().err.split())


def test_what_compare_shows_of_common_videos_is_the_metric_of_their_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """BLEU and METEOR of all captions together are computed anew of those that are left."""
    first = _run(tmp_path / "a", range(N_VIDEOS), 1)
    second = _run(tmp_path / "b", range(3, N_VIDEOS + 4), 2)
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["compared"]
    values: dict[tuple[str, str], Any] = {
        (row["captioner"], row["metric"]): row["value"] for row in found["rows"]
    }
    for name, records in (("a", first[3:]), ("b", second[: N_VIDEOS - 3])):
        for metric, value_of in (
            ("bleu_1", lambda sums: bleu(sums, n=1)),
            ("bleu_4", lambda sums: bleu(sums, n=4)),
            ("meteor", meteor),
        ):
            counts = [record.values[metric][0][0] for record in records]
            value = 100 * value_of([sum(column) for column in zip(*counts, strict=True)])
            assert values[name, metric] == pytest.approx(value)


def test_compare_names_no_judge_where_none_was_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Captions are measured; there is no judge called "none"."""
    _run(tmp_path / "a", range(N_VIDEOS), 1)
    _run(tmp_path / "b", range(N_VIDEOS), 2)
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Measured without a judge. Compared on 14 questions about 14 videos" in text
    assert "Judged by" not in text


def test_there_is_no_judge_to_agree_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same captions measured twice are no two judges."""
    for name in "ab":
        _run(tmp_path / name, range(N_VIDEOS), 1)
    assert "vdc_classic: measured without a judge" in _error(
        capsys, "agree", tmp_path / "a", tmp_path / "b"
    )


def test_stability_is_that_of_tasks_with_a_judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Others are left out, and an error where they are asked for or all that there is."""
    _run(tmp_path / "both", range(N_VIDEOS), 1, has_judge=True)
    _run(tmp_path / "measured", range(N_VIDEOS), 1)
    assert main(["stability", str(tmp_path / "both"), "--format", "json"]) == 0
    names = [one["name"] for one in json.loads(capsys.readouterr().out)["stability"]]
    assert names == ["vdc_camera"]
    words = f"expected tasks with a judge, got {TASK}: captions are measured there"
    assert words in _error(capsys, "stability", tmp_path / "measured")
    asked = ("--tasks", f"vdc_camera,{TASK}")
    assert words in _error(capsys, "stability", tmp_path / "both", *asked)


def test_people_are_not_asked_what_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is no verdict that a person could give."""
    _run(tmp_path / "a", range(N_VIDEOS), 1)
    output = tmp_path / "label.html"
    words = _error(capsys, "label", tmp_path / "a", "--output", output)
    assert "expected tasks that people can be asked about" in words
    assert not output.exists()


@pytest.mark.parametrize(
    "row", [[1, 2], ["many"], [float("inf")] * 10], ids=["few", "words", "inf"]
)
def test_counts_that_are_none_are_an_error_that_names_the_file(
    row: list[object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Users may edit files: what cannot be added up is found when it is read."""
    records = _run(tmp_path / "a", range(N_VIDEOS), 1)
    path = verdict_path(tmp_path / "a" / "m", STAMP, TASK)
    items = [breakdown_item(benchmark_of_task(TASK), record) for record in records]
    items[3]["values"]["bleu_1"] = [[row]]  # type: ignore[index] # an item of JSON
    write_verdicts(path, {"task": TASK}, items)
    _run(tmp_path / "b", range(N_VIDEOS), 2)
    words = _error(capsys, "compare", tmp_path / "a", tmp_path / "b")
    assert f"a/m/{STAMP}_results.json: the verdicts of" in words
    assert "score the captions again" in words
