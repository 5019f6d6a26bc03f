"""Scores that must be nan are not paid for, and captions may be left out, in all benchmarks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from aggregated import signature_of_items
from conftest import ServerFactory
from five_tasks import TASKS, Task, Texts, write_data
from judge_server import JudgeServer, scripted_reply
from lmms_eval_captions.lmms_eval_tasks.integration.patches import PATCHES
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.records import PendingRecord
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
    def __init__(self, task: Task, instances: Sequence[Instance]) -> None:
        self.config = SimpleNamespace(process_results=task.hooks.process_results)
        self.instances = instances
        self.task_docs = task.documents()

    def apply_filters(self) -> None:
        """Here answers are filtered."""


def run(task: Task, captions: Sequence[str], *, at: Sequence[int] | None = None) -> Items:
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


@pytest.mark.parametrize(
    "task",
    [task for task in TASKS if task.hooks.benchmark.counts_ahead],
    ids=lambda task: task.name,
)
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
def test_captions_that_cost_more_than_the_limit_are_not_asked_about(
    task: Task, server: JudgeServer, bench: pytest.MonkeyPatch, logged: list[str]
) -> None:
    """The captions that were written are what is estimated; the ways out are named."""
    bench.setenv("LMMS_CAPTIONS_JUDGE", "gpt-4o")
    bench.setenv("LMMS_CAPTIONS_MAX_COST", "0.3")
    long = [" ".join(f"{number}. {text}" for number in range(20000)) for text in THERE]
    assert all(map(isnan, scores(task, run(task, long)).values()))
    assert server.counts.n_requests == 0
    start = f"ERROR {task.name}: LMMS_CAPTIONS_MAX_COST: $0.3 is not enough: judging takes about "
    [words] = [line for line in logged if line.startswith(start)]
    assert "Raise the limit (LMMS_CAPTIONS_MAX_COST, or none)" in words
    assert not any(map(isnan, scores(task, run(task, THERE)).values()))
    # Replies of another endpoint do not serve if each endpoint is to be asked itself.
    SESSION.close()
    bench.setenv("LMMS_CAPTIONS_STORE_BY", "endpoint")
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url.replace("127.0.0.1", "127.0.0.2"))
    bench.setenv("LMMS_CAPTIONS_MAX_COST", "1e-7")
    run(task, THERE)
    assert any("$1e-07 is not enough" in line for line in logged)


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
    assert "|dropped:2/4|unscored:0/" in signature_of_items(items["unscored"])
    assert hooks.aggregate_unscored(items["unscored"]) == 0
    [line] = [line for line in logged if "missing=drop" in line]
    assert "2 of 4 captions are not there and are left out" in line
    hooks.aggregate(hooks.benchmark.headline)(items[hooks.benchmark.headline])
    assert THIS_RUN.breakdowns[task.name]["n_dropped"] == 2
    assert "|dropped:2/4|" in str(THIS_RUN.breakdowns[task.name]["signature"])
    dropped = items[hooks.benchmark.headline][1]
    assert (dropped["n_dropped"], dropped["n_questions"], "score" in dropped) == (1, 0, False)
