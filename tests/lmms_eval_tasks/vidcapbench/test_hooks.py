"""The hooks of VidCapBench, called as lmms-eval calls them."""

from __future__ import annotations

import json
import random
from math import isnan, nan
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import pytest
from datasets import Dataset

from aggregated import signature_of_items
from breakdowns import kept_breakdown
from conftest import ServerFactory
from lmms_eval_captions.cli.main import main
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols.prompt import read_yaml
from lmms_eval_captions.judges.settings import VIDCAPBENCH_FORMATS
from lmms_eval_captions.lmms_eval_tasks.vidcapbench import hooks
from vidcapbench_files import CATEGORIES, write_files

Items = dict[str, list[Any]]

METRICS = ("acc", "pre", "cov", "con")

PAIRS = [
    {
        "question": f"Q{n}?",
        "answer": f"A{n}",
        "primary_category": primary,
        "sub_category": sub,
    }
    for n, (primary, sub) in enumerate([*CATEGORIES["AE"][::5], *CATEGORIES["HE"][::5]])
]


@pytest.fixture
def bench(bench: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """The shared one, without a tokenizer."""
    bench.setenv("LMMS_CAPTIONS_T5", str(tmp_path / "no-tokenizer"))
    bench.delenv("LMMS_CAPTIONS_VIDCAPBENCH_FORMAT", raising=False)
    return bench


def _doc(number: int = 0, subset: str = "AE") -> dict[str, object]:
    return {
        "video_id": f"clip{number}.mp4",
        "video_dir": f"x/clip{number}.mp4",
        "subset": subset,
        "caption_format": "free",
        "questions": PAIRS,
    }


def _process(*captions: str, subset: str = "AE") -> Items:
    items: Items = {}
    for number, text in enumerate(captions):
        for metric, item in hooks.process_results(_doc(number, subset), [text]).items():
            items.setdefault(metric, []).append(item)
    return items


def _scripted(*scores: int) -> Any:
    """A judge that gives the question Qn the n-th score, and answers with the question's name."""

    def reply(prompt: str) -> str:
        # The last "Question:" of either prompt is the slot; instructions come before it.
        question = prompt.rpartition("Question:")[2].partition("Q")[2].partition("?")[0]
        if prompt.endswith("Your Result:"):
            return json.dumps({"score": scores[int(question)], "analysis": "2, 1, 0 or -1"})
        return f"Answer {question}"

    return reply


def test_the_numbers_are_micro_over_pairs(
    bench: pytest.MonkeyPatch, serve: ServerFactory, shared_data: Path
) -> None:
    """Known grades give the numbers worked by hand, overall and in the breakdown's file."""
    server = serve()
    server.reply = _scripted(2, 1, 0, -1)
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_T5", str(shared_data / "t5"))
    items = _process("Hello there", "Hello")
    assert hooks.aggregate("acc")(items["acc"]) == 25.0
    hooks.aggregate("acc")(items["acc"])
    assert hooks.aggregate("pre")(items["pre"]) == pytest.approx(200 / 3)
    assert hooks.aggregate("cov")(items["cov"]) == 75.0
    assert hooks.aggregate("con")(items["con"]) == pytest.approx(100 * 25 / 2.5)
    assert [item["caption_score"] for item in items["acc"]] == [25.0, 25.0]
    assert [item["score"] for item in items["acc"]] == [25.0, 25.0]
    assert items["con"][0]["fields"]["n_tokens"] == 3
    assert items["con"][0]["caption_score"] == pytest.approx(100 * 25 / 3)
    breakdown = kept_breakdown("vidcapbench_ae")
    assert breakdown["mean_tokens"] == 2.5
    assert breakdown["runs"] == [{m: breakdown["overall"]["all"][m] for m in METRICS}] * 3
    aesthetics = breakdown["dimensions"]["video aesthetics"]
    assert (aesthetics["n_questions"], aesthetics["acc"], aesthetics["acc_std"]) == (2, 100.0, 0.0)
    assert aesthetics["con"] == pytest.approx(4000.0)
    assert breakdown["dimensions"]["physical laws"]["pre"] == 0.0
    motion = breakdown["sub_categories"]["body movements"]
    assert (motion["pre"], motion["cov"]) == (None, 0.0)
    assert list(breakdown["dimensions"]) == [
        "video aesthetics",
        "video content",
        "video motion",
        "physical laws",
    ]
    assert "judged automatically" in breakdown["note"]


def test_runs_differ_by_their_seed_and_are_averaged(
    bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """Three runs with seeds 0, 1 and 2 are asked; mean and deviation are kept."""
    server = serve()
    server.keep_bodies = True
    moods = random.Random(0)

    def moody(prompt: str) -> str:
        return str(_scripted(*[moods.choice((2, 1, 0, -1))] * 4)(prompt))

    server.reply = moody
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    items = _process("one", "two")
    acc = hooks.aggregate("acc")(items["acc"])
    hooks.aggregate("acc")(items["acc"])
    assert {body["seed"] for body in server.bodies} == {0, 1, 2}
    breakdown = kept_breakdown("vidcapbench_ae")
    runs = [run["acc"] for run in breakdown["runs"]]
    assert len(runs) == 3
    assert len(set(runs)) > 1
    assert acc == pytest.approx(fmean(runs))
    assert breakdown["overall"]["all"]["acc_std"] == pytest.approx(pstdev(runs))


def test_without_a_tokenizer_only_con_is_missing(
    bench: pytest.MonkeyPatch, serve: ServerFactory, logged: list[str], tmp_path: Path
) -> None:
    """``con`` is nan with the reason in the log and the samples; ``check`` finds no fault."""
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", serve().url)
    items = _process("one")
    assert isnan(hooks.aggregate("con")(items["con"]))
    assert 0 <= hooks.aggregate("acc")(items["acc"]) <= 100
    assert any(
        line.startswith("INFO con is not computed (N/A), all other metrics stand: ")
        and "`hf download google/flan-t5-base spiece.model`" in line
        for line in logged
    )
    assert "LMMS_CAPTIONS_T5" in str(items["con"][0]["fields"]["con_reason"])
    assert "score" not in items["con"][0]
    assert "caption_score" not in items["con"][0]
    signature = signature_of_items(items["unscored"])
    assert "|con:unavailable|" in signature
    for metrics, text, status in (
        ({"con,none": nan, "acc,none": 1.0}, signature, 0),
        ({"con,none": nan, "acc,none": nan}, signature, 1),
        ({"con,none": nan}, signature.replace("con:unavailable|", ""), 1),
    ):
        path = tmp_path / "1_results.json"
        ours = {"tasks": {"vidcapbench_ae": {"signature": text}}}
        document = {"results": {"vidcapbench_ae": metrics}, "lmms_eval_captions": ours}
        path.write_text(json.dumps(document))
        assert main(["check", str(path)]) == status


def _judge_subset(captions: dict[str, str], subset: str) -> Items:
    """The items of a subset's documents; a video that is not named has the caption "Hello"."""
    items: Items = {}
    for doc in hooks.process_docs(Dataset.from_list([{"subset": subset}])):
        text = captions.get(doc["video_id"], "Hello")
        for metric, item in hooks.process_results(doc, [text]).items():
            items.setdefault(metric, []).append(item)
    return items


def test_an_empty_caption_has_the_token_of_its_end_and_one_not_at_hand_has_none(
    bench: pytest.MonkeyPatch, serve: ServerFactory, shared_data: Path, tmp_path: Path
) -> None:
    """A caption that says nothing shortens the mean; one whose tokens are not known leaves it."""
    root = tmp_path / "data"
    write_files(root, n_videos=4, n_pairs={"HE": 3}, n_empty=1)
    bench.setenv("LMMS_CAPTIONS_DATA", str(root))
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", serve().url)
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0.5")
    bench.setenv("LMMS_CAPTIONS_T5", str(shared_data / "t5" / "spiece.model"))
    items = _judge_subset({"Clip_0.mp4": " ", "Clip_1.mp4": ""}, "HE")
    con, acc = hooks.aggregate("con")(items["con"]), hooks.aggregate("acc")(items["acc"])
    assert [item["fields"]["n_tokens"] for item in items["con"]] == [1, 2, 2, 1]
    assert con == pytest.approx(100 * acc / 1.5)
    items["con"][0]["fields"]["n_tokens"] = None
    assert hooks.aggregate("con")(items["con"]) == pytest.approx(100 * acc / (5 / 3))


def test_documents_videos_and_prompts(
    bench: pytest.MonkeyPatch, tmp_path: Path, logged: list[str]
) -> None:
    """Documents come from the official file; AE and HE say whom they are meant for."""
    root = tmp_path / "data"
    write_files(root, n_videos=5, n_pairs={"AE": 9, "HE": 6}, n_empty=1)
    bench.setenv("LMMS_CAPTIONS_DATA", str(root))
    docs = {s: hooks.process_docs(Dataset.from_list([{"subset": s}])) for s in ("AE", "HE")}
    assert [len(doc["questions"]) for doc in docs["AE"]] == [3, 2, 2, 2, 0]
    doc = docs["HE"][0]
    assert (doc["video_id"], doc["video_dir"]) == ("Clip_1.mp4", "VidCapBench_videos/Clip_1.mp4")
    assert hooks.doc_to_target(doc) == "Clip_1.mp4"
    assert hooks.doc_to_text(doc) == "Describe the video in detail."
    assert hooks.doc_to_text(doc, {"pre_prompt": "A ", "post_prompt": " Z"}) == (
        "A Describe the video in detail. Z"
    )
    assert any("INFO" in line and "judged automatically" in line for line in logged)
    assert any("WARNING" in line and "judged by people" in line for line in logged)
    with pytest.raises(DataError, match="Clip_1"):
        hooks.doc_to_visual(doc)


@pytest.mark.parametrize("name", VIDCAPBENCH_FORMATS)
def test_every_caption_format_can_be_chosen(
    name: str, bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The variable picks the prompt, and the signature says which it was."""
    root = tmp_path / "data"
    write_files(root, n_videos=2, n_pairs={"AE": 2}, n_empty=0)
    bench.setenv("LMMS_CAPTIONS_DATA", str(root))
    bench.setenv("LMMS_CAPTIONS_VIDCAPBENCH_FORMAT", name)
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    doc = hooks.process_docs(Dataset.from_list([{"subset": "AE"}]))[0]
    assert hooks.doc_to_text(doc) == str(read_yaml("vidcapbench_caption")[name])
    items = hooks.process_results(doc, ["A man walks."])
    assert f"|format:{name}|" in signature_of_items([items["unscored"]])
