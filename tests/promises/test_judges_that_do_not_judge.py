"""Judges that do not judge are called out in every benchmark, and those that do are not."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from conftest import ServerFactory
from five_tasks import CAPTIONER_PAPERS, TASKS, Task, Texts, write_data
from judge_server import JudgeServer, Refuse, Say, last_text
from lmms_eval_captions.judges.settings import read_settings
from lmms_eval_captions.lmms_eval_tasks.estimate import CaptionFile, estimate
from lmms_eval_captions.lmms_eval_tasks.judge_check import LEAST_CAPTIONS, Evidence, tell_answer
from lmms_eval_captions.lmms_eval_tasks.judging.doubts import doubts_of
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.signature import Signature

COLOURS: Final = ("red", "pink", "grey", "brown", "orange")
VIDEOS: Final = [Texts(f"clip{n:02}", f"Which is number {n}?", COLOURS[n % 5]) for n in range(52)]
"""In the order of their names, in which own clips come."""
GOOD: Final = [f"{video.gold}, as in {tell_answer(video.question, video.gold)}" for video in VIDEOS]
BAD: Final = [f"Somebody does something, {n}." for n in range(len(VIDEOS))]
ALL: Final = pytest.mark.parametrize(
    "task",
    [task for task in TASKS if task.hooks.benchmark.name not in CAPTIONER_PAPERS],
    ids=lambda task: task.name,
)
"""Tasks that a judge here can play."""
WITH_EXAMPLE: Final = pytest.mark.parametrize(
    "task", [task for task in TASKS if task.hooks.benchmark.name in ("vdc", "vcapsbench")],
    ids=lambda task: task.name,
)  # fmt: skip
WITHOUT_ANCHORS: Final = ("own",)
"""Benchmarks that know of no caption that is right."""
ANCHORS_OF: Final = {
    "vdc": 64, "vidcapbench": 64, "vcapsbench": 96, "capquiz": 32, "msvd_eval": 12, "own": 0,
}  # fmt: skip
"""Requests that a task's anchors take at most: 16 questions, of MSVD-Eval 6, with two captions."""

_RATES: Final = "expert Video Understanding Evaluator"
_TOLD: Final = re.compile(r'To the question "(.*?)" the answer is: ([^\n]*)')

Reply = Callable[[str], str]
"""A judge: from the last message of a request to its reply."""


def _answer_in(prompt: str) -> str | None:
    told = _TOLD.search(prompt)
    return told[2].strip() if told else None


def honest(prompt: str) -> str:
    """Reads the caption, and goes by it alone."""
    if "\n\nPredicted Answer: " in prompt or "\nYour Result:" in prompt:
        gold = re.search(r"Correct Answer: (.*)", prompt)
        predicted = re.search(r"Predicted Answer: (.*)", prompt)
        assert gold is not None
        assert predicted is not None
        return _graded(prompt, is_right=gold[1].strip() == predicted[1].strip())
    answer = _answer_in(prompt)
    if "Answer@@@Analysis" in prompt:
        return f"{'Yes' if answer else 'Unanswerable'}@@@It says so."
    if "F. Cannot be determined" in prompt:
        letter = re.search(rf"^([A-E])\. {answer}$", prompt, re.MULTILINE)
        return letter[1] if answer and letter else "F"
    if "{{accuracy_score}}" in prompt:
        caption = prompt.partition("Generated captions: ")[2].partition("\n")[0]
        return _scored((88 if caption.startswith(COLOURS) else 6) + _dice(prompt).randint(0, 4))
    if _RATES in prompt:
        caption = prompt.partition('Candidate Caption:**\n"')[2]
        return _rated(5 if caption.startswith(COLOURS) else 1)
    return answer or "It is not said."


def _graded(prompt: str, *, is_right: bool) -> str:
    if "\nYour Result:" in prompt:
        return json.dumps({"score": 2 if is_right else 0, "analysis": "As it is."})
    return str({"pred": "yes" if is_right else "no", "score": 5 if is_right else 0})


def _scored(score: int) -> str:
    names = zip(("Accuracy", "Completeness", "Conciseness", "Relevance"), "αβψδ", strict=True)
    return " ".join(f"The {name} score is {mark}{score}{mark}." for name, mark in names)


def _rated(rating: int) -> str:
    names = ("trustworthiness", "coverage", "overall")
    return json.dumps({"analysis": "It is so.", "scores": dict.fromkeys(names, rating)})


def always(*, is_right: bool) -> Reply:
    """Gives each caption full credit, or none, whatever it says."""

    def reply(prompt: str) -> str:
        if "Predicted Answer: " in prompt:
            return _graded(prompt, is_right=is_right)
        if "Answer@@@Analysis" in prompt:
            return f"{'Yes' if is_right else 'Unanswerable'}@@@It says so."
        if "F. Cannot be determined" in prompt:
            return "A" if is_right else "F"
        if _RATES in prompt:
            return _rated(4 if is_right else 1)
        return _scored(80 if is_right else 0) if "{{accuracy_score}}" in prompt else "It is red."

    return reply


def at_random(prompt: str) -> str:
    """Says anything, always the same of the same prompt."""
    dice = _dice(prompt)
    if "Predicted Answer: " in prompt:
        return _graded(prompt, is_right=dice.random() < 0.5)
    if "Answer@@@Analysis" in prompt:
        return f"{dice.choice(('Yes', 'No', 'Unanswerable'))}@@@It says so."
    if "F. Cannot be determined" in prompt:
        return dice.choice("ABCDEF")
    if _RATES in prompt:
        return _rated(dice.randint(1, 5))
    return _scored(dice.randint(0, 100)) if "{{accuracy_score}}" in prompt else "It is red."


def _dice(prompt: str) -> random.Random:
    return random.Random(hashlib.sha256(prompt.encode()).hexdigest())


def echo(prompt: str) -> str:
    """Repeats the example of the prompt, as a very small model does."""
    example = re.search(r"For example[^:]*: (.*)", prompt)
    return f"```\n{example[1]}\n```" if example else "It is red."


def _judge(
    task: Task, captions: list[str], bench: pytest.MonkeyPatch, folder: Path, server: JudgeServer
) -> dict[str, str]:
    """Judge a task, and give the fields of its signature; sentences are those of its doubts."""
    root = write_data(folder / "data", VIDEOS[: len(captions)])
    bench.setenv("LMMS_CAPTIONS_DATA", str(root))
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_JUDGE_RUNS", "1")
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "1")
    (sample, *_) = task.samples(captions, folder)
    fields = Signature.parse(sample["signature of the task"]).fields
    sentences = [*doubts_of(THIS_RUN.tasks[task.name].records).values()]
    assert len(sentences) == len(list(filter(None, fields.get("doubts", "").split("+"))))
    assert all(len(sentence) <= 300 for sentence in sentences)
    assert all("LMMS_CAPTIONS_JUDGE" in sentence for sentence in sentences)
    return dict(fields)


def _play(serve: ServerFactory, reply: Reply) -> JudgeServer:
    server = serve()

    def script(payload: dict[str, Any]) -> Say:
        return Say(reply(last_text(payload)))

    server.script = script
    return server


@ALL
@pytest.mark.parametrize(
    ("judge", "captions", "doubts", "without_anchors"),
    [
        pytest.param(honest, GOOD, "", "", id="honest, good captions"),
        pytest.param(honest, BAD, "", "", id="honest, bad captions"),
        pytest.param(always(is_right=True), BAD, "blind+constant", "constant", id="always yes"),
        # The lowest rating of all captions is what bad ones earn.
        pytest.param(always(is_right=False), GOOD, "blind+constant", "", id="always no"),
        pytest.param(at_random, GOOD, "blind", "", id="at random"),
    ],
)
def test_a_judge_that_does_not_judge_is_called_out_and_no_other(
    task: Task,
    judge: Reply,
    captions: list[str],
    doubts: str,
    without_anchors: str,
    bench: pytest.MonkeyPatch,
    serve: ServerFactory,
    tmp_path: Path,
) -> None:
    """A bad captioner is no bad judge, a perfect one neither; whoever does not read captions is."""
    fields = _judge(task, captions, bench, tmp_path, _play(serve, judge))
    has_anchors = task.hooks.benchmark.name not in WITHOUT_ANCHORS
    assert fields.get("doubts", "") == (doubts if has_anchors else without_anchors)


@WITH_EXAMPLE
@pytest.mark.parametrize(
    ("n_captions", "doubts"), [(52, "blind+constant+echo"), (LEAST_CAPTIONS, "blind+echo")]
)
def test_a_judge_that_repeats_the_prompt_s_example_is_called_out(
    task: Task,
    n_captions: int,
    doubts: str,
    bench: pytest.MonkeyPatch,
    serve: ServerFactory,
    tmp_path: Path,
) -> None:
    fields = _judge(task, BAD[:n_captions], bench, tmp_path, _play(serve, echo))
    assert fields["doubts"] == doubts
    assert fields["unscored"] == f"0/{n_captions}"


@pytest.mark.parametrize(
    "task",
    [task for task in TASKS if task.hooks.benchmark.name in ("vdc", "vidcapbench")],
    ids=lambda task: task.name,
)
@pytest.mark.parametrize("start", ["Okay, let me see. ", "The frames of it show what follows. "])
def test_reasoning_that_is_taken_for_an_answer_is_called_out(
    task: Task, start: str, bench: pytest.MonkeyPatch, serve: ServerFactory, tmp_path: Path
) -> None:
    """It begins as reasoning does, or at length with the same words again and again."""

    def thinks(prompt: str) -> str:
        if "Predicted Answer: " in prompt:
            return _graded(prompt, is_right=_dice(prompt).random() < 0.5)
        return f"{start}{'It is hard to say. ' * 20}{_dice(prompt).random()}"

    fields = _judge(task, GOOD, bench, tmp_path, _play(serve, thinks))
    assert "reasoning" in fields["doubts"]


@ALL
def test_small_runs_ask_nothing_more(
    task: Task, bench: pytest.MonkeyPatch, serve: ServerFactory, tmp_path: Path
) -> None:
    """From twenty captions on there are anchors, once; a rerun asks none of them again."""
    server = _play(serve, honest)
    few = LEAST_CAPTIONS - 1
    fields = _judge(task, GOOD[:few], bench, tmp_path / "few", server)
    assert "doubts" not in fields
    n_each, rest = divmod(server.counts.n_requests, few)
    assert rest == 0
    SESSION.close()
    _judge(task, GOOD, bench, tmp_path / "many", server)
    n_anchors = server.counts.n_requests - n_each * len(GOOD)
    name = task.hooks.benchmark.name
    assert (n_anchors > 0) is (name not in WITHOUT_ANCHORS)
    assert n_anchors <= ANCHORS_OF[name]
    n_requests = server.counts.n_requests
    SESSION.close()
    _judge(task, GOOD, bench, tmp_path / "again", server)
    assert server.counts.n_requests == n_requests


@ALL
def test_the_estimate_counts_anchors(
    task: Task, bench: pytest.MonkeyPatch, serve: ServerFactory, tmp_path: Path
) -> None:

    def wordy(prompt: str) -> str:
        reply = honest(prompt)
        is_free = reply.startswith((*COLOURS, "It is not said."))
        return f"{reply} {hashlib.sha256(prompt.encode()).hexdigest()}" if is_free else reply

    server = _play(serve, wordy)
    bench.setenv("LMMS_CAPTIONS_DATA", str(write_data(tmp_path / "before", VIDEOS)))
    bench.setenv("LMMS_CAPTIONS_JUDGE_RUNS", "1")
    captions = {video.video_id: text for video, text in zip(VIDEOS, GOOD, strict=True)}
    file = tmp_path / "captions.json"
    file.write_text(json.dumps(captions))
    (counted,) = estimate(read_settings(), [task.name], captions=CaptionFile(str(file))).tasks
    assert counted.n_questions == len(VIDEOS)
    _judge(task, GOOD, bench, tmp_path, server)
    assert counted.n_calls == server.counts.n_requests


@ALL
def test_an_outage_is_no_doubt(
    task: Task, bench: pytest.MonkeyPatch, serve: ServerFactory, tmp_path: Path
) -> None:
    """Replies that did not come say nothing of the judge."""
    server = serve()
    server.script = lambda _: Refuse(400, "no")
    assert "doubts" not in _judge(task, GOOD, bench, tmp_path, server)


def _named(evidence: Evidence) -> tuple[str, ...]:
    record = CaptionRecord(
        task="t", video_id="v", judge="j", runs=1, protocol=1, extras={}, n_questions=1,
        n_unscored=0, evidence=evidence,
    )  # fmt: skip
    return tuple(doubts_of([record]))


@pytest.mark.parametrize(
    ("evidence", "doubts"),
    [
        pytest.param({"said": {"A": 60}, "credit": 12.0}, ("constant",), id="one letter"),
        pytest.param({"said": {"yes": 60}, "credit": 60.0}, (), id="perfect captions"),
        pytest.param({"said": {"no": 60}, "n_silent": 60}, (), id="bad captions"),
        pytest.param({"said": {"A": 40}, "credit": 8.0}, (), id="too few"),
        pytest.param({"said": {"A": 57, "B": 3}, "credit": 12.0}, (), id="not nearly all"),
        pytest.param({"n_replies": 40, "n_echoes": 37}, ("echo",), id="the example"),
        pytest.param({"n_replies": 40, "n_echoes": 24}, (), id="yes spelt like the example"),
        pytest.param({"n_replies": 10, "n_echoes": 10}, (), id="too few replies"),
    ],
)
def test_small_runs_are_doubted_where_there_is_evidence(
    evidence: dict[str, Any], doubts: tuple[str, ...]
) -> None:
    """Without anchors, honest judges of perfect and of bad captions are let alone."""
    said = Counter(evidence.pop("said", {}))
    assert _named(Evidence(said=said, **evidence)) == doubts
