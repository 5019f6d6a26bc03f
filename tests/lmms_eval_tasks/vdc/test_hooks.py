"""The hooks of VDC, called as lmms-eval calls them."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from aggregated import signature_of_items
from breakdowns import kept_breakdown, plain_groups
from conftest import ServerFactory
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import read_settings
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.records import PendingRecord
from lmms_eval_captions.lmms_eval_tasks.vdc import hooks, rouge_hooks
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import read_questions

Items = dict[str, list[PendingRecord]]


def _doc(video: str = "clip", n: int = 3) -> dict[str, object]:
    questions = [{"question": f"Q{i}?", "answer": f"A{i}", "category": ""} for i in range(n)]
    return {"video_id": video, "aspect": "camera", "questions": questions}


def _process(*captions: str, n: int = 3) -> Items:
    items: Items = {}
    for number, caption in enumerate(captions):
        for metric, item in hooks.process_results(_doc(f"clip{number}", n), [caption]).items():
            items.setdefault(metric, []).append(item)
    return items


def test_submitting_does_not_wait_and_aggregating_does(
    bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """A slow judge holds up nothing until the numbers are asked for; then all are there."""
    server = serve(latency_s=0.3)
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    items = _process("one", "two", "three", "four")
    assert items["vdc_acc"] == [{}, {}, {}, {}]
    assert 0.0 <= hooks.aggregate("vdc_acc")(items["vdc_acc"]) <= 100.0
    assert 0.0 <= hooks.aggregate("vdc_score")(items["vdc_score"]) <= 5.0
    assert hooks.aggregate_unscored(items["unscored"]) == 0
    assert signature_of_items(items["unscored"]).startswith(
        "vdc_camera|judge:judge|runs:1|protocol:1|unscored:0/12|captions:aspect|questions:"
    )
    assert server.counts.most_in_flight == 12
    assert server.counts.n_requests == 24
    record: dict[str, Any] = items["vdc_acc"][0]
    assert {j["verdict"] for j in record["judgements"]} <= {"yes", "no"}
    assert json.loads(json.dumps(record)) == record


def test_a_temperature_of_ones_own_is_sent_and_in_the_signature(
    bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """Both steps go out with it, its replies are stored apart, and the timeout moves nothing."""
    server = serve()
    server.keep_bodies = True
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    plain = signature_of_items(_process("one")["unscored"])
    assert "temperature" not in plain
    bench.setenv("LMMS_CAPTIONS_JUDGE_TIMEOUT", "33")
    SESSION.close()
    assert signature_of_items(_process("one")["unscored"]) == plain
    n_before = len(server.bodies)
    bench.setenv("LMMS_CAPTIONS_JUDGE_TEMPERATURE", "1")
    SESSION.close()
    warm = signature_of_items(_process("one")["unscored"])
    assert "|protocol:1|temperature:1|unscored:0/3|" in warm
    assert [body["temperature"] for body in server.bodies[n_before:]] == [1.0] * n_before


def test_settings_are_read_at_the_first_judge_call(
    bench: pytest.MonkeyPatch, serve: ServerFactory, tmp_path: Path
) -> None:
    """A server that is started after captioning is found, though documents were made before."""
    folder = tmp_path / "data" / "vdc" / "VDCScore_qa"
    folder.mkdir(parents=True)
    row = {"clip": _doc()["questions"]}
    (folder / "camera.jsonl").write_text(json.dumps(row))
    bench.setenv("LMMS_CAPTIONS_DATA", str(tmp_path / "data"))
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", "http://127.0.0.1:9/v1")
    docs = hooks.process_docs([{"aspect": "camera"}])
    assert docs[0]["video_id"] == "clip"
    assert hooks.doc_to_text(docs[0]) == "Describe any camera zooms, pans, or angle changes."
    server = serve()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    items = hooks.process_results(docs[0], ["A pan."])
    assert 0 <= hooks.aggregate("vdc_acc")([items["vdc_acc"]]) <= 100
    assert server.counts.n_requests == 6


def test_rouge_needs_one_request_a_question(
    bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """The answer is the judge's, the match is counted in words."""
    server = serve()
    server.reply = lambda prompt: "a1" if "question: Q1?" in prompt else "nothing of the kind"
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    items = rouge_hooks.process_results(_doc(), ["a caption"])
    assert rouge_hooks.aggregate("vdc_rouge")([items["vdc_rouge"]]) == pytest.approx(100 / 3)
    assert server.counts.n_requests == 3
    assert "matching:rouge-l" in signature_of_items([items["unscored"]])


def test_the_breakdown_is_by_aspect_and_category(
    bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """A category's number is a mean over the videos that have such questions, as counted here."""
    rng = random.Random(3)
    said = {
        f"v{video}q{number}": rng.choice(
            [(yes, score) for yes in ("yes", "no") for score in (1, 4)]
        )
        for video in range(6)
        for number in range(5)
    }
    kinds = {name: rng.choice(["object", "Object'", "time", ""]) for name in said}
    unread = rng.choice(list(said))

    def reply(prompt: str) -> str:
        name: str = re.findall(r"v\d+q\d+", prompt)[-1]
        if "yes/no" not in prompt:
            return name
        verdict, score = said[name]
        return "?" if name == unread else f"{{'pred': '{verdict}', 'score': {score}}}"

    server = serve()
    server.reply = reply
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0.1")
    items: Items = {}
    for video in range(6):
        names = [name for name in said if name.startswith(f"v{video}q")]
        pairs = [{"question": name, "answer": name, "category": kinds[name]} for name in names]
        doc = {"video_id": f"v{video}", "aspect": "camera", "questions": pairs}
        for metric, item in hooks.process_results(doc, ["A caption."]).items():
            items.setdefault(metric, []).append(item)
    hooks.aggregate("vdc_acc")(items["vdc_acc"])
    breakdown = kept_breakdown("vdc_camera")

    plain = {name: kind.lower().strip("'") or "none" for name, kind in kinds.items()}
    for kind in ("object", "time", "none", None):
        videos: dict[str, list[str]] = {}
        for name in said:
            if plain[name] == (kind or plain[name]):
                videos.setdefault(name[:2], []).append(name)
        n_questions = sum(map(len, videos.values()))
        scored = [[said[name] for name in names if name != unread] for names in videos.values()]
        expected = {
            "vdc_acc": 100 * fmean(fmean(v == "yes" for v, _ in s) for s in scored if s),
            "vdc_score": fmean(fmean(score for _, score in s) for s in scored if s),
            "n_questions": n_questions,
            "n_unscored": sum(unread in names for names in videos.values()),
        }
        if kind is None:
            assert plain_groups(breakdown["overall"])["all"] == pytest.approx(expected)
            assert plain_groups(breakdown["aspects"]) == {"camera": pytest.approx(expected)}
        else:
            assert plain_groups(breakdown["categories"])[kind] == pytest.approx(expected)
    assert hooks.aggregate("vdc_acc")(items["vdc_acc"]) == breakdown["overall"]["all"]["vdc_acc"]


def test_captions_are_saved_before_they_are_judged(
    bench: pytest.MonkeyPatch, tmp_path: Path, logged: list[str]
) -> None:
    """The file holds every caption unchanged and its path is logged, whatever the judge does."""
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", "https://judge.example/v1")
    bench.delenv("OPENAI_API_KEY", raising=False)
    captions = ["{braces} 'and' \"quotes\"\nand lines", "一只狗 🐕"]
    _process(*captions)
    saved = next((tmp_path / "cache" / "captions").glob("*.jsonl"))
    rows = [json.loads(line) for line in saved.read_text().splitlines()]
    assert [row["caption"] for row in rows] == captions
    assert {(row["task"], row["aspect"]) for row in rows} == {("vdc_camera", "camera")}
    assert any(str(saved) in line for line in logged)


def test_real_questions_are_those_that_the_paper_counts(shared_data: Path, tmp_path: Path) -> None:
    """96,825 pairs over 1,027 videos; main_object repeats four ids and lacks two videos."""
    (tmp_path / "vdc").mkdir()
    (tmp_path / "vdc" / "VDCScore_qa").symlink_to(shared_data / "vdc_qa")
    settings = read_settings({"LMMS_CAPTIONS_DATA": str(tmp_path)})
    counts = {
        aspect: (len(pairs), sum(map(len, pairs.values())))
        for aspect in ("camera", "short", "background", "main_object", "detailed")
        for pairs in [read_questions(settings, aspect)]
    }
    assert counts == {
        "camera": (1027, 19112),
        "short": (1027, 19512),
        "background": (1027, 19156),
        "main_object": (1025, 19234),
        "detailed": (1027, 19811),
    }


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param('{"clip": [{"question": "Q?"}]}', "'question' and 'answer'", id="no-answer"),
        pytest.param('{"clip": "text"}', "list of question-answer pairs", id="no-list"),
        pytest.param('{"clip": [{"question": "Q?", "answer": 3}]}', "expected text", id="number"),
        pytest.param('{"clip": [', "line 1", id="broken-line"),
        pytest.param("", "at least one video", id="empty-file"),
    ],
)
def test_a_broken_file_is_an_error_that_names_the_place(
    line: str, words: str, tmp_path: Path
) -> None:
    """The error names the file, the row and what is wrong with it."""
    folder = tmp_path / "vdc" / "VDCScore_qa"
    folder.mkdir(parents=True)
    (folder / "short.jsonl").write_text(line)
    with pytest.raises(DataError, match=words) as error:
        read_questions(read_settings({"LMMS_CAPTIONS_DATA": str(tmp_path)}), "short")
    assert "short.jsonl" in str(error.value)
