"""The group of VidCapBench's two tasks: over all pairs, not over the tasks' scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import pytest

from breakdowns import kept_breakdown
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord, arrived
from lmms_eval_captions.lmms_eval_tasks.results.scoring import score_of
from lmms_eval_captions.lmms_eval_tasks.vidcapbench import hooks
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.benchmark import VIDCAPBENCH
from lmms_eval_captions.model_wrappers.no_caption import NoCaption

METRICS: dict[str, Any] = {
    str(entry["metric"]): entry["aggregation"] for entry in hooks.group_metric_list[:4]
}


@pytest.fixture(autouse=True)
def nothing_finished(bench: pytest.MonkeyPatch) -> None:
    """A process in which no task was aggregated."""
    THIS_RUN.clear()


def _record(
    task: str, video: str, runs: list[list[str | None]], n_tokens: int | None
) -> CaptionRecord:
    n_unscored = sum(verdict is None for run in runs for verdict in run)
    return CaptionRecord(
        task=task,
        video_id=video,
        judge="judge",
        runs=len(runs),
        protocol=1,
        extras={"format": "free"},
        n_questions=sum(map(len, runs)),
        n_unscored=n_unscored,
        reasons={"told so": n_unscored} if n_unscored else {},
        kinds={"stopped": n_unscored} if n_unscored else {},
        values=dict.fromkeys(METRICS, runs),
        groups={
            "dimensions": [["video content"] * len(run) for run in runs],
            "sub_categories": [["events"] * len(run) for run in runs],
        },
        n_words=3,
        fields={
            "n_tokens": n_tokens,
            **({"con_reason": "no tokenizer"} if n_tokens is None else {}),
        },
    )


def _judge(records: Sequence[CaptionRecord]) -> dict[str, float]:
    """Aggregate a task as lmms-eval does, before its group; the task's own numbers."""
    hooks.aggregate("acc")([arrived(record, record.head()) for record in records])
    return {name: score_of(VIDCAPBENCH, name, records) for name in METRICS}


def _numbers() -> dict[str, float]:
    """The group's metrics, given what lmms-eval gives, which they do not need."""
    return {name: metric([nan, nan], [1, 1], False) for name, metric in METRICS.items()}


def test_hand_worked_numbers_over_all_pairs() -> None:
    """Three pairs of AE and one of HE: a mean of the tasks would weigh HE's pair three times."""
    ae = [_record("vidcapbench_ae", "a.mp4", [["correct", "correct", "neutral"]], 10)]
    he = [_record("vidcapbench_he", "a.mp4", [["wrong"]], 10)]
    assert _judge(ae)["acc"] == pytest.approx(200 / 3)
    assert _judge(he)["acc"] == 0.0
    numbers = _numbers()
    assert numbers == {
        "acc": 50.0,
        "pre": pytest.approx(200 / 3),
        "cov": 75.0,
        "con": pytest.approx(100 * 50 / 10),
    }


def test_a_video_counts_once_in_the_tokens() -> None:
    """A clip with a caption in each task has their mean; one of a single task its own."""
    _judge(
        [
            _record("vidcapbench_ae", "a.mp4", [["correct"]], 10),
            _record("vidcapbench_ae", "b.mp4", [["correct"]], 40),
        ]
    )
    _judge([_record("vidcapbench_he", "a.mp4", [["correct"]], 30)])
    assert _numbers()["con"] == pytest.approx(100 * 100 / ((20 + 40) / 2))


def test_the_group_has_a_breakdown_of_its_own(bench: pytest.MonkeyPatch) -> None:
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0.5")
    ae = [_record("vidcapbench_ae", "a.mp4", [["correct", "wrong"], ["correct", None]], 10)]
    he = [_record("vidcapbench_he", "a.mp4", [["correct", "neutral"], ["wrong", "neutral"]], 30)]
    dimensions = [["video content", "video motion"]] * 2
    he = [replace(he[0], groups={**he[0].groups, "dimensions": dimensions})]
    _judge(ae)
    _judge(he)
    numbers = _numbers()
    written = kept_breakdown("vidcapbench")
    assert written["task"] == "vidcapbench"
    assert written["signature"].startswith("vidcapbench|judge:judge|runs:2|")
    assert "|unscored:1/8|" in written["signature"]
    assert written["mean_tokens"] == 20
    assert {m: written["overall"]["all"][m] for m in METRICS} == pytest.approx(numbers)
    assert [run["acc"] for run in written["runs"]] == pytest.approx([50, 100 / 3])
    content, motion = (written["dimensions"][f"video {name}"] for name in ("content", "motion"))
    assert (content["n_questions"], content["n_unscored"]) == (3, 1)
    assert (motion["n_questions"], motion["acc"], motion["cov"]) == (1, 0, 0)


def test_a_caption_that_is_not_there_costs_its_tokens_alone(
    bench: pytest.MonkeyPatch, shared_data: Path
) -> None:
    """One unreadable clip, asked about or not, through the hooks: con is that of the others."""
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    bench.setenv("LMMS_CAPTIONS_T5", str(shared_data / "t5" / "spiece.model"))
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0.5")
    pair = {"question": "What rolls?", "answer": "A red ball.", "primary_category": "video motion"}
    for subset, pairs in (("AE", 1), ("HE", 0)):
        records = [
            hooks.process_results(
                {
                    "video_id": video,
                    "subset": subset,
                    "caption_format": "free",
                    "questions": [{**pair, "sub_category": "object motion"}] * n_pairs,
                },
                [caption],
            )["acc"].record
            for video, caption, n_pairs in (
                ("a.mp4", "A red ball.", 1),
                ("b.mp4", NoCaption("b.mp4: it is cut off"), pairs),
            )
        ]
        _judge(records)
    numbers = _numbers()
    # "A red ball." is 4 pieces with the full stop, and the end of sequence.
    assert numbers["acc"] == 100.0
    assert numbers["con"] == pytest.approx(100 * 100 / 5)
