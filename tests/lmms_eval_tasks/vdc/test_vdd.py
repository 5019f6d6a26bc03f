"""VDD: one grade of a whole caption against the whole reference caption."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aggregated import signature_of_items
from breakdowns import kept_breakdown
from conftest import ServerFactory
from lmms_eval_captions.judges.protocols.prompt import Prompts
from lmms_eval_captions.lmms_eval_tasks.judge_check import (
    anchors_of,
    choose_questions,
    examples_of,
)
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.vdc import vdd_hooks as hooks
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import VDD

REFERENCES = {f"v{n}": f"A dog number {n} runs over the grass." for n in range(4)}


@pytest.fixture
def documents(bench: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    (tmp_path / "data" / "vdc").mkdir(parents=True)
    rows = (
        json.dumps({"video_id": video, "camera_caption": text})
        for video, text in REFERENCES.items()
    )
    (tmp_path / "data" / "vdc" / "VDC_1k.jsonl").write_text("\n".join(rows))
    bench.setenv("LMMS_CAPTIONS_DATA", str(tmp_path / "data"))
    return list(hooks.process_docs([{"aspect": "camera"}]))


def test_one_request_asks_for_the_whole_caption(
    bench: pytest.MonkeyPatch, serve: ServerFactory, documents: list[dict[str, Any]]
) -> None:
    """The judge gets both captions unchanged; accuracy and score are means over videos."""
    server = serve()
    server.keep_bodies = True
    server.reply = lambda prompt: str(
        {
            "pred": "yes" if "number 1" in prompt else "no",
            "score": 4.5 if "number 1" in prompt else 1,
        }
    )
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    items: dict[str, list[Any]] = {}
    for doc in documents:
        for name, item in hooks.process_results(doc, ["A {{reference}}: 'dog'\n runs."]).items():
            items.setdefault(name, []).append(item)
    assert hooks.aggregate("vdd_acc")(items["vdd_acc"]) == 25.0
    assert hooks.aggregate("vdd_score")(items["vdd_score"]) == (4.5 + 3) / 4
    sent = [body["messages"][-1]["content"] for body in server.bodies]
    assert len(sent) == 4
    assert all(text.endswith("Candidate caption: A {{reference}}: 'dog'\n runs.") for text in sent)
    assert {text.split("Reference caption: ")[1].partition("\n")[0] for text in sent} == set(
        REFERENCES.values()
    )


def test_the_numbers_say_that_the_prompt_is_ours(
    bench: pytest.MonkeyPatch, documents: list[dict[str, Any]], logged: list[str]
) -> None:
    """In the signature, and as a note in the breakdown and before captioning."""
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    items = hooks.process_results(documents[0], ["A dog number 0 runs over the grass."])
    assert "|default_prompt:ours|" in signature_of_items([items["unscored"]])
    hooks.aggregate("vdd_acc")([items["vdd_acc"]])
    assert "is ours" in str(THIS_RUN.breakdowns["vdc_vdd_camera"]["note"])
    assert kept_breakdown("vdc_vdd_camera")["overall"]["all"]["vdd_acc"] == 100.0
    hooks.process_docs([{"aspect": "camera"}])
    assert any("prints no prompt for VDD" in line for line in logged)


def test_its_judge_is_tried_with_captions_of_ours(documents: list[dict[str, Any]]) -> None:
    """The reference itself, and one that says nothing; the prompt's example is known."""
    check = VDD.judge_check
    assert check is not None
    questions = choose_questions(check, map(VDD.questions, documents))
    assert [caption for _, caption in anchors_of(check, questions)][::2] == list(
        REFERENCES.values()
    )
    assert examples_of(Prompts(), ("vdc_vdd",)) == ("{pred:yes,score:4}",)
