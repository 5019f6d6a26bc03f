"""What must end as nan is not paid for, and captions may be left out: of all five benchmarks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from conftest import ServerFactory
from drawn_captions import record
from five_tasks import TASKS, Task, Texts, write_data
from judge_server import JudgeServer, scripted_reply
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN
from lmms_eval_captions.lmms_eval_tasks.known_shares import KnownShare, known_share
from lmms_eval_captions.lmms_eval_tasks.patches import PATCHES
from lmms_eval_captions.lmms_eval_tasks.records import PendingRecord
from lmms_eval_captions.lmms_eval_tasks.scoring import (
    has_score,
    signature_of,
    signatures_of_tasks,
)
from lmms_eval_captions.lmms_eval_tasks.signature import Share, Signature
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.benchmark import VIDCAPBENCH
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.group import group_acc, group_breakdown
from lmms_eval_captions.model_wrappers.no_caption import DroppedCaption, NoCaption

N_VIDEOS = 4
THERE = ["A red ball.", "A dog.", "A cat sleeps.", "Two people talk."]
MISSING = NoCaption("the caption file has none")
DROPPED = DroppedCaption("the caption file has none")
EACH = pytest.mark.parametrize("task", TASKS, ids=[task.name for task in TASKS])

Items = dict[str, list[PendingRecord]]


@dataclass
class Instance:
    """A request as lmms-eval has it once its answer is filtered."""

    doc_id: int
    answer: str
    metadata: Mapping[str, object] = field(default_factory=dict)

    @property
    def filtered_resps(self) -> dict[str, str]:
        """By the name of the filter."""
        return {"none": self.answer}


class LmmsEvalTask:
    """As much of lmms-eval's task as the plug-in joins."""

    def __init__(self, task: Task, instances: Sequence[Instance]) -> None:
        self.config = SimpleNamespace(process_results=task.hooks.process_results)
        self.instances = instances
        self.task_docs = task.documents()

    def apply_filters(self) -> None:
        """Here answers are filtered."""


def run(task: Task, captions: Sequence[str], *, at: Sequence[int] | None = None) -> Items:
    """What lmms-eval does in one process: filter all answers, then hand them in one by one."""
    joined = type("Joined", (LmmsEvalTask,), {})
    tasks = ModuleType("tasks")
    vars(tasks)["ConfigurableTask"] = joined
    (patch,) = (patch for patch in PATCHES if patch.function == "ConfigurableTask.apply_filters")
    patch.apply(tasks)
    positions = range(len(captions)) if at is None else at
    instances = [Instance(*pair) for pair in zip(positions, captions, strict=True)]
    padding = Instance(0, MISSING, {"__padding_only__": True})
    lmms_eval = joined(task, [*instances, padding])
    lmms_eval.apply_filters()
    items: Items = {}
    for instance in instances:
        doc = lmms_eval.task_docs[instance.doc_id]
        for metric, item in lmms_eval.config.process_results(doc, [instance.answer]).items():
            items.setdefault(metric, []).append(item)
    return items


def scores(task: Task, items: Items) -> dict[str, float]:
    """Every metric but the one that needs a tokenizer."""
    names = [name for name in task.hooks.benchmark.metrics if name != "con"]
    return {name: task.hooks.aggregate(name)(items[name]) for name in names}


@pytest.fixture(autouse=True)
def server(
    bench: pytest.MonkeyPatch, tmp_path: Path, serve: ServerFactory
) -> Iterator[JudgeServer]:
    """A judge, and the data of all benchmarks about a few videos."""
    server = serve()
    server.reply = scripted_reply
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    videos = [Texts(f"clip{number}") for number in range(N_VIDEOS)]
    bench.setenv("LMMS_CAPTIONS_DATA", str(write_data(tmp_path / "data", videos)))
    bench.setenv("LMMS_CAPTIONS_T5", str(tmp_path / "no-tokenizer"))
    yield server
    THIS_RUN.clear()


@EACH
def test_no_request_is_sent_where_no_score_is_possible(
    task: Task, server: JudgeServer, logged: list[str]
) -> None:
    """A missing caption of four leaves more unscored than may be: said once, with what helps."""
    items = run(task, [*THERE[:3], MISSING])
    assert all(map(isnan, scores(task, items).values()))
    assert server.counts.n_requests == 0
    [words] = [line for line in logged if line.startswith(f"ERROR {task.name}: not asked: ")]
    assert "1 missing of 4 captions leave 1 of 4 questions" in words
    for help_ in ("Add the captions", "missing=drop", "raise the limit", "MAX_UNSCORED"):
        assert help_ in words
    reasons = [json.dumps(item["reasons"]) for item in items[task.hooks.benchmark.headline]]
    assert all('"not asked: 1 missing of 4 captions' in reason for reason in reasons[:3])
    assert "no caption: the caption file has none" in reasons[3]


@EACH
def test_what_may_still_have_a_score_is_asked(
    task: Task, server: JudgeServer, bench: pytest.MonkeyPatch, logged: list[str]
) -> None:
    """At the limit the score stands, and a run without missing captions is as ever."""
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0.25")
    items = run(task, [*THERE[:3], MISSING])
    assert not any(map(isnan, scores(task, items).values()))
    assert server.counts.n_requests > 0
    scores(task, run(task, THERE))
    assert not [line for line in logged if "not asked" in line]


@EACH
def test_empty_captions_are_known_too(task: Task, server: JudgeServer, logged: list[str]) -> None:
    """They are unscored where the benchmark has no verdict for silence, and judged elsewhere."""
    items = run(task, [*THERE[:3], " ... "])
    values = scores(task, items).values()
    if task.hooks.benchmark.silent is None:
        assert all(map(isnan, values))
        assert server.counts.n_requests == 0
        assert [line for line in logged if "1 empty of 4 captions leave 1 of 4" in line]
    else:
        assert not any(map(isnan, values))
        assert server.counts.n_requests > 0


@EACH
def test_one_of_several_processes_knows_its_own_captions_alone(
    task: Task, server: JudgeServer, bench: pytest.MonkeyPatch
) -> None:
    """It stops only where the others could not mend it, whatever they have."""
    bench.setenv("RANK", "1")
    bench.setenv("WORLD_SIZE", "2")
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0.3")
    scores(task, run(task, [THERE[1], MISSING], at=[1, 3]))
    assert server.counts.n_requests > 0
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0.2")
    n_requests = server.counts.n_requests
    JUDGE_RUN.close()
    scores(task, run(task, ["Another dog.", MISSING], at=[1, 3]))
    assert server.counts.n_requests == n_requests


@EACH
def test_dropped_captions_leave_the_task(
    task: Task, server: JudgeServer, logged: list[str], tmp_path: Path
) -> None:
    """The score is that of the others, and signature, breakdown and log say of how many."""
    alone = scores(task, run(task, [THERE[0], THERE[2]], at=[0, 2]))
    n_requests = server.counts.n_requests
    items = run(task, [THERE[0], DROPPED, THERE[2], DROPPED])
    assert scores(task, items) == pytest.approx(alone, nan_ok=True)
    assert server.counts.n_requests == n_requests
    hooks = task.hooks
    assert "|dropped:2/4|unscored:0/" in hooks.aggregate_signature(items["signature"])
    assert hooks.aggregate_unscored(items["unscored"]) == 0
    [line] = [line for line in logged if "missing=drop" in line]
    assert "2 of 4 captions are not there and are left out" in line
    hooks.aggregate_breakdown(items["breakdown"])
    assert THIS_RUN.breakdowns[task.name]["n_dropped"] == 2
    assert "|dropped:2/4|" in str(THIS_RUN.breakdowns[task.name]["signature"])
    dropped = items[hooks.benchmark.headline][1]
    assert (dropped["n_dropped"], dropped["n_questions"], "score" in dropped) == (1, 0, False)


@EACH
def test_a_task_of_dropped_captions_alone_has_no_score(
    task: Task, server: JudgeServer, logged: list[str]
) -> None:
    """Of nothing there is no score, and the error says why."""
    items = run(task, [DROPPED] * N_VIDEOS)
    assert all(map(isnan, scores(task, items).values()))
    assert server.counts.n_requests == 0
    assert [line for line in logged if "there is no caption (missing=drop)" in line]


@EACH
def test_dropped_and_missing_captions_are_told_apart(
    task: Task, server: JudgeServer, logged: list[str]
) -> None:
    """What is left out is no part of what may be unscored."""
    items = run(task, [THERE[0], DROPPED, MISSING, THERE[3]])
    assert all(map(isnan, scores(task, items).values()))
    assert server.counts.n_requests == 0
    assert [line for line in logged if "1 missing of 3 captions leave 1 of 3 questions" in line]


def test_groups_say_how_many_captions_were_dropped() -> None:
    """Summed over all tasks, among all captions of the group."""
    values = ["a|judge:j|dropped:1/4|unscored:0/3", "b|judge:j|unscored:0/6"]
    assert signatures_of_tasks(values, [4, 2], False) == "judge:j|dropped:1/6"


def test_a_pooled_group_is_scored_without_dropped_captions(
    tmp_path: Path, bench: pytest.MonkeyPatch
) -> None:
    """AE and HE together, each without its own."""
    ae, he = (Task(name, TASKS[1].hooks) for name in VIDCAPBENCH.tasks)
    folder = tmp_path / "data" / "vidcapbench"
    text = (folder / "VidCapBench-AE_QA.jsonl").read_text()
    (folder / "VidCapBench-HE_QA.jsonl").write_text(text)
    pooled = []
    for number, (captions, at) in enumerate(
        ((THERE[:2], [0, 1]), ([*THERE[:2], DROPPED, DROPPED], [0, 1, 2, 3]))
    ):
        THIS_RUN.clear()
        for task in (ae, he):
            items = run(task, captions, at=at)
            task.hooks.aggregate_breakdown(items["breakdown"])
        pooled.append(group_acc([], [], False))
        group_breakdown([], [], False)
        breakdown = THIS_RUN.breakdowns["vidcapbench"]
        assert breakdown.get("n_dropped", 0) == 4 * number
        assert ("|dropped:4/8|" in str(breakdown["signature"])) == bool(number)
        own = [signature_of(THIS_RUN.tasks[name].records) for name in VIDCAPBENCH.tasks]
        joined = Signature.parse(signatures_of_tasks(own, [len(at)] * 2, False)).fields
        pooled_fields = Signature.parse(str(breakdown["signature"])).fields
        assert {**joined, "unscored": pooled_fields["unscored"]} == pooled_fields
    assert pooled[0] == pooled[1]


def test_shares_are_counted_by_questions() -> None:
    """A missing caption of a clip with many questions weighs more than one with few."""
    docs: list[dict[str, Any]] = [{"questions": [{}] * n} for n in (1, 9, 5, 5)]
    counted = replace(VIDCAPBENCH, questions=lambda doc: doc["questions"])
    captions = {0: "A dog.", 1: MISSING, 2: "", 3: "A cat."}
    known = known_share(counted, docs, captions, rank=0, world_size=1)
    assert known is not None
    assert (known.n_unscored, known.n_questions, known.n_captions) == (9, 20, 4)
    assert known_share(counted, docs, {0: "A dog."}, rank=0, world_size=1) is None
    facts = replace(counted, counts_ahead=False)
    assert known_share(facts, docs, captions, rank=0, world_size=1) is None
    # Documents 1 and 3 of --offset 1: the other process has document 2, never document 0.
    known = known_share(counted, docs, {1: MISSING, 3: "A cat."}, rank=0, world_size=2)
    assert known is not None
    assert (known.n_unscored, known.n_questions) == (9, 19)
    # Of three documents the first process has two: more than the second, whose one is missing.
    known = known_share(counted, docs, {1: MISSING}, rank=1, world_size=2)
    assert known is not None
    assert (known.n_unscored, known.n_questions) == (9, 15)


@pytest.mark.parametrize("n_runs", [1, 3])
def test_a_limit_is_reached_whatever_a_product_is_rounded_to(
    bench: pytest.MonkeyPatch, n_runs: int
) -> None:
    """29 of 100 questions are not more than 0.29 of them, before the run and behind it."""
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0.29")
    known = KnownShare(n_captions=100, n_missing=29, n_empty=0, n_questions=100, n_unscored=29)
    values: list[object] = [["yes"]] * n_runs
    records = [drawn_record(n < 29, values, n_runs) for n in range(100)]
    assert not known.is_nan(0.29)
    assert has_score(records)
    assert Share(30, 100).exceeds(0.29)


def drawn_record(is_missing: bool, values: list[Any], n_runs: int) -> Any:
    """A caption with one question."""
    made = record("clip", "vdc_acc", values, {})
    return replace(made, n_unscored=n_runs * is_missing)


@EACH
def test_an_empty_rank_is_none(task: Task, bench: pytest.MonkeyPatch) -> None:
    """Job files set variables to nothing: that is one process, and ends no run."""
    bench.setenv("RANK", "")
    bench.setenv("WORLD_SIZE", "")
    items = run(task, [*THERE[:-1], MISSING])
    assert items[task.hooks.benchmark.headline][-1].wait()["n_unscored"]
