"""Every benchmark's record, and what hooks make of one whose questions are known after judging."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Literal

import pytest

from aggregated import signature_of_items
from breakdowns import kept_breakdown
from conftest import ServerFactory
from lmms_eval_captions.judges.endpoint.request import Ask, Chain, Reply
from lmms_eval_captions.judges.protocols.asking import JudgeConfig, request_of
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import (
    Benchmark,
    Doc,
    Metric,
    over_questions,
    read_plain_yaml,
)
from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.records import PendingRecord
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks, task_groups
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.benchmark import VCAPSBENCH

RECORDS: Final = all_benchmarks()
Items = dict[str, list[PendingRecord]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact(Judgement):
    """One fact that a judge found in a caption."""

    kind: str
    verdict: Literal["right", "wrong"] | None


def _ask(question: str, caption: str, *, config: JudgeConfig, run: int) -> Chain[Sequence[Fact]]:
    async def chain(ask: Ask) -> Sequence[Fact]:
        messages: Any = [{"role": "user", "content": f"{question} {caption}"}]
        request = request_of(
            "facts", messages, config=config, seed=run, stand_in=lambda: "object+ action-"
        )
        asked = await ask(request, _read)
        if asked.value is None:
            return (Fact(run=run, kind="none", verdict=None, **asked.outcome()),)
        return [
            Fact(
                run=run,
                kind=fact[:-1],
                verdict="right" if fact.endswith("+") else "wrong",
                **asked.outcome(),
            )
            for fact in asked.value
        ]

    return chain


def _read(reply: Reply) -> list[str] | None:
    facts = reply.text.split()
    return facts if all(fact[-1] in "+-" for fact in facts) else None


def _precision(verdicts: Sequence[str | None]) -> float:
    scored = [verdict for verdict in verdicts if verdict is not None]
    return 100.0 * scored.count("right") / len(scored) if scored else float("nan")


class Facts(Benchmark[str, Fact]):
    """Asks what facts a caption holds; how many is known after the reply."""

    name, folder, source = VCAPSBENCH.name, VCAPSBENCH.folder, VCAPSBENCH.source
    tasks = VCAPSBENCH.tasks
    metrics = {"precision": Metric(score=over_questions(_precision))}
    headline = "precision"
    sections = {"kinds": ("object", "action")}
    ask = staticmethod(_ask)

    def questions(self, doc: Doc) -> list[str]:
        """The document's."""
        return list(doc["questions"])

    def groups(self, _doc: Doc, _question: str, judgement: Fact | None) -> dict[str, str]:
        """The kind of the fact."""
        return {"kinds": judgement.kind} if judgement else {}


FACTS: Final = Facts()


def _judged(captions: Mapping[str, str], *, n_questions: int = 1) -> Items:
    items: Items = {}
    for video, caption in captions.items():
        doc = {"video_id": video, "questions": [f"Which facts {i}?" for i in range(n_questions)]}
        for metric, item in hooks_of(FACTS).process_results(doc, [caption]).items():
            items.setdefault(metric, []).append(item)
    return items


def test_questions_are_counted_by_the_judgements(
    bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """A caption of three facts and one of one are four questions, each in its group."""
    server = serve()
    server.reply = lambda prompt: "object+ action- object+" if "long" in prompt else "action+"
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    items, hooks = _judged({"a": "A long one.", "b": "Short."}), hooks_of(FACTS)
    assert hooks.aggregate("precision")(items["precision"]) == 75.0
    assert [item["n_questions"] for item in items["unscored"] if item.wait()] == [3, 1]
    assert items["precision"][0]["verdicts"] == [["right", "wrong", "right"]]
    record: dict[str, Any] = items["precision"][0]
    assert len(record["judgements"]) == 3
    assert "|unscored:0/4|" in signature_of_items(items["unscored"])
    received = [pickle.loads(pickle.dumps(item)) for item in items[FACTS.headline]]  # noqa: S301
    hooks.aggregate(FACTS.headline)(received)
    kinds = kept_breakdown(received[0]["task"])["kinds"]
    assert {name: (row["precision"], row["n_questions"]) for name, row in kinds.items()} == {
        "object": (100.0, 2),
        "action": (50.0, 2),
    }


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_and_its_yaml_files_say_the_same(name: str) -> None:
    """Each task has a YAML file whose stub names it; its metrics are the benchmark's."""
    benchmark = RECORDS[name]
    files = {
        config["task"]: config
        for config in map(read_plain_yaml, benchmark.folder.glob("*.yaml"))
        if "group" not in config
    }
    for task in benchmark.tasks.values():
        stub = files[task.name]["dataset_kwargs"]["data_files"]["test"]
        row = json.loads((benchmark.folder / stub).read_text())
        assert benchmark.task_of(row) is task
        template = read_plain_yaml(benchmark.folder / files[task.name]["include"])
        module, _, name = template["metric_list"].rpartition(".")
        listed = [entry["metric"] for entry in getattr(import_module(module), name)]
        assert listed == [*benchmark.metrics, "unscored"]
    assert benchmark.headline in benchmark.metrics
    assert benchmark.source.benchmark == benchmark.name


def test_groups_are_those_of_the_yaml_files() -> None:
    """Groups of groups hold their tasks, each once."""
    groups = task_groups()
    assert groups["vidcapbench"] == ("vidcapbench_ae", "vidcapbench_he")
    assert set(groups["vdc_score"]) < set(groups["video_captions"])
    assert "capquiz_detailed" not in groups["video_captions"]
    assert "vdc_rouge_camera" in groups["vdc_rouge"]


def test_a_document_of_another_benchmark_is_refused() -> None:
    """The text names the tasks that there are."""
    with pytest.raises(ValueError, match="expected a document of vdc_camera, vdc_short"):
        RECORDS["vdc"].task_of({"setting": "ref_only"})


def test_a_caption_prompt_may_depend_on_the_document() -> None:
    """``instruction`` is what captioners are asked with."""
    benchmark = VCAPSBENCH.variant(instruction=lambda doc, _prompts: f"Look at {doc['video_id']}.")
    text = hooks_of(benchmark).doc_to_text({"video_id": "a"}, {"pre_prompt": "Please: "})
    assert text == "Please: Look at a."
