"""``build vcapsbench``: each filter against pairs whose faults are known."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.lmms_eval_tasks.commands.building.crew import Rehearsal
from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.vcapsbench import VCAPSBENCH
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import kept
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.benchmark import VCAPSBENCH as BENCHMARK
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

MERGE = "build_vcapsbench_merge"
CAPTION = "vcapsbench_caption.caption"
FROM_CAPTION = "build_vcapsbench_pairs_from_caption"
FROM_FRAMES = "build_vcapsbench_pairs_from_frames"
SIGHTED = "build_vcapsbench_sighted"
THING = re.compile(r"thing (\d+)")


def pair(thing: int, *, answer: str = "yes", category: str = "color", words: str = "Is") -> Any:
    """A pair about a thing; pairs about one thing ask the same."""
    return {"category": category, "question": f"{words} thing {thing} red?", "answer": answer}


class Script:
    """Models that know which pairs each road has, and what the frames show of each thing."""

    def __init__(self, caption: list[Any], frames: list[Any], **said: str | Reply) -> None:
        self.caption, self.frames, self.said = caption, frames, said
        self.shown: dict[int, str] = {}
        """Thing to what viewers say of it, where that is not yes."""

    def __call__(self, request: Request) -> str | Reply:
        """The reply to a request."""
        prompt = prompt_of(request)
        if prompt in self.said:
            return self.said[prompt]
        text = text_of(request)
        if prompt == CAPTION:
            return f"A caption of {clip_of(request)} by {request.model}."
        if prompt == FROM_CAPTION:
            return json.dumps(self.caption)
        if prompt == FROM_FRAMES:
            return json.dumps(self.frames)
        if prompt == MERGE:
            groups: dict[str, list[int]] = {}
            for each in json.loads(text[text.index("[\n") :]):
                groups.setdefault(THING.findall(each["question"])[0], []).append(each["index"])
            return json.dumps(list(groups.values()))
        return self.shown.get(int(THING.findall(text)[0]), "Yes")


def run(tmp_path: Path, script: Script, **options: Any) -> Any:
    """A build, and the crew that was asked."""
    crew = ScriptedCrew(script)
    work = work_of(VCAPSBENCH, tmp_path, crew, **options)
    done = build_all(VCAPSBENCH, work)
    return work, crew, done


def test_what_both_roads_see_stays_once(tmp_path: Path) -> None:
    """Of what was written on both roads one pair stays; one road alone, or two answers, drop it."""
    script = Script(
        caption=[pair(1), pair(2), pair(3, answer="yes")],
        frames=[pair(1, words="Can one see that"), pair(3, answer="no"), pair(4)],
    )
    work, _, done = run(tmp_path, script, clips=["one"])
    assert left(work) == ["Is thing 1 red?"]
    assert reasons(work) == {
        "Can one see that thing 1 red?": "merge: the same as another",
        "Is thing 2 red?": "merge: only one road saw it",
        "Is thing 3 red?": "merge: contradicts another pair of its clip",
        "Is thing 4 red?": "merge: only one road saw it",
    }
    assert done["merge"].head["dropped"]["merge: contradicts another pair of its clip"] == 2


def test_of_pairs_that_say_the_same_none_is_favoured(tmp_path: Path) -> None:
    """Of 30 that both roads wrote, each road's words stay for some."""
    things = range(30)
    script = Script(
        caption=[pair(thing) for thing in things],
        frames=[pair(thing, words="Can one see that") for thing in things],
    )
    work, _, _ = run(tmp_path, script, clips=["one"], per_video=30)
    n_caption = sum(question.startswith("Is") for question in left(work))
    assert len(left(work)) == 30
    assert 5 <= n_caption <= 25


def test_file_is_the_official_one(tmp_path: Path) -> None:
    """The task's reader finds every pair that was left, and no string that it leaves out."""
    pairs = [pair(1), pair(2, answer="No.", category="Camera_Movement")]
    script = Script(pairs, pairs)
    script.shown[2] = "No"
    work, _, _ = run(tmp_path, script)
    docs = BENCHMARK.read(settings_of(work), BENCHMARK.tasks["vcapsbench"])
    assert [doc["video_id"] for doc in docs] == ["one.mp4", "two.mp4"]
    for doc in docs:
        assert doc["questions"] == [
            {"category": "color", "question": "Is thing 1 red?", "answer": "yes"},
            {"category": "camera movement", "question": "Is thing 2 red?", "answer": "no"},
        ]
        assert doc["n_malformed_in_file"] == 0


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        pytest.param(
            pair(1, answer="maybe"), "form: the answer is neither yes nor no", id="another answer"
        ),
        pytest.param(
            pair(1, category="smell"), "form: a category that was not asked for", id="no category"
        ),
        pytest.param(
            {"category": "color", "question": "Thing 1 is red.", "answer": "yes"},
            "form: no question",
            id="a statement",
        ),
        pytest.param(
            {"category": "color", "question": "Is thing 1 a 5* hotel?", "answer": "yes"},
            "form: a star, which parts questions in the official file",
            id="a star",
        ),
    ],
)
def test_form(tmp_path: Path, broken: dict[str, str], reason: str) -> None:
    """A pair that the official file cannot hold, or that was not asked for, is dropped."""
    pairs = [broken, pair(2)]
    work, _, _ = run(tmp_path, Script(pairs, pairs), clips=["one"])
    assert left(work) == ["Is thing 2 red?"]
    assert reasons(work)[broken["question"]] == reason


def test_repeated_words_of_one_road_are_one_pair(tmp_path: Path) -> None:
    """The same words of two writers on one road are no second road."""
    script = Script(caption=[], frames=[pair(1), pair(2)])
    work, _, done = run(tmp_path, script, clips=["one"], writers=["a", "b"])
    assert not left(work)
    assert done["form"].head["dropped"] == {"form: the words of another question": 2}
    assert done["merge"].head["dropped"] == {"merge: only one road saw it": 2}


def test_captions_go_to_the_solvers_in_turn(tmp_path: Path) -> None:
    """Caption i is read by solver i mod n, and every writer writes from frames."""
    pairs = [pair(1)]
    work, crew, _ = run(
        tmp_path, Script(pairs, pairs), clips=["one"], writers=["a", "b", "c"], solvers=["x", "y"]
    )
    of_captions = [request for request in crew.requests if prompt_of(request) == FROM_CAPTION]
    assert [request.model for request in of_captions] == ["x", "y", "x"]
    for request, writer in zip(of_captions, "abc", strict=True):
        assert f"A caption of one by {writer}." in text_of(request)
        assert not clip_of(request)
    of_frames = [request for request in crew.requests if prompt_of(request) == FROM_FRAMES]
    assert [(request.model, clip_of(request)) for request in of_frames] == [
        (writer, "one") for writer in "abc"
    ]
    ids = [row["id"] for row in work.rows["pairs"]]
    assert len(set(ids)) == len(ids) == 6


def test_what_the_frames_do_not_show_is_dropped(tmp_path: Path) -> None:
    """A viewer that says no, or that it cannot be told, takes a pair with the answer yes out."""
    pairs = [pair(1), pair(2), pair(3)]
    script = Script(pairs, pairs)
    script.shown = {2: "No", 3: "Cannot be determined"}
    work, crew, _ = run(tmp_path, script, clips=["one"])
    assert left(work) == ["Is thing 1 red?"]
    assert reasons(work)["Is thing 2 red?"] == "sighted check: the frames show another answer"
    assert reasons(work)["Is thing 3 red?"] == "sighted check: the frames do not show the answer"
    # The further looks at one and the same request are other draws, not the same words again.
    looks = Counter(
        (request.seed, request.params["temperature"])
        for request in crew.requests
        if prompt_of(request) == SIGHTED
    )
    assert looks == {(0, 0.0): 3, (1, 0.7): 2, (2, 0.7): 2}


def test_categories_and_answers_are_balanced(tmp_path: Path) -> None:
    """Of many pairs of one category and few of others, the others stay; yes and no are even."""
    pairs = [pair(n, answer="yes" if n < 8 else "no") for n in range(12)]
    pairs += [pair(n, category=name) for n, name in [(20, "text"), (21, "blur")]]
    script = Script(pairs, pairs)
    script.shown = dict.fromkeys(range(8, 12), "No")
    work, _, _ = run(tmp_path, script, clips=["one"], per_video=6)
    rows = kept(last_rows(work))
    assert Counter(row["category"] for row in rows) == {"color": 4, "text": 1, "blur": 1}
    assert Counter(row["answer"] for row in rows) == {"yes": 3, "no": 3}


def test_own_categories(tmp_path: Path) -> None:
    """Categories of one's own are asked for by name and definition, and none of the paper's."""
    path = tmp_path / "own.yaml"
    path.write_text("rule of safety: whether one is broken\n")
    pairs = [pair(1, category="Rule of Safety"), pair(2)]
    work, crew, _ = run(tmp_path, Script(pairs, pairs), clips=["one"], categories=path)
    assert [row["category"] for row in kept(last_rows(work))] == ["rule of safety"]
    texts = [text_of(request) for request in crew.requests if "pairs" in prompt_of(request)]
    assert len(texts) == 2
    for text in texts:
        assert "- rule of safety: whether one is broken" in text
        assert "camera movement" not in text


@pytest.mark.parametrize("reply", HARD_REPLIES.values(), ids=HARD_REPLIES)
@pytest.mark.parametrize("prompt", [CAPTION, FROM_CAPTION, FROM_FRAMES, MERGE, SIGHTED])
def test_replies_that_cannot_be_read(tmp_path: Path, prompt: str, reply: str) -> None:
    """The build goes on to its end; what cannot be read is counted, or is a caption of no use."""
    pairs = [pair(1), pair(2)]
    script = Script(pairs, pairs, **{prompt: reply})
    work, crew, done = run(tmp_path, script, clips=["one"])
    failures = sum(each.head["requests"]["failures"].get("unreadable", 0) for each in done.values())
    is_caption = prompt == CAPTION and reply not in NO_CAPTIONS
    assert failures == (0 if is_caption else prompts_of(crew.requests)[prompt])
    by_words = "clips whose pairs are compared by their words alone"
    assert done["merge"].head["requests"]["faults"][by_words] == (prompt == MERGE)
    one_road = done["merge"].head["requests"]["faults"]["clips of which only one road wrote pairs"]
    assert one_road == (
        prompt in (FROM_CAPTION, FROM_FRAMES) or (failures > 0 and prompt == CAPTION)
    )
    # Without groups pairs are compared by their words, which are the same here.
    assert bool(left(work)) == (prompt == MERGE or is_caption)


def test_a_lost_caption_costs_its_road_alone(tmp_path: Path) -> None:
    """One writer without a caption leaves the other's; a road of a clip that is lost drops it."""

    def answer(request: Request) -> str | Reply:
        is_caption = prompt_of(request) == CAPTION
        if is_caption and (request.model, clip_of(request)) == ("a", "one"):
            return "unavailable"
        return script(request)

    script = Script([pair(1)], [pair(1)])
    work = work_of(VCAPSBENCH, tmp_path, ScriptedCrew(answer), writers=["a", "b"])
    done = build_all(VCAPSBENCH, work)
    assert [row["video"] for row in kept(last_rows(work))] == ["one", "two"]
    assert done["captions"].head["dropped"] == {"no readable reply: unavailable": 1}
    assert done["captions"].n_lost == 1


def test_the_pipeline_can_be_rehearsed(tmp_path: Path) -> None:
    """Typical replies are readable, every prompt is put, one question in ten is seen again."""
    asked: Counter[str] = Counter()
    crew = Rehearsal(lambda request, _reply: asked.update([prompt_of(request)]))
    work = work_of(VCAPSBENCH, tmp_path, crew, writers=["a", "b"], per_video=4)
    build_all(VCAPSBENCH, work)
    n_looks = 16 + 2 * 2
    assert asked == {CAPTION: 4, FROM_CAPTION: 4, FROM_FRAMES: 4, MERGE: 2, SIGHTED: n_looks}
    assert len(left(work)) == 8
