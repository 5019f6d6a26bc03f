"""``build capquiz``: each filter against questions whose faults are known."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_captions.judges.endpoint.request import Request
from lmms_eval_captions.judges.errors import (
    DataError,
    JudgeRequestError,
    JudgeStoppedError,
    JudgeUnavailableError,
)
from lmms_eval_captions.judges.protocols.letters import LETTERS
from lmms_eval_captions.judges.settings import JudgeSettings, read_judge_settings, read_settings
from lmms_eval_captions.lmms_eval_tasks.capquiz.benchmark import CAPQUIZ as BENCHMARK
from lmms_eval_captions.lmms_eval_tasks.commands.building.building import Built, build
from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.capquiz import CAPQUIZ
from lmms_eval_captions.lmms_eval_tasks.commands.building.options import Options
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, kept
from scripted_crew import ScriptedCrew, model, n_pictures, text_of, write_clip

N = 8
OPTION = re.compile(r"^([A-F])\. (.*)$", re.MULTILINE)
QUESTION = re.compile(r"object number (\d+)")


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    """Two clips that can be read, and one that cannot."""
    write_clip(tmp_path / "clips" / "one.mp4", shade=40)
    write_clip(tmp_path / "clips" / "two.mp4", shade=90)
    (tmp_path / "clips" / "three.mp4").write_bytes(b"no video at all" * 100)
    return tmp_path / "clips"


@pytest.fixture
def settings(tmp_path: Path) -> JudgeSettings:
    """Settings of nobody's environment."""
    return read_judge_settings({"LMMS_CAPTIONS_CACHE": str(tmp_path / "cache")})


def options(clips: Path, **changed: Any) -> Options:
    """Two writers, two solvers and a viewer."""
    return replace(
        Options(
            kind="capquiz",
            videos=clips,
            data=clips.parent / "data",
            writers=(model("writer-1"), model("writer-2")),
            solvers=(model("solver-1"), model("solver-2")),
            viewers=(model("viewer"),),
            per_video=10,
            n_frames=2,
            frame_pixels=32 * 32,
        ),
        **changed,
    )


def pair(number: int, **changed: Any) -> dict[str, Any]:
    """A question whose right option ends with "(right)", which no solver looks at."""
    return {
        "category": "Entity",
        "question": f"What colour is object number {number}?",
        "options": [f"{number} {colour}" for colour in ("red", "blue", "green", "pink", "grey")],
        "answer": f"{number} red",
        **changed,
    }


class Script:
    """Writers that write N pairs of each clip; who knows what is said of each number."""

    def __init__(self, **said: Callable[[Request], str]) -> None:
        self.said = said
        self.pairs: dict[int, dict[str, Any]] = {}
        self.blind: set[int] = set()
        """Numbers that every solver answers."""
        self.half_blind: set[int] = set()
        """Numbers that the first solver alone answers."""
        self.wrong: dict[int, str] = {}
        """Number to the colour that viewers see."""
        self.clusters: list[list[list[int]]] | None = None

    def __call__(self, request: Request) -> str:
        """The reply to a request."""
        name = request.protocol.partition(":")[0].removeprefix("build_capquiz_")
        if name in self.said:
            return self.said[name](request)
        answer: str = getattr(self, name)(request)
        return answer

    def domain(self, _request: Request) -> str:
        """The likeliest domains of a clip."""
        return '{"Nature": 0.8, "Sports": 0.1}'

    def write(self, request: Request) -> str:
        """N questions, of numbers that tell the writers apart."""
        start = 100 * (request.model == "writer-2")
        pairs = [self.pairs.get(start + k, pair(start + k)) for k in range(N)]
        return json.dumps(pairs)

    def _letter(self, request: Request, option: str) -> str:
        return next(
            str(letter) for letter, text in OPTION.findall(text_of(request)) if text == option
        )

    def blind_number(self, request: Request) -> int:
        """The number that a request asks about."""
        return int(QUESTION.findall(text_of(request))[-1])

    def _blind(self, request: Request) -> str:
        number = self.blind_number(request)
        knows = number in self.blind or (number in self.half_blind and request.model == "solver-1")
        return self._letter(request, f"{number} red" if knows else f"{number} blue")

    def cluster(self, request: Request) -> str:
        """Every question a group of its own, or what was set."""
        n = text_of(request).rsplit("process the following list", 1)[-1].count('"index"')
        return json.dumps(self.clusters or [[[place]] for place in range(n)])

    def sighted(self, request: Request) -> str:
        """The colour that viewers see."""
        number = self.blind_number(request)
        return self._letter(request, f"{number} {self.wrong.get(number, 'red')}")


def blind(script: Script) -> Callable[[Request], str]:
    """The solvers of a script."""
    return script._blind


def run(clips: Path, settings: JudgeSettings, script: Script, **changed: Any) -> Built:
    """Build with a script."""
    script.said.setdefault("blind", blind(script))
    crew = ScriptedCrew(script)
    built = build(CAPQUIZ, options(clips, **changed), settings, crew)
    assert built.work.crew is crew
    return built


def numbers(rows: list[Row]) -> set[int]:
    """Those of the questions that go on."""
    return {int(QUESTION.findall(row["question"])[0]) for row in kept(rows)}


EVERY = {*range(N), *range(100, 100 + N)}


def test_what_is_built_is_what_the_task_reads(clips: Path, settings: JudgeSettings) -> None:
    """Sound questions of both writers about the clips that can be read, ten of each."""
    built = run(clips, settings, Script())
    data = read_settings({"LMMS_CAPTIONS_DATA": str(clips.parent / "data")})
    docs = BENCHMARK.read(data, BENCHMARK.tasks["capquiz"])
    assert [doc["video"] for doc in docs] == ["one.mp4", "two.mp4"]
    assert all(doc["domain"] == "Nature" for doc in docs)
    assert [len(BENCHMARK.questions(doc)) for doc in docs] == [10, 10]
    assert {BENCHMARK.video_path(data, doc).resolve().name for doc in docs} == {
        "one.mp4",
        "two.mp4",
    }
    places = Counter(
        question.options.index(question.answer)
        for doc in docs
        for question in BENCHMARK.questions(doc)
    )
    assert set(places.values()) == {4}
    [unreadable] = [row for row in built.work.rows["clips"] if "dropped" in row]
    assert unreadable["video"] == "three"
    assert built.files == {"capquiz.jsonl": 20}


def test_clips_with_a_name_in_another_encoding_are_asked_about_once(
    clips: Path, settings: JudgeSettings
) -> None:
    """The stages' files say what was made, so that the next run asks nothing."""
    (clips / "one.mp4").rename(clips / os.fsdecode(b"caf\xe9.mp4"))
    assert run(clips, settings, Script()).n_questions == 20
    again = run(clips, settings, Script())
    assert [done.stage.name for done in again.done if done.is_new] == []
    data = read_settings({"LMMS_CAPTIONS_DATA": str(clips.parent / "data")})
    docs = BENCHMARK.read(data, BENCHMARK.tasks["capquiz"])
    paths = {os.fsencode(BENCHMARK.video_path(data, doc).resolve().name) for doc in docs}
    assert paths == {b"caf\xe9.mp4", b"two.mp4"}


def test_only_those_who_see_are_shown_frames(clips: Path, settings: JudgeSettings) -> None:
    """Solvers get text alone: that is what makes their check blind."""
    built = run(clips, settings, Script())
    assert isinstance(built.work.crew, ScriptedCrew)
    shown = {
        (request.protocol.partition(":")[0], n_pictures(request))
        for request in built.work.crew.requests
    }
    assert shown == {
        ("build_capquiz_domain", 2),
        ("build_capquiz_write", 2),
        ("build_capquiz_blind", 0),
        ("build_capquiz_cluster", 0),
        ("build_capquiz_sighted", 2),
    }


def test_questions_that_every_solver_knows_go_and_others_stay(
    clips: Path, settings: JudgeSettings
) -> None:
    """One that a single solver knows stays; six trials are made of each, in other orders."""
    script = Script()
    script.blind, script.half_blind = {1, 102}, {2}
    built = run(clips, settings, script)
    assert numbers(built.work.rows["blind"]) == EVERY - {1, 102}
    row = next(row for row in built.work.rows["blind"] if "number 2?" in row["question"])
    assert row["blind"] == {
        "right": {"solver-1": 3, "solver-2": 0}, "n_right": 3, "n_readable": 6
    }  # fmt: skip
    assert isinstance(built.work.crew, ScriptedCrew)
    trials = [
        OPTION.findall(text_of(request))
        for request in built.work.crew.requests
        if "blind" in request.protocol and "number 2?" in text_of(request)
    ]
    assert len(trials) == 2 * 2 * 3
    assert len({tuple(text for _, text in trial) for trial in trials}) == 2 * 3


def test_of_two_that_ask_the_same_the_harder_stays(clips: Path, settings: JudgeSettings) -> None:
    """Hard is what solvers know least: 3 is known to one of them, 4 to none."""
    script = Script()
    script.half_blind = {3}
    alone = [[[place]] for place in range(2 * N) if place not in (3, 4, 5, 6)]
    # 3 and 4 ask and answer the same; 5 and 6 ask the same, and answer otherwise.
    script.clusters = [*alone, [[3, 4]], [[5], [6]]]
    built = run(clips, settings, script)
    assert numbers(built.work.rows["similar"]) == EVERY - {3}


def test_the_sighted_check_drops_wrong_answers_and_forgives_one_slip(
    clips: Path, settings: JudgeSettings
) -> None:
    """A viewer that errs once in three looks takes nothing out; one that always sees blue does."""
    script = Script()
    script.wrong = {0: "blue", 1: "green"}

    def sighted(request: Request) -> str:
        slip = script.blind_number(request) == 2 and request.seed == 0
        if slip:
            return LETTERS[5]  # cannot be determined
        if script.blind_number(request) == 103:
            return LETTERS[5]
        return script.sighted(request)

    script.said["sighted"] = sighted
    built = run(clips, settings, script, per_video=50)
    assert numbers(built.work.rows["sighted"]) == EVERY - {0, 1, 103}
    looks = {tuple(row["check"]["looks"]): row.get("dropped") for row in built.work.rows["sighted"]}
    assert looks == {
        ("right",): None,
        ("unknown", "right", "right"): None,
        ("wrong", "wrong", "wrong"): "sighted check: the frames show another answer",
        ("unknown", "unknown", "unknown"): "sighted check: the frames do not show the answer",
    }


def test_malformed_questions_are_dropped_by_name(clips: Path, settings: JudgeSettings) -> None:
    """Sound ones of the same reply stay."""
    script = Script()
    script.pairs = {
        0: pair(0, options=[f"0 {k}" for k in range(6)]),
        1: pair(1, answer="none of them"),
        2: {"category": "Entity", "question": "What colour is object number 2?"},
        3: pair(3, question="Which of the following colours is object number 3?"),
        4: pair(5),
    }
    built = run(clips, settings, script)
    assert numbers(built.work.rows["form"]) == EVERY - {0, 1, 2, 3, 4}
    form = next(done for done in built.done if done.stage.name == "form").head
    assert form["dropped"] == {
        "form: not 5 options": 2,
        "form: the answer is none of the options": 2,
        "form: the question needs its options": 2,
        "form: the words of another question": 2,
    }
    questions = next(done for done in built.done if done.stage.name == "questions").head
    assert questions["requests"]["faults"]["question: wrong keys"] == 2


def test_blind_trials_without_a_readable_reply_make_no_question_hard(
    clips: Path, settings: JudgeSettings
) -> None:
    """It stays, and comes after those that are known to be hard."""
    script = Script()

    def solve(request: Request) -> str:
        if script.blind_number(request) in (0, 1):
            return "I cannot see any video."
        return script._blind(request)

    script.said["blind"] = solve
    built = run(clips, settings, script, per_video=14)
    assert numbers(built.work.rows["blind"]) == EVERY
    chosen = kept(built.work.rows["chosen"])
    assert numbers(chosen) == EVERY - {0, 1}
    faults = _faults(built, "blind")
    # Two questions of each of two clips.
    assert faults["blind check: kept, as a solver gave too few readable replies"] == 4


def _faults(built: Built, stage: str) -> dict[str, int]:
    faults = next(done.head for done in built.done if done.stage.name == stage)["requests"]
    return dict(faults["faults"])


def test_one_solver_that_cannot_be_read_is_told(clips: Path, settings: JudgeSettings) -> None:
    """Whatever the other one knows, every question stays: not without a word."""
    script = Script()
    script.blind = set(EVERY)

    def solve(request: Request) -> str:
        return "I see no video." if request.model == "solver-2" else script._blind(request)

    script.said["blind"] = solve
    built = run(clips, settings, script)
    assert numbers(built.work.rows["blind"]) == EVERY
    faults = _faults(built, "blind")
    assert faults["blind check: kept, as a solver gave too few readable replies"] == 2 * len(EVERY)
    assert all(row["blind"]["unread_by"] == ["solver-2"] for row in built.work.rows["blind"])


def test_every_writer_has_its_share_of_what_stays(clips: Path, settings: JudgeSettings) -> None:
    """Of equal questions the first writer's are not taken first."""
    built = run(clips, settings, Script(), per_video=N)
    by = Counter(row["writer"] for row in kept(built.work.rows["chosen"]))
    assert by.total() == 2 * N
    assert min(by["writer-1"], by["writer-2"]) >= N // 2


def test_how_hard_questions_were_does_not_choose_them(clips: Path, settings: JudgeSettings) -> None:
    """What stays is as hard as what passed the check: half of it is known to one solver."""
    script = Script()
    script.half_blind = set(range(N))
    built = run(clips, settings, script, per_video=N)
    hard = Counter(row["blind"]["n_right"] for row in kept(built.work.rows["chosen"]))
    assert hard.total() == 2 * N
    assert min(hard[0], hard[3]) >= N // 2


def test_clips_without_readable_clusters_are_counted(clips: Path, settings: JudgeSettings) -> None:
    """Their questions are compared by their words alone."""
    built = run(clips, settings, Script(cluster=lambda _request: "none"))
    counts = _faults(built, "similar")
    assert counts["clips whose questions are compared by their words alone"] == 2


@pytest.mark.parametrize("said", ["refused", "nothing that can be read", ""])
@pytest.mark.parametrize("prompt", ["domain", "write", "blind", "cluster", "sighted"])
def test_one_failure_costs_what_it_was_asked_about_alone(
    clips: Path, settings: JudgeSettings, prompt: str, said: str
) -> None:
    """The first request of each prompt fails; the benchmark is built, and the failure counted."""
    script = Script()
    script.said.setdefault("blind", blind(script))
    failed: list[Request] = []

    def fail_once(request: Request) -> str:
        if f"capquiz_{prompt}:" in request.protocol and not failed:
            failed.append(request)
            return said
        return script(request)

    built = build(CAPQUIZ, options(clips), settings, ScriptedCrew(fail_once))
    assert failed
    failures = Counter[str]()
    for done in built.done:
        failures.update(done.head["requests"]["failures"])
    assert failures == {"refused" if said == "refused" else "unreadable": 1}
    assert built.n_questions == (18 if prompt == "write" else 20)


def test_too_many_lost_requests_end_the_build_and_few_do_not(
    clips: Path, settings: JudgeSettings
) -> None:
    """One lost request is told, and asked again by the next run; a stage of them is too much."""
    script = Script()
    lost: list[Request] = []

    def lose_one(request: Request) -> str:
        if "sighted" in request.protocol and not lost:
            lost.append(request)
            return "unavailable"
        return script(request)

    script.said.setdefault("blind", blind(script))
    built = build(CAPQUIZ, options(clips), settings, ScriptedCrew(lose_one))
    assert built.n_lost == 1
    again = build(CAPQUIZ, options(clips), settings, ScriptedCrew(script))
    assert again.n_lost == 0
    assert [done.stage.name for done in again.done if done.is_new] == ["sighted", "chosen"]
    script.said["write"] = lambda _request: "unavailable"
    with pytest.raises(JudgeUnavailableError, match="questions: 4 of 4 requests have no reply"):
        build(CAPQUIZ, options(clips, per_video=3), settings, ScriptedCrew(script))


@pytest.mark.parametrize("prompt", ["domain", "write", "blind", "cluster", "sighted"])
def test_the_last_request_that_is_never_answered_does_not_end_the_build(
    clips: Path, settings: JudgeSettings, prompt: str
) -> None:
    """It may be the request, and would be the last one of every run: the rest is built."""
    script = Script()
    script.said.setdefault("blind", blind(script))
    asked: list[Request] = []

    def silent_once(request: Request) -> str:
        if f"capquiz_{prompt}:" in request.protocol:
            asked.append(request)
            return "silent" if len(asked) == 1 else script(request)
        return script(request)

    built = build(CAPQUIZ, options(clips), settings, ScriptedCrew(silent_once))
    assert built.n_lost == 1
    assert built.n_questions == (18 if prompt == "write" else 20)


def test_an_endpoint_that_is_gone_ends_the_build(clips: Path, settings: JudgeSettings) -> None:
    """More than a few requests without a reply are no matter of these requests."""
    with pytest.raises(JudgeStoppedError, match="it was silent"):
        run(clips, settings, Script(write=lambda _request: "silent"))


def test_a_stage_whose_requests_are_all_refused_ends_the_build_in_the_endpoints_words(
    clips: Path, settings: JudgeSettings
) -> None:
    """It is the same for every request: a context that is too short, say."""
    with pytest.raises(JudgeRequestError, match="all 4 requests were refused: it was refused"):
        run(clips, settings, Script(write=lambda _request: "refused"))


def test_a_model_that_is_asked_nothing_more_ends_the_build(
    clips: Path, settings: JudgeSettings
) -> None:
    """Its words are told; what follows would be of other data."""
    script = Script(write=lambda _request: "stopped")
    with pytest.raises(JudgeStoppedError, match="it was stopped"):
        run(clips, settings, script)


def test_nothing_left_is_an_error_that_says_where_to_look(
    clips: Path, settings: JudgeSettings
) -> None:
    """No file is written."""
    with pytest.raises(DataError, match="no question is left"):
        run(clips, settings, Script(write=lambda _request: "[]"))
    assert not (clips.parent / "data" / "capquiz" / "capquiz.jsonl").exists()


def test_categories_of_ones_own_are_asked_for_and_kept(
    clips: Path, settings: JudgeSettings
) -> None:
    """Definitions reach the writer; a question of another category is dropped."""
    path = clips.parent / "categories.yaml"
    path.write_text("safety: whether a rule of safety is broken\nbrand: which brand is shown\n")
    script = Script()
    script.pairs = {
        **{k: pair(k, category="Safety") for k in range(N)},
        **{100 + k: pair(100 + k, category="brand") for k in range(N - 1)},
    }
    built = run(clips, settings, script, categories=path)
    assert isinstance(built.work.crew, ScriptedCrew)
    asked = next(r for r in built.work.crew.requests if "write" in r.protocol)
    assert "whether a rule of safety is broken" in text_of(asked)
    assert "Grounding Reasoning" not in text_of(asked)
    data = read_settings({"LMMS_CAPTIONS_DATA": str(clips.parent / "data")})
    docs = BENCHMARK.read(data, BENCHMARK.tasks["capquiz"])
    kinds = Counter(q.category for doc in docs for q in BENCHMARK.questions(doc))
    assert kinds == {"safety": 10, "brand": 10}
