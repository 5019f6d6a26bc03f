"""The hooks of VCapsBench, called as lmms-eval calls them."""

from __future__ import annotations

import json
import pickle
from math import isnan

import pytest

from aggregated import signature_of_items
from breakdowns import kept_breakdown, plain, plain_groups
from conftest import ServerFactory
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.records import PendingRecord
from lmms_eval_captions.lmms_eval_tasks.vcapsbench import hooks

Items = dict[str, list[PendingRecord]]

CATEGORIES = ("action", "color", "mood")


def _doc(video: str) -> dict[str, object]:
    questions = [
        {"category": category, "question": f"{category} of {video}?", "answer": "yes"}
        for category in CATEGORIES
    ]
    return {
        "video_id": video,
        "questions": questions,
        "n_malformed_in_file": 6,
    }


def _process(*captions: str) -> Items:
    items: Items = {}
    for number, caption in enumerate(captions):
        for metric, item in hooks.process_results(_doc(f"v{number}"), [caption]).items():
            items.setdefault(metric, []).append(item)
    return items


def _by_category(prompt: str) -> str:
    """Yes to actions, no to colours, nothing about moods."""
    question = prompt.rpartition("Question: ")[2]
    answer = {"action": "Yes", "color": "No", "mood": "Unanswerable"}[question.split()[0]]
    return f"{answer}@@@It says so."


def test_the_three_rates_and_the_breakdown(
    bench: pytest.MonkeyPatch, serve: ServerFactory, logged: list[str]
) -> None:
    """Hand-made answers give the hand-worked rates, overall and for each group and category."""
    server = serve()
    server.reply = _by_category
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    items = _process("one", "two")
    assert hooks.aggregate("ar")(items["ar"]) == pytest.approx(100 / 3)
    assert hooks.aggregate("ir")(items["ir"]) == pytest.approx(50.0)
    assert hooks.aggregate("cr")(items["cr"]) == pytest.approx(200 / 3)
    assert hooks.aggregate_unscored(items["unscored"]) == 0
    assert signature_of_items(items["unscored"]).startswith(
        "vcapsbench|judge:judge|runs:1|protocol:1|asks:3|unscored:0/6|questions:"
    )
    assert server.counts.n_requests == 2 * 3 * 3
    breakdown = kept_breakdown("vcapsbench")
    assert breakdown["n_malformed"] == 6
    assert breakdown["runs"] == [
        {"ar": pytest.approx(100 / 3), "ir": 50.0, "cr": pytest.approx(200 / 3)}
    ]
    right = {"ar": 100.0, "ir": 0.0, "cr": 100.0, "n_questions": 2, "n_unscored": 0}
    assert plain(breakdown["groups"]["Content & Entity"]) == right
    assert plain_groups(breakdown["categories"]) == {
        "action": right,
        "color": {**right, "ar": 0.0, "ir": 100.0},
        "mood": {**right, "ar": 0.0, "ir": None, "cr": 0.0},
    }
    assert breakdown["overall"]["all"]["n_questions"] == 6
    assert set(breakdown["groups"]) == {"Content & Entity", "Color & Lighting"}
    assert any("Content & Entity" in line and "100.00" in line for line in logged)


def test_an_item_holds_what_lmms_eval_needs(
    bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """The caption's own score in percent where it has one, and every judgement, as JSON."""
    server = serve()
    server.reply = lambda prompt: "Unanswerable@@@x" if "v1" in prompt else _by_category(prompt)
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    items = _process("one", "two")
    received = [pickle.loads(pickle.dumps(item)) for item in items["ar"] + items["ir"]]  # noqa: S301
    scores = [item.get("caption_score") for item in received]
    assert scores == [pytest.approx(100 / 3), 0.0, 50.0, None]
    assert received[0]["judgements"][0] == {
        "category": "action",
        "question": "action of v0?",
        "answer": "yes",
        "asks": ("yes", "yes", "yes"),
        "predicted_answer": "yes",
        "verdict": "positive",
        "reply": "Yes@@@It says so.",
        "reason": None,
        "run": 0,
        "cached": False,
    }
    json.dumps(received)


def test_unreadable_replies_are_unscored_and_never_zero(
    bench: pytest.MonkeyPatch, serve: ServerFactory, logged: list[str]
) -> None:
    """Too many give nan, an error and no breakdown; below the limit they leave the denominator."""
    server = serve()
    server.reply = lambda prompt: "?" if "color of" in prompt else _by_category(prompt)
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    items = _process("one")
    assert isnan(hooks.aggregate("ar")(items["ar"]))
    assert not THIS_RUN.breakdowns
    assert any("1 of 3 questions are unscored" in line for line in logged)
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0.5")
    SESSION.close()
    items = _process("one")
    assert hooks.aggregate("ar")(items["ar"]) == 50.0
    assert hooks.aggregate("ir")(items["ir"]) == 0.0
    assert hooks.aggregate_unscored(items["unscored"]) == 1


def test_one_ask_is_a_third_of_the_requests_and_three_buy_only_the_rest(
    bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """One reply decides alone, the signature says so, and it serves a run of three requests."""
    server = serve()
    server.keep_bodies = True
    server.reply = _by_category
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_VCAPSBENCH_ASKS", "1")
    items = _process("one")
    assert hooks.aggregate("ar")(items["ar"]) == pytest.approx(100 / 3)
    assert "|protocol:1|asks:1|unscored:0/3|" in signature_of_items(items["unscored"])
    assert [(body["seed"], body["temperature"]) for body in server.bodies] == [(0, 1.0)] * 3
    bench.setenv("LMMS_CAPTIONS_VCAPSBENCH_ASKS", "3")
    SESSION.close()
    items = _process("one")
    assert hooks.aggregate("ar")(items["ar"]) == pytest.approx(100 / 3)
    assert "|asks:3|" in signature_of_items(items["unscored"])
    assert sorted(body["seed"] for body in server.bodies) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
