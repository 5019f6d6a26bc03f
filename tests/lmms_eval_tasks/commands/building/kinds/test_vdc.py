"""``build vdc``: both turns of the conversation, and each filter against known faults."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.lmms_eval_tasks.commands.building.crew import Rehearsal
from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.vdc import VDC
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import kept
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import VDC as BENCHMARK
from lmms_eval_captions.lmms_eval_tasks.vdc.references import read_references
from lmms_eval_captions.model_wrappers.caption_files.columns import ASPECTS
from scripted_build import (
    HARD_REPLIES,
    NO_CAPTIONS,
    build_all,
    clip_of,
    last_rows,
    left,
    prompt_of,
    prompts_of,
    reasons,
    settings_of,
    work_of,
)
from scripted_crew import ScriptedCrew, text_of

FIRST = "build_vdc_captions.first"
SECOND = "build_vdc_captions.second"
PAIRS = "build_vdc_pairs"
SIGHTED = "build_vdc_sighted"
NAMES = ("short", "background", "main object", "camera", "reference")


class Script:
    """Models that write one pair of each caption, which names the caption and the clip."""

    def __init__(self, *further: tuple[str, str], **said: str) -> None:
        self.further, self.said = further, said

    def __call__(self, request: Request) -> str | Reply:
        """The reply to a request."""
        prompt, text, clip = prompt_of(request), text_of(request), clip_of(request)
        if prompt in self.said:
            return self.said[prompt]
        if prompt == FIRST:
            return str({f"{name} caption": f"The {name} of {clip}." for name in NAMES})
        if prompt == SECOND:
            return f"The detailed of {clip}."
        if prompt == PAIRS:
            about = re.search(r"detailed description: The (.*)\.", text)
            return str(
                [(f"What is the {about[1] if about else 'rest'}?", "A thing"), *self.further]
            )
        return "No" if "wrong" in text.rpartition("Question:")[2] else "Yes"


def run(tmp_path: Path, script: Any, **options: Any) -> Any:
    """A build, and the crew that was asked."""
    crew = ScriptedCrew(script)
    work = work_of(VDC, tmp_path, crew, **options)
    return work, crew, build_all(VDC, work)


def test_files_are_the_official_ones(tmp_path: Path) -> None:
    """Each aspect's task reads the pairs that were written of its caption, and the references."""
    work, _, _ = run(tmp_path, Script())
    for aspect in ASPECTS:
        docs = BENCHMARK.read(settings_of(work), BENCHMARK.tasks[f"vdc_{aspect}"])
        words = aspect.replace("_", " ")
        assert {str(doc["video_id"]): doc["questions"] for doc in docs} == {
            clip: [
                {"question": f"What is the {words} of {clip}?", "answer": "A thing", "category": ""}
            ]
            for clip in ("one", "two")
        }
        assert read_references(settings_of(work), aspect) == {
            clip: f"The {words} of {clip}." for clip in ("one", "two")
        }
    assert VDC.tasks_of(VDC.write(work, kept(last_rows(work)))) == ("vdc_score",)


def test_second_turn_goes_on_with_the_first(tmp_path: Path) -> None:
    """The detailed caption is asked for behind the first reply, with its captions and frames."""
    _, crew, _ = run(tmp_path, Script(), clips=["one"])
    first, second = crew.requests[:2]
    assert [message["role"] for message in second.messages] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert list(second.messages[:2]) == list(first.messages)
    assert clip_of(second) == "one"
    assert "The background of one." in str(second.messages[2]["content"])
    assert "5.Reference Caption: The reference of one." in str(second.messages[3]["content"])


def test_without_a_second_turn_the_reference_stands_for_detailed(tmp_path: Path) -> None:
    """A second reply that is a loop leaves the first one's reference caption, and is counted."""
    work, _, done = run(tmp_path, Script(**{SECOND: HARD_REPLIES["loop"]}), clips=["one"])
    assert read_references(settings_of(work), "detailed") == {"one": "The reference of one."}
    faults = done["captions"].head["requests"]["faults"]
    assert faults == {
        "detailed caption: repeats itself, the reference caption is taken": 1,
    }


def test_without_a_first_turn_the_clip_is_dropped(tmp_path: Path) -> None:
    """A first reply that has not all captions costs its clip alone, and nothing more is asked."""

    def answer(request: Request) -> str | Reply:
        if prompt_of(request) == FIRST and clip_of(request) == "one":
            return "{'short caption': 'A dog.'}"
        return script(request)

    script = Script()
    work, crew, done = run(tmp_path, answer)
    assert {row["video"] for row in kept(last_rows(work))} == {"two"}
    assert done["captions"].head["dropped"] == {"no readable reply: not the five captions": 1}
    assert prompts_of(crew.requests) == {FIRST: 2, SECOND: 1, PAIRS: 5, SIGHTED: 5}


@pytest.mark.parametrize(
    ("question", "answer", "reason"),
    [
        pytest.param("Is it red?", "It is.", "form: the question is not open", id="closed"),
        pytest.param("What is wrong", "It.", "form: no question", id="a statement"),
        pytest.param("What is it?", "Yes.", "form: the answer is yes or no alone", id="yes"),
        pytest.param("What is it?", "a " * 41, "form: the answer is not short", id="long"),
        pytest.param(
            "What is wrong?", "This", "sighted check: the frames show another answer", id="wrong"
        ),
    ],
)
def test_filters(tmp_path: Path, question: str, answer: str, reason: str) -> None:
    """A pair that is not open, or whose answer is wrong, is dropped for that."""
    work, _, _ = run(tmp_path, Script((question, answer)), clips=["one"])
    assert len(left(work)) == len(ASPECTS)
    assert reasons(work) == {question: reason}


def test_pairs_are_limited_per_aspect(tmp_path: Path) -> None:
    """At most so many pairs of each aspect stay; the same words may stand in two aspects."""
    further = [(f"Where is thing {n}?", "There") for n in range(4)] + [
        ("Where is thing 0?", "there")
    ]
    work, crew, done = run(tmp_path, Script(*further), per_video=3)
    rows = kept(last_rows(work))
    assert Counter((row["video"], row["aspect"]) for row in rows) == dict.fromkeys(
        [(clip, aspect) for clip in ("one", "two") for aspect in ASPECTS], 3
    )
    assert done["form"].head["dropped"] == {"form: the words of another question": 10}
    assert "generating 3 question-answer pairs" in text_of(
        next(request for request in crew.requests if prompt_of(request) == PAIRS)
    )


def test_an_aspect_without_pairs_has_no_file(tmp_path: Path) -> None:
    """Its file, that of an earlier build too, is not there, and its task is not named."""

    def answer(request: Request) -> str | Reply:
        is_camera = prompt_of(request) == PAIRS and "The camera of" in text_of(request)
        return "I see no pairs." if is_camera else script(request)

    script = Script()
    old = tmp_path / "data" / "vdc" / "VDCScore_qa" / "camera.jsonl"
    old.parent.mkdir(parents=True)
    old.write_text(json.dumps({"old": []}))
    work, _, _ = run(tmp_path, answer)
    assert not old.exists()
    files = VDC.write(work, kept(last_rows(work)))
    assert VDC.tasks_of(files) == ("vdc_short", "vdc_background", "vdc_main_object", "vdc_detailed")


def test_own_categories_are_refused(tmp_path: Path) -> None:
    """The aspects are fixed."""
    with pytest.raises(SettingsError, match="fixed aspects"):
        run(tmp_path, Script(), categories=tmp_path / "own.yaml")


@pytest.mark.parametrize("reply", HARD_REPLIES.values(), ids=HARD_REPLIES)
@pytest.mark.parametrize("prompt", [FIRST, SECOND, PAIRS, SIGHTED])
def test_replies_that_cannot_be_read(tmp_path: Path, prompt: str, reply: str) -> None:
    """The build goes on to its end; what cannot be read is counted, or is a caption of no use."""
    work, crew, done = run(tmp_path, Script(**{prompt: reply}), clips=["one"])
    failures = sum(each.head["requests"]["failures"].get("unreadable", 0) for each in done.values())
    is_caption = prompt == SECOND and reply not in NO_CAPTIONS
    assert failures == (0 if is_caption else prompts_of(crew.requests)[prompt])
    if prompt == SECOND:
        assert {"camera", "short"} <= {row["aspect"] for row in kept(last_rows(work))}
    else:
        assert not left(work)


def test_the_pipeline_can_be_rehearsed(tmp_path: Path) -> None:
    """Typical replies are readable, every prompt is put, one question in ten is seen again."""
    asked: Counter[str] = Counter()
    crew = Rehearsal(lambda request, _reply: asked.update([prompt_of(request)]))
    work = work_of(VDC, tmp_path, crew, per_video=4)
    build_all(VDC, work)
    assert asked == {FIRST: 2, SECOND: 2, PAIRS: 10, SIGHTED: 40 + 2 * 40 // 10}
    assert len(left(work)) == 40
