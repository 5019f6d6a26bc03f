"""The hooks of CapQuiz, called as lmms-eval calls them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aggregated import signature_of_items
from breakdowns import kept_breakdown, plain_groups
from conftest import ServerFactory
from five_tasks import Texts, write_data
from lmms_eval_captions.lmms_eval_tasks.capquiz import hooks
from lmms_eval_captions.lmms_eval_tasks.records import PendingRecord

Items = dict[str, list[PendingRecord]]

CATEGORIES = ("Entity", "Action", "Causal Reasoning", "Grounding Reasoning")


def _doc(video: str, *, prompt: str = "standard", domain: str = "Nature") -> dict[str, object]:
    questions = [
        {
            "category": category,
            "question": f"{category} of {video}?",
            "options": ["one", "two", "three", "four", "five"],
            "answer": "two",
        }
        for category in CATEGORIES
    ]
    return {"video": video, "domain": domain, "questions": questions, "caption_prompt": prompt}


def _process(*docs: dict[str, object], caption: str = "A caption.") -> Items:
    items: Items = {}
    for doc in docs:
        for metric, item in hooks.process_results(doc, [caption]).items():
            items.setdefault(metric, []).append(item)
    return items


def _by_type(prompt: str) -> str:
    """Right about entities and causes, wrong about actions, at a loss about grounding."""
    question = prompt.partition("**Question**\n")[2]
    return {"Entity": "B", "Action": "A", "Causal": "(B)", "Grounding": "F"}[question.split()[0]]


def test_the_three_scores_and_the_breakdown(
    bench: pytest.MonkeyPatch, serve: ServerFactory, logged: list[str]
) -> None:
    """Hand-made answers give the hand-worked scores, overall and for every group of questions."""
    server = serve()
    server.reply = _by_type
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    items = _process(_doc("a"), _doc("b", domain="Underwater"))
    assert hooks.aggregate("capf1")(items["capf1"]) == pytest.approx(400 / 7)
    hooks.aggregate("capf1")(items["capf1"])
    assert hooks.aggregate("capp")(items["capp"]) == pytest.approx(200 / 3)
    assert hooks.aggregate("capr")(items["capr"]) == pytest.approx(50.0)
    assert hooks.aggregate_unscored(items["unscored"]) == 0
    assert signature_of_items(items["unscored"]).startswith(
        "capquiz|judge:judge|runs:1|protocol:1|prompt:standard|unscored:0/8|questions:"
    )
    assert server.counts.n_requests == 8
    breakdown = kept_breakdown("capquiz")
    counts = {"n_questions": 4, "n_unscored": 0}
    inferential = {"capf1": pytest.approx(200 / 3), "capp": 100.0, "capr": 50.0, **counts}
    expected: dict[str, dict[str, Any]] = {
        "Descriptive": {"capf1": 50.0, "capp": 50.0, "capr": 50.0, **counts},
        "Inferential": inferential,
    }
    for name, figures in plain_groups(breakdown["groups"]).items():
        assert {key: figures[key] for key in expected[name]} == expected[name]
    assert list(breakdown["types"]) == list(CATEGORIES)
    assert breakdown["types"]["Grounding Reasoning"]["capp"] is None
    assert breakdown["types"]["Grounding Reasoning"]["capf1"] == 0.0
    assert list(breakdown["domains"]) == ["Nature", "Underwater"]
    assert list(breakdown["super_categories"]) == ["Knowledge"]
    assert any("Inferential" in line and "66.67" in line for line in logged)


@pytest.mark.parametrize(
    ("prompt", "task", "start"),
    [
        pytest.param("standard", "capquiz", "Describe this video in detail", id="standard"),
        pytest.param("detailed", "capquiz_detailed", "**You are a world-class", id="detailed"),
    ],
)
def test_the_caption_prompt_is_part_of_task_and_signature(
    prompt: str,
    task: str,
    start: str,
    bench: pytest.MonkeyPatch,
    serve: ServerFactory,
    tmp_path: Path,
) -> None:
    """A stub names the prompt; documents ask with it, and the signature says which it was."""
    root = write_data(tmp_path / "data", [Texts("clip0"), Texts("clip1")])
    bench.setenv("LMMS_CAPTIONS_DATA", str(root))
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", serve().url)
    docs: Any = hooks.process_docs([{"caption_prompt": prompt}])
    assert [hooks.doc_to_target(doc) for doc in docs] == ["clip0", "clip1"]
    assert hooks.doc_to_text(docs[0], {"pre_prompt": ">"}).startswith(f">{start}")
    signature = signature_of_items(_process(*docs)["unscored"])
    assert signature.startswith(f"{task}|judge:judge|runs:1|protocol:1|prompt:{prompt}|")
