"""``build vidcapbench``: what is flagged, what the review does, and which subset a pair is of."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.building.card import warnings_of
from lmms_eval_captions.lmms_eval_tasks.commands.building.crew import Rehearsal
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.judged import problem_of
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.subsets import split_pairs
from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.vidcapbench import VIDCAPBENCH
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import kept
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.benchmark import VIDCAPBENCH as BENCHMARK
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

CAPTION = "vidcapbench_caption.free"
PAIRS = "build_vidcapbench_pairs"
ANSWER = "vidcapbench_answer"
JUDGE = "vidcapbench_judge"
REVIEW = "build_vidcapbench_review"
STEADY = "22222"
"""Scores of the first caption by its three seeds, then of the others."""
INCONSISTENT = "21222"
WRONG = "-----"
THING = re.compile(r"thing (\d+)")


def pair(thing: int, sub: str = "events", primary: str = "video content") -> dict[str, str]:
    """A pair about a thing."""
    return {
        "primary_category": primary,
        "sub_category": sub,
        "question": question(thing),
        "answer": "a red ball",
    }


def question(thing: int) -> str:
    """The question about a thing."""
    return f"What is thing {thing}?"


class Script:
    """Models that know how each thing is judged, and what a viewer does with a pair about it."""

    def __init__(self, *pairs: dict[str, str], **said: str) -> None:
        self.pairs, self.said = pairs, said
        self.scores: dict[int, str] = {}
        """Thing to the five scores, "-" for -1; steadily right where it is not there."""
        self.reviews: dict[int, str] = {}
        """Thing to the decision, or to the number of the thing that the question is about anew."""

    def __call__(self, request: Request) -> str | Reply:
        """The reply to a request."""
        prompt, text = prompt_of(request), text_of(request)
        if prompt in self.said:
            return self.said[prompt]
        if prompt == CAPTION:
            return f"Caption number {request.seed} of {clip_of(request)}."
        if prompt == PAIRS:
            return json.dumps(self.pairs)
        if prompt == ANSWER:
            return str(re.findall(r"Caption number \d", text)[0])
        thing = int(THING.findall(text)[-1])
        if prompt == REVIEW:
            return self.review(self.reviews.get(thing, "keep"))
        caption = int(re.findall(r"Caption number (\d)", text)[-1])
        place = request.seed if caption == 0 else caption + 2
        score = self.scores.get(thing, STEADY)[place]
        return json.dumps({"score": -1 if score == "-" else int(score), "analysis": "So it is."})

    @staticmethod
    def review(decision: str) -> str:
        """The viewer's reply."""
        if decision.isdecimal():
            return json.dumps(
                {"decision": "rewrite", "question": question(int(decision)), "answer": "a ball"}
            )
        return json.dumps({"decision": decision, "question": "What?", "answer": "a red ball"})


def run(tmp_path: Path, script: Any, **options: Any) -> Any:
    """A build, and the crew that was asked."""
    crew = ScriptedCrew(script)
    work = work_of(VIDCAPBENCH, tmp_path, crew, **{"clips": ["one"], **options})
    return work, crew, build_all(VIDCAPBENCH, work)


def in_files(work: Any) -> dict[str, list[str]]:
    """Subset to the questions that its task reads."""
    found: dict[str, list[str]] = {}
    for subset in ("ae", "he"):
        docs: Any = BENCHMARK.read(settings_of(work), BENCHMARK.tasks[f"vidcapbench_{subset}"])
        found[subset] = [each["question"] for doc in docs for each in doc["questions"]]
    return found


@pytest.mark.parametrize(
    ("verdicts", "problem"),
    [
        pytest.param(["correct"] * 5, None, id="steady"),
        pytest.param(["wrong"] * 5, "always wrong", id="always wrong"),
        pytest.param(["wrong"] * 4 + ["neutral"], None, id="once not mentioned"),
        pytest.param(["neutral"] * 5, None, id="never mentioned"),
        pytest.param(["correct", "partial", "correct", "wrong", "wrong"], "inconsistent", id="two"),
        pytest.param(["correct"] * 3 + ["wrong"] * 2, None, id="captions differ"),
        pytest.param(["correct", None, "correct", "correct", None], "not judged", id="missing"),
        pytest.param(["correct", None, "wrong", None, None], "inconsistent", id="differs anyhow"),
        pytest.param([None] * 5, "not judged", id="nothing"),
        pytest.param(["wrong"] * 3 + [None, "wrong"], "not judged", id="may be always wrong"),
        pytest.param(["wrong"] * 3 + [None, "correct"], None, id="is not always wrong"),
    ],
)
def test_problems(verdicts: list[Any], problem: str | None) -> None:
    """A pair is flagged by the first caption's three verdicts, or where all five are wrong."""
    assert problem_of(verdicts) == problem


def test_each_pair_is_judged_by_three_captions(tmp_path: Path) -> None:
    """The first caption is judged with three seeds, the others once; the last writer's they are."""
    _, crew, _ = run(tmp_path, Script(pair(1)), writers=["a", "b"])
    captions = [request for request in crew.requests if prompt_of(request) == CAPTION]
    assert [(request.model, request.seed) for request in captions] == [("b", 0), ("b", 1), ("b", 2)]
    assert {request.params["temperature"] for request in captions} == {0.7}
    assert [request.model for request in crew.requests if prompt_of(request) == PAIRS] == ["a"]
    judged = [request for request in crew.requests if prompt_of(request) == JUDGE]
    assert sorted(
        (re.findall(r"Caption number (\d)", text_of(request))[-1], request.seed, request.model)
        for request in judged
    ) == [
        ("0", 0, "solver"),
        ("0", 1, "solver"),
        ("0", 2, "solver"),
        ("1", 0, "solver"),
        ("2", 0, "solver"),
    ]


def test_inconsistent_pairs_of_motion_and_physics_are_for_people(tmp_path: Path) -> None:
    """They are HE where the review keeps them; of other dimensions they are dropped."""
    script = Script(
        pair(1, "object motion", "video motion"),
        pair(2, "common sense", "physical laws"),
        pair(3),
        pair(4, "object motion", "video motion"),
    )
    script.scores = dict.fromkeys((1, 2, 3), INCONSISTENT)
    work, _, _ = run(tmp_path, script)
    assert in_files(work) == {"ae": [question(4)], "he": [question(1), question(2)]}
    assert reasons(work) == {
        question(3): "split: judged inconsistently, and of no dimension that people grade"
    }


def test_always_wrong_pairs_are_reviewed(tmp_path: Path) -> None:
    """Kept as they are, written anew where that helps, dropped where it does not, or at once."""
    script = Script(*(pair(thing) for thing in range(1, 6)))
    script.scores = {**dict.fromkeys((1, 2, 3, 4), WRONG), 103: WRONG}
    script.reviews = {1: "keep", 2: "102", 3: "103", 4: "drop"}
    work, crew, done = run(tmp_path, script)
    assert left(work) == [question(1), question(102), question(5)]
    assert reasons(work) == {
        question(103): "review: written anew, and always wrong again",
        question(4): "review: the frames show no one right answer",
    }
    anew = kept(last_rows(work))[1]
    assert anew["was"] == {
        "question": question(2),
        "answer": "a red ball",
        "flag": "always wrong",
    }
    assert done["flagged"].head["requests"]["faults"] == {"flagged: always wrong": 4}
    assert done["review"].head["requests"]["faults"] == {"written anew": 2}
    # Five pairs and the two that were written anew.
    assert prompts_of(crew.requests)[JUDGE] == 7 * 5
    assert done["review"].head["requests"]["n_requests"] == 4 + 2 * 10


@pytest.mark.parametrize(
    ("again", "subsets"),
    [
        pytest.param(STEADY, {"ae": [1, 102, 103], "he": [2]}, id="consistent"),
        pytest.param(INCONSISTENT, {"ae": [1], "he": [2, 102]}, id="inconsistent"),
    ],
)
def test_inconsistent_pairs_that_are_written_anew(
    tmp_path: Path, again: str, subsets: dict[str, list[int]]
) -> None:
    """They are AE where they are consistent now; else HE, or dropped, by their dimension."""
    motion = ("object motion", "video motion")
    script = Script(pair(1), pair(2, *motion), pair(3, *motion), pair(4))
    script.scores = {**dict.fromkeys((2, 3, 4), INCONSISTENT), 102: again, 103: again}
    script.reviews = {2: "keep", 3: "102", 4: "103"}
    work, _, _ = run(tmp_path, script)
    assert in_files(work) == {
        subset: [question(thing) for thing in things] for subset, things in subsets.items()
    }


def test_people_take_the_place_of_the_review(tmp_path: Path) -> None:
    """With their answers nobody rewrites; what they keep is of a subset by its first judgements."""
    work = work_of(VIDCAPBENCH, tmp_path, ScriptedCrew(Script()), labels=(tmp_path / "said.jsonl",))
    names = [stage.name for stage in VIDCAPBENCH.stages(work.options)]
    assert names[-4:] == ["flagged", "people", "split", "chosen"]
    kept_by_people = [
        {"primary_category": "video motion", "flag": "inconsistent"},
        {"primary_category": "video content", "flag": "always wrong"},
        {"primary_category": "video motion"},
    ]
    assert [row["subset"] for row in split_pairs(work, kept_by_people)] == ["HE", "AE", "AE"]


def test_without_pairs_for_people_there_is_no_file_of_them(tmp_path: Path) -> None:
    """AE is read, HE is not there, and the task of HE is not named."""
    old = tmp_path / "data" / "vidcapbench" / "VidCapBench-HE_QA.jsonl"
    old.parent.mkdir(parents=True)
    old.write_text("{}")
    work, _, _ = run(tmp_path, Script(pair(1)))
    files = VIDCAPBENCH.write(work, kept(last_rows(work)))
    assert files == {"VidCapBench-AE_QA.jsonl": 1}
    assert VIDCAPBENCH.tasks_of(files) == ("vidcapbench_ae",)
    assert VIDCAPBENCH.tasks_of(["VidCapBench-AE_QA.jsonl", old.name]) == ("vidcapbench",)
    with pytest.raises(DataError, match="no file"):
        in_files(work)
    (doc,) = BENCHMARK.read(settings_of(work), BENCHMARK.tasks["vidcapbench_ae"])
    assert doc["video_id"] == "one.mp4"
    assert doc["questions"] == [pair(1)]


def test_both_files_name_every_clip(tmp_path: Path) -> None:
    """A clip whose pairs are all of one subset has none in the other, and its tokens count."""

    def answer(request: Request) -> str | Reply:
        if prompt_of(request) == PAIRS:
            motion = pair(2, "object motion", "video motion")
            return json.dumps([motion if clip_of(request) == "two" else pair(1)])
        return script(request)

    script = Script()
    script.scores = {2: INCONSISTENT}
    work, _, _ = run(tmp_path, answer, clips=["one", "two"])
    for subset, n_pairs in (("ae", [1, 0]), ("he", [1, 0])):
        docs: Any = BENCHMARK.read(settings_of(work), BENCHMARK.tasks[f"vidcapbench_{subset}"])
        assert {str(doc["video_id"]) for doc in docs} == {"one.mp4", "two.mp4"}
        assert [len(doc["questions"]) for doc in docs] == n_pairs


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        pytest.param(
            {**pair(1), "question": "Is thing 1 red?"},
            "form: the question is not open",
            id="closed",
        ),
        pytest.param(
            {**pair(1), "sub_category": "sound"},
            "form: a category that was not asked for",
            id="category",
        ),
    ],
)
def test_form(tmp_path: Path, broken: dict[str, str], reason: str) -> None:
    """A pair that is not open, or of no known sub category, is dropped before it is judged."""
    work, crew, _ = run(tmp_path, Script(broken, pair(2)))
    assert left(work) == [question(2)]
    assert reasons(work) == {broken["question"]: reason}
    assert prompts_of(crew.requests)[JUDGE] == 5


def test_a_sub_category_tells_its_dimension(tmp_path: Path) -> None:
    """Another spelling, or a wrong dimension of a sub category, is put right."""
    work, _, _ = run(tmp_path, Script(pair(1, "Object_Motion", "content")))
    (row,) = kept(last_rows(work))
    assert (row["primary_category"], row["sub_category"]) == ("video motion", "object motion")


def test_own_categories(tmp_path: Path) -> None:
    """They are asked for by dimension; a name without one is a dimension of its own."""
    path = tmp_path / "own.yaml"
    path.write_text(
        "safety/helmet: who wears one\nsafety/fire: where it burns\nlogo: which is it\n"
    )
    script = Script(pair(1, "fire", "safety"), pair(2, "logo", "logo"), pair(3))
    work, crew, _ = run(tmp_path, script, categories=path)
    (text,) = [text_of(each) for each in crew.requests if prompt_of(each) == PAIRS]
    listed = (
        "safety:\n- helmet: who wears one\n- fire: where it burns\nlogo:\n- logo: which is it\n"
    )
    assert listed in text
    assert [(row["primary_category"], row["sub_category"]) for row in kept(last_rows(work))] == [
        ("safety", "fire"),
        ("logo", "logo"),
    ]


def test_pairs_are_spread_over_sub_categories(tmp_path: Path) -> None:
    """Of many pairs of one sub category and one of another, the other stays."""
    script = Script(*(pair(thing) for thing in range(5)), pair(9, "lighting", "video aesthetics"))
    work, _, _ = run(tmp_path, script, per_video=3)
    categories = Counter(row["sub_category"] for row in kept(last_rows(work)))
    assert categories == {"events": 2, "lighting": 1}


def test_one_writer_is_warned_of(tmp_path: Path) -> None:
    """Captions of the model that wrote the pairs find its own mistakes right."""
    one = work_of(VIDCAPBENCH, tmp_path, ScriptedCrew(Script()))
    two = work_of(VIDCAPBENCH, tmp_path, ScriptedCrew(Script()), writers=["a", "b"])
    assert any("caption" in warning for warning in warnings_of(one.options))
    assert not any("caption" in warning for warning in warnings_of(two.options))


@pytest.mark.parametrize("reply", HARD_REPLIES.values(), ids=HARD_REPLIES)
@pytest.mark.parametrize("prompt", [CAPTION, PAIRS, JUDGE, REVIEW])
def test_replies_that_cannot_be_read(tmp_path: Path, prompt: str, reply: str) -> None:
    """The build goes on; what cannot be read is counted, and what it was about is dropped."""
    script = Script(pair(1), pair(2))
    script.scores = {1: WRONG}
    if prompt == CAPTION:
        # A caption of anything is one: judges may still read it.
        script.said[ANSWER] = "Caption number 0"
    script.said[prompt] = reply
    work, crew, done = run(tmp_path, script)
    failures = sum(each.head["requests"]["failures"].get("unreadable", 0) for each in done.values())
    is_caption = prompt == CAPTION and reply not in NO_CAPTIONS
    assert failures == (0 if is_caption else prompts_of(crew.requests)[prompt])
    if prompt == JUDGE:
        assert set(reasons(work).values()) == {"judged: no readable verdict"}
    elif prompt == REVIEW:
        assert left(work) == [question(2)]
        assert reasons(work) == {question(1): "review: no readable reply: unreadable"}
    elif not is_caption:
        assert not left(work)


def test_a_further_caption_that_is_missing_costs_little(tmp_path: Path) -> None:
    """Pairs that are steadily right by the first caption stay; one that may be always wrong not."""

    def answer(request: Request) -> str | Reply:
        return "" if prompt_of(request) == CAPTION and request.seed == 2 else script(request)

    script = Script(pair(1), pair(2))
    script.scores = {2: WRONG}
    work, _, done = run(tmp_path, answer)
    assert left(work) == [question(1)]
    assert reasons(work) == {question(2): "judged: no readable verdict"}
    assert done["captions"].head["requests"]["faults"] == {"caption: empty": 1}


def test_the_pipeline_can_be_rehearsed(tmp_path: Path) -> None:
    """Typical replies are readable, every prompt is put, one pair in ten is reviewed."""
    asked: Counter[str] = Counter()
    crew = Rehearsal(lambda request, _reply: asked.update([prompt_of(request)]))
    work = work_of(VIDCAPBENCH, tmp_path, crew, per_video=20)
    build_all(VIDCAPBENCH, work)
    n_judged = 2 * (20 + 2) * 5
    assert asked == {CAPTION: 6, PAIRS: 2, ANSWER: n_judged, JUDGE: n_judged, REVIEW: 4}
