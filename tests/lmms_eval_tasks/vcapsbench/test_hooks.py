"""The hooks of VCapsBench, called as lmms-eval calls them."""

from __future__ import annotations

import json
import pickle
import time
from math import isnan
from pathlib import Path
from typing import Any

import pytest

from breakdowns import kept_breakdown, plain, plain_groups
from conftest import ServerFactory
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN
from lmms_eval_captions.lmms_eval_tasks.records import PendingRecord
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.vcapsbench import hooks
from lmms_eval_captions.model_wrappers.no_caption import NoCaption
from official_files import write_vcapsbench

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
        "n_malformed": 1,
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
    assert hooks.aggregate_ar(items["ar"]) == pytest.approx(100 / 3)
    assert hooks.aggregate_ir(items["ir"]) == pytest.approx(50.0)
    assert hooks.aggregate_cr(items["cr"]) == pytest.approx(200 / 3)
    assert hooks.aggregate_unscored(items["unscored"]) == 0
    assert hooks.aggregate_signature(items["signature"]).startswith(
        "vcapsbench|judge:judge|runs:1|protocol:1|asks:3|unscored:0/6|questions:"
    )
    assert server.counts.n_requests == 2 * 3 * 3
    returned = hooks.aggregate_breakdown(items["breakdown"])
    assert returned == "written where lmms-eval saves its results"
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


def test_runs_are_consensus_scores_of_their_own(
    bench: pytest.MonkeyPatch, serve: ServerFactory, logged: list[str]
) -> None:
    """Two runs ask six times with six seeds; the mean and the deviation are of two scores."""
    server = serve()
    server.keep_bodies = True
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_JUDGE_RUNS", "2")
    first = {"n": 0}

    def reply(prompt: str) -> str:
        """Yes to the first ask of everything in the order of asking, so that runs differ."""
        first["n"] += 1
        return "Yes@@@x" if first["n"] <= 9 else "No@@@x"

    server.reply = reply
    bench.setenv("LMMS_CAPTIONS_JUDGE_CONCURRENCY", "1")
    items = _process("one")
    assert hooks.aggregate_ar(items["ar"]) == pytest.approx(50.0)
    hooks.aggregate_breakdown(items["breakdown"])
    assert any("standard deviation 50.0000 over 2 judge runs" in line for line in logged)
    seeds = [body["seed"] for body in server.bodies]
    assert sorted(seeds) == sorted([0, 1, 2, 3, 4, 5] * 3)
    overall = kept_breakdown("vcapsbench")["overall"]["all"]
    assert (overall["ar"], overall["ar_std"], overall["n_questions"]) == (50.0, 50.0, 3)


def test_unreadable_replies_are_unscored_and_never_zero(
    bench: pytest.MonkeyPatch, serve: ServerFactory, logged: list[str]
) -> None:
    """Too many give nan, an error and no breakdown; below the limit they leave the denominator."""
    server = serve()
    server.reply = lambda prompt: "?" if "color of" in prompt else _by_category(prompt)
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    items = _process("one")
    assert isnan(hooks.aggregate_ar(items["ar"]))
    breakdown = hooks.aggregate_breakdown(items["breakdown"])
    assert breakdown == "none: there is no score"
    assert not THIS_RUN.breakdowns
    assert any("1 of 3 questions are unscored" in line for line in logged)
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0.5")
    JUDGE_RUN.close()
    items = _process("one")
    assert hooks.aggregate_ar(items["ar"]) == 50.0
    assert hooks.aggregate_ir(items["ir"]) == 0.0
    assert hooks.aggregate_unscored(items["unscored"]) == 1


def test_a_missing_caption_is_unscored(bench: pytest.MonkeyPatch, serve: ServerFactory) -> None:
    """It is not sent, and leaves the denominator of the others."""
    server = serve()
    server.reply = _by_category
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0.5")
    items = _process("one", NoCaption("the clip is broken"))
    assert hooks.aggregate_ar(items["ar"]) == pytest.approx(100 / 3)
    assert hooks.aggregate_unscored(items["unscored"]) == 3
    assert server.counts.n_requests == 9
    assert not {"score", "caption_score"} & set(items["ar"][1])


def test_a_rerun_asks_nothing(bench: pytest.MonkeyPatch, serve: ServerFactory) -> None:
    """Every reply is stored: the same captions again cost no call and give the same numbers."""
    server = serve()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    before = hooks.aggregate_ar(_process("one", "two")["ar"])
    JUDGE_RUN.close()
    assert hooks.aggregate_ar(_process("one", "two")["ar"]) == before
    assert server.counts.n_requests == 18


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
    assert hooks.aggregate_ar(items["ar"]) == pytest.approx(100 / 3)
    assert "|protocol:1|asks:1|unscored:0/3|" in hooks.aggregate_signature(items["signature"])
    assert [(body["seed"], body["temperature"]) for body in server.bodies] == [(0, 1.0)] * 3
    bench.setenv("LMMS_CAPTIONS_VCAPSBENCH_ASKS", "3")
    JUDGE_RUN.close()
    items = _process("one")
    assert hooks.aggregate_ar(items["ar"]) == pytest.approx(100 / 3)
    assert "|asks:3|" in hooks.aggregate_signature(items["signature"])
    assert sorted(body["seed"] for body in server.bodies) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_a_refused_seed_is_in_the_signature_also_of_a_rerun(
    bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """Three asks stay three requests without their seeds; the store remembers why."""
    server = serve(refuses_seed=True)
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    signature = hooks.aggregate_signature(_process("one")["signature"])
    assert "|asks:3|seed:refused|unscored:0/3|" in signature
    assert server.counts.n_answered == 9
    n_before = server.counts.n_requests
    JUDGE_RUN.close()
    assert hooks.aggregate_signature(_process("one")["signature"]) == signature
    assert server.counts.n_requests == n_before


def test_one_ask_that_cannot_be_read_is_unscored_with_its_own_reason(
    bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """Nothing is said of replies that agree or not: there is one."""
    server = serve()
    server.reply = lambda _prompt: "?"
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_VCAPSBENCH_ASKS", "1")
    record = _process("one")["ar"][0].wait()
    assert record["reasons"] == {"unreadable reply, asked 4 times": 3}


def test_documents_follow_the_file(bench: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The stub becomes one document a video, with its prompt and its target."""
    ids = write_vcapsbench(tmp_path, n_videos=3, n_pairs=10)
    bench.setenv("LMMS_CAPTIONS_DATA", str(tmp_path))
    docs = hooks.process_docs([{"benchmark": "vcapsbench"}])
    assert [hooks.doc_to_target(doc) for doc in docs] == ids
    assert sum(len(doc["questions"]) for doc in docs) == 10
    prompt = hooks.doc_to_text(docs[0], {"pre_prompt": "<", "post_prompt": ">"})
    assert prompt.startswith("<Describe this video in detail, in at least 200 words")
    assert prompt.endswith(">")


@pytest.mark.parametrize("n_judged", [1, 3])
def test_malformed_strings_of_every_video_are_counted(
    n_judged: int,
    bench: pytest.MonkeyPatch,
    serve: ServerFactory,
    tmp_path: Path,
    logged: list[str],
) -> None:
    """The breakdown has the log's number, with videos that hold nothing else, and under --limit."""
    good = "color*Is it red?*yes"
    rows = [
        {"video_id": "only-malformed", "qa": ["nonsense", "color*Is it?*maybe", None]},
        {"video_id": "some", "qa": [good, "nonsense", "**"]},
        {"video_id": "none", "qa": [good]},
        {"video_id": "nothing", "qa": []},
        {"video_id": "twice", "qa": ["nonsense"]},
        {"video_id": "twice", "qa": [good]},
    ]
    path = tmp_path / "vcapsbench" / "VCapsBench_100KQA.jsonl"
    path.parent.mkdir()
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    server = serve()
    server.reply = lambda _prompt: "Yes@@@It says so."
    bench.setenv("LMMS_CAPTIONS_DATA", str(tmp_path))
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    docs: Any = hooks.process_docs([{"benchmark": "vcapsbench"}])
    assert [doc["video_id"] for doc in docs] == ["some", "none", "twice"]
    results = [hooks.process_results(doc, ["A caption."]) for doc in list(docs)[:n_judged]]
    assert hooks.aggregate_ar([items["ar"] for items in results]) == 100.0
    hooks.aggregate_breakdown([items["breakdown"] for items in results])
    assert [items["ar"]["n_malformed"] for items in results] == [2, 0, 1][:n_judged]
    assert kept_breakdown("vcapsbench")["n_malformed"] == 6
    assert any("6 of 9 strings are not category*question*answer" in line for line in logged)


def test_a_fiftieth_of_the_benchmark_is_judged_in_bounded_time(
    bench: pytest.MonkeyPatch, serve: ServerFactory, tmp_path: Path
) -> None:
    """Files of official form go through: three calls per question, all scored, numbers in range."""
    ids = write_vcapsbench(tmp_path, n_videos=114, n_pairs=2_196)
    server = serve()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_JUDGE_CONCURRENCY", "256")
    bench.setenv("LMMS_CAPTIONS_DATA", str(tmp_path))
    docs: Any = hooks.process_docs([{"benchmark": "vcapsbench"}])
    start_s = time.monotonic()
    items: Items = {}
    for doc in docs:
        for metric, item in hooks.process_results(
            doc, [f"A caption of {doc['video_id']}."]
        ).items():
            items.setdefault(metric, []).append(item)
    ar, ir, cr = (
        hooks.aggregate_ar(items["ar"]),
        hooks.aggregate_ir(items["ir"]),
        hooks.aggregate_cr(items["cr"]),
    )
    assert time.monotonic() - start_s < 30.0
    assert len(items["ar"]) == len(ids)
    # 16 questions are also asked with two captions of our own.
    assert len(server.counts.answered) == 3 * (2_196 + 16 * 2)
    assert hooks.aggregate_unscored(items["unscored"]) == 0
    assert ar == pytest.approx(cr * (1 - ir / 100))
