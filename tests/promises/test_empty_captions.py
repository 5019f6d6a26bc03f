"""A caption without words counts as one that says nothing; one that is not there is unscored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from types import ModuleType
from typing import Any

import pytest

from aggregated import signature_of_items
from conftest import ServerFactory
from judge_server import scripted_reply
from lmms_eval_captions.lmms_eval_tasks.capquiz import hooks as capquiz
from lmms_eval_captions.lmms_eval_tasks.records import PendingRecord
from lmms_eval_captions.lmms_eval_tasks.vcapsbench import hooks as vcapsbench
from lmms_eval_captions.lmms_eval_tasks.vdc import hooks as vdc
from lmms_eval_captions.lmms_eval_tasks.vdc import rouge_hooks as vdc_rouge
from lmms_eval_captions.lmms_eval_tasks.vdc import vdd_hooks as vdc_vdd
from lmms_eval_captions.lmms_eval_tasks.vidcapbench import hooks as vidcapbench
from lmms_eval_captions.model_wrappers.no_caption import NoCaption

Items = dict[str, list[PendingRecord]]
Process = Callable[[Mapping[str, object], Sequence[str]], dict[str, PendingRecord]]

N_QUESTIONS = 3
NO_CLIP = NoCaption("clip.mp4: it is cut off")


@dataclass(frozen=True)
class Case:
    """One benchmark, and what a caption that says nothing is worth by its paper."""

    hooks: ModuleType
    doc: Mapping[str, object]
    silent: Mapping[str, float]
    """Metric to its value where all captions are empty; nan where it has none."""
    verdict: str | None = None
    n_runs: int = 1
    n_questions: int = N_QUESTIONS
    main: str = ""
    """Metric whose items hold the judgements."""


def _questions(**fields: object) -> list[dict[str, object]]:
    return [{"question": f"Q{i}?", **fields} for i in range(N_QUESTIONS)]


NAN = float("nan")
VDC_DOC = {"video_id": "v", "aspect": "camera", "questions": _questions(answer="a red ball")}
CASES = {
    "vdc": Case(
        vdc,
        VDC_DOC,
        {"vdc_acc": 0.0, "vdc_score": 0.0},
        "no",
        main="vdc_acc",
    ),
    "vdc_rouge": Case(
        vdc_rouge,
        VDC_DOC,
        {"vdc_rouge": 0.0},
        None,
        main="vdc_rouge",
    ),
    "vdc_vdd": Case(
        vdc_vdd,
        {"video_id": "v", "aspect": "camera", "reference": "A red ball."},
        {"vdd_acc": 0.0, "vdd_score": 0.0},
        "no",
        n_questions=1,
        main="vdd_acc",
    ),
    "vidcapbench": Case(
        vidcapbench,
        {
            "video_id": "v",
            "video_dir": "v.mp4",
            "subset": "AE",
            "caption_format": "free",
            "questions": _questions(
                answer="red", primary_category="video motion", sub_category="object motion"
            ),
        },
        # Section 3.2: precision is of the pairs that the caption speaks of, of which there is none.
        {"acc": 0.0, "pre": NAN, "cov": 0.0},
        "neutral",
        n_runs=3,
        main="acc",
    ),
    "vcapsbench": Case(
        vcapsbench,
        {
            "video_id": "v",
            "questions": _questions(category="color", answer="yes"),
            "n_malformed_in_file": 0,
        },
        {"ar": 0.0, "ir": NAN, "cr": 0.0},
        "unanswerable",
        main="ar",
    ),
    "capquiz": Case(
        capquiz,
        {
            "video": "v",
            "domain": "Nature",
            "caption_prompt": "standard",
            "questions": _questions(
                category="Entity", options=["a", "b", "c", "d", "e"], answer="b"
            ),
        },
        {"capf1": 0.0, "capp": NAN, "capr": 0.0},
        "false_negative",
        main="capf1",
    ),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, bench: pytest.MonkeyPatch, tmp_path: Any) -> Case:
    """Each benchmark in turn."""
    bench.setenv("LMMS_CAPTIONS_T5", str(tmp_path / "no-tokenizer"))
    return CASES[request.param]


def _process(case: Case, *captions: str) -> Items:
    items: Items = {}
    process: Process = case.hooks.process_results
    for number, caption in enumerate(captions):
        key = "video" if "video" in case.doc else "video_id"
        for metric, item in process({**case.doc, key: f"v{number}"}, [caption]).items():
            items.setdefault(metric, []).append(item)
    return items


def _scores(case: Case, items: Items) -> dict[str, float]:
    return {metric: case.hooks.aggregate(metric)(items[metric]) for metric in case.silent}


@pytest.mark.parametrize("caption", ["", " \n", "...", "\u3000-\u3000"])
def test_an_empty_caption_says_nothing(
    caption: str, case: Case, bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """Nothing is sent; every question has the verdict that the paper gives to silence."""
    server = serve()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    items = _process(case, caption, caption)
    assert _scores(case, items) == pytest.approx(case.silent, nan_ok=True)
    assert server.counts.n_requests == 0
    judgements = items[case.main][0]["judgements"]
    assert isinstance(judgements, list)
    assert len(judgements) == case.n_questions * case.n_runs
    assert {judgement["verdict"] for judgement in judgements} == {case.verdict}
    assert case.hooks.aggregate_unscored(items["unscored"]) == 0
    assert json.loads(json.dumps(items[case.main][0]))["n_empty"] == 1


def test_empty_captions_are_shown_beside_the_score(
    case: Case, bench: pytest.MonkeyPatch, serve: ServerFactory, logged: list[str]
) -> None:
    """The signature and the log count them, and only where there are any."""
    server = serve()
    server.reply = scripted_reply
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    items = _process(case, "A red ball.", "", "A dog.")
    assert "|empty:1/3|unscored:0/" in signature_of_items(items["unscored"])
    assert case.hooks.aggregate_unscored(items["unscored"]) == 0
    [line] = [line for line in logged if "captions are empty" in line]
    assert line.startswith("WARNING ")
    assert "1 of 3 captions are empty, for v1;" in line
    full = _process(case, "A red ball.", "A dog.")
    assert "empty:" not in signature_of_items(full["unscored"])


def test_an_empty_caption_lowers_the_score(
    case: Case, bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """Saying nothing about one of two clips never gains, where leaving it out would."""
    server = serve()
    server.reply = scripted_reply
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    metric = next(iter(case.silent))
    aggregate = case.hooks.aggregate(metric)
    alone = aggregate(_process(case, "A red ball.")[metric])
    with_silence = aggregate(_process(case, "A red ball.", "")[metric])
    assert with_silence <= alone
    if metric not in ("capf1",):  # a harmonic mean is not linear in its counts
        assert with_silence == pytest.approx(alone / 2)


def test_a_caption_that_is_not_there_is_unscored(
    case: Case, bench: pytest.MonkeyPatch, serve: ServerFactory, logged: list[str]
) -> None:
    server = serve()
    server.reply = scripted_reply
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0.5")
    items = _process(case, "A red ball.", NO_CLIP)
    alone = _process(case, "A red ball.")
    assert _scores(case, items) == pytest.approx(_scores(case, alone), nan_ok=True)
    assert case.hooks.aggregate_unscored(items["unscored"]) == case.n_questions * case.n_runs
    record = items[case.main][1]
    assert record["reasons"] == {
        "no caption: clip.mp4: it is cut off": case.n_questions * case.n_runs
    }
    assert record["no_caption"] == "no caption: clip.mp4: it is cut off"
    assert not {"score", "caption_score"} & set(record)
    assert "empty:" not in signature_of_items(items["unscored"])
    assert not [line for line in logged if "captions are empty" in line]
    assert isnan(_scores(case, _process(case, NO_CLIP))[case.main])
    [*_, error] = [line for line in logged if "is nan" in line]
    n_questions = case.n_questions * case.n_runs
    assert f"{n_questions} of missing captions: repair the clips or add the rows" in error
    assert "Run the same command again" not in error
