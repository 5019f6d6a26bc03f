"""Rewards of a batch of rollouts, as TRL and verl ask for them, with a judge server of the test."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import ServerFactory
from judge_server import JudgeServer, Say
from lmms_eval_captions import CaptionReward, Scorer
from lmms_eval_captions.judges.errors import DataError, JudgeStoppedError, SettingsError
from scorers import open_reward, open_scorer, yes_no

CLIPS = ["a", "a", "b", "b"]
CAPTIONS = ["A dog runs.", "A dog sits.", "A cat runs.", "A cat sits."]
QUESTIONS = {name: yes_no(6, about=name) for name in "ab"}
ASK_ONCE: dict[str, Any] = {"vcapsbench_asks": 1}
Open = Callable[..., CaptionReward]


@pytest.fixture
def server(serve: ServerFactory) -> JudgeServer:
    """The judge."""
    return serve()


@pytest.fixture
def opened(server: JudgeServer, tmp_path: Path) -> Open:
    """Makes rewards of yes-no questions that ask the server."""
    return partial(open_reward, "vcapsbench", server, tmp_path, **ASK_ONCE)


def columns(clips: Sequence[str] = CLIPS) -> dict[str, object]:
    """What TRL hands over beside prompts and completions."""
    return {
        "clip_id": list(clips),
        "questions": [QUESTIONS[clip] for clip in clips],
        "completion_ids": [[1]] * len(clips),
        "trainer_state": object(),
    }


def rewarded(reward: CaptionReward, captions: Sequence[object] = CAPTIONS) -> list[float | None]:
    """The rewards of the four captions."""
    return reward(["Describe."] * len(captions), captions, **columns())


def refuse(what: str) -> Callable[[dict[str, Any]], Any]:
    """A judge whose replies to prompts with these words cannot be read."""

    def script(payload: dict[str, Any]) -> Say | None:
        return Say("Hm.") if what in json.dumps(payload) else None

    return script


def test_a_reward_is_the_share_of_the_metrics_range(
    opened: Open, server: JudgeServer, tmp_path: Path
) -> None:
    """The headline's value in [0, 1]; without normalising, what the scorer says."""
    with opened() as reward, opened(normalise=False) as plain:
        shares, values = rewarded(reward), rewarded(plain)
    with open_scorer("vcapsbench", server, tmp_path, **ASK_ONCE) as scorer:
        scores = scorer.score(CAPTIONS, [QUESTIONS[c] for c in CLIPS], clip_ids=CLIPS)
    assert values == [score.scores["ar"] for score in scores]
    assert shares == [score.scores["ar"] / 100.0 for score in scores]
    assert len(set(shares)) > 1
    assert server.counts.n_requests == 24


def test_less_is_better_is_turned_round(opened: Open, server: JudgeServer, tmp_path: Path) -> None:
    """And refused where the value is to stay as it is."""
    with opened(metric="ir") as reward:
        shares = rewarded(reward)
    with open_scorer("vcapsbench", server, tmp_path, **ASK_ONCE) as scorer:
        scores = scorer.score(CAPTIONS, [QUESTIONS[c] for c in CLIPS], clip_ids=CLIPS)
    assert shares == [1.0 - score.scores["ir"] / 100.0 for score in scores]
    with pytest.raises(SettingsError, match="less of ir is better"):
        opened(metric="ir", normalise=False)


def test_a_graded_metric_is_mapped_by_its_span(server: JudgeServer, tmp_path: Path) -> None:
    """VDC's score of 0 to 5."""
    with open_reward("vdc", server, tmp_path, metric="vdc_score", normalise=False) as plain:
        values = rewarded(plain)
    with open_reward("vdc", server, tmp_path, metric="vdc_score") as reward:
        assert rewarded(reward) == [value / 5.0 for value in values if value is not None]


def test_a_repeated_caption_is_asked_about_once(opened: Open, server: JudgeServer) -> None:
    """Within a batch, in the next one, and by the next process."""
    captions = [CAPTIONS[0]] * 2 + [CAPTIONS[2]] * 2
    with opened() as reward:
        first = rewarded(reward, captions)
        assert server.counts.n_requests == 12
        assert rewarded(reward, captions) == first
    with opened() as later:
        assert rewarded(later, captions) == first
    assert server.counts.n_requests == 12


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(lambda text: [{"role": "assistant", "content": text}], id="conversation"),
        pytest.param(
            lambda text: [
                {"role": "assistant", "content": "Let me look."},
                {"role": "tool", "content": "frames"},
                {"role": "assistant", "content": [{"type": "text", "text": text}]},
            ],
            id="the last message",
        ),
    ],
)
def test_conversations_are_read(wrap: Callable[[str], object], opened: Open) -> None:
    """The caption is what the assistant said last."""
    with opened() as reward:
        assert rewarded(reward, list(map(wrap, CAPTIONS))) == rewarded(reward)


def test_tables_of_any_kind_hold_questions(opened: Open, server: JudgeServer) -> None:
    """JSON, a record of columns, and fields that a table made up for want of a value."""
    plain = QUESTIONS["a"]
    kinds: list[object] = [
        json.dumps(plain),
        {name: [question[name] for question in plain] for name in plain[0]},
        [{**question, "options": None} for question in plain],
        tuple(plain),
        np.array(plain, dtype=object),
    ]
    with opened() as reward:
        rewards = reward([""] * 5, [CAPTIONS[0]] * 5, clip_id=["a"] * 5, questions=kinds)
    assert len(set(rewards)) == 1
    assert server.counts.n_requests == len(plain)


def test_columns_are_found_by_other_names(opened: Open) -> None:
    """The names are given once, and one that is not there is an error."""
    names = {"clip_id": "video_id", "questions": "qa"}
    given = columns()
    with opened(columns=names) as reward, opened() as usual:
        rewards = reward(
            [""] * 4, CAPTIONS, video_id=given["clip_id"], qa=given["questions"], clip_id=[9] * 4
        )
        assert rewards == rewarded(usual)
        with pytest.raises(ValueError, match="a column 'qa' of questions"):
            reward([""], CAPTIONS[:1], video_id=["a"])
        with pytest.raises(ValueError, match="clip_id: expected 4"):
            usual([""] * 4, CAPTIONS, clip_id=["a"])
        with pytest.raises(DataError, match="expected a column clip_id"):
            usual([""], CAPTIONS[:1], questions=[QUESTIONS["a"]])


def test_without_a_verdict_the_others_mean_counts(
    opened: Open, server: JudgeServer, logged: list[str]
) -> None:
    """That of the clip, so that a group's mean stays; it is said once a batch."""
    server.script = refuse("A dog sits.")
    shares: dict[str, float] = {}
    with opened() as reward:
        rewards = reward(
            [""] * 4,
            CAPTIONS,
            **columns(),
            log_metric=lambda name, value: shares.update({name: value}),
        )
    assert rewards[1] == rewards[0]
    assert None not in rewards
    assert shares == {"ar/missing": 0.25, "ar/unscored": 0.0}
    warnings = [line for line in logged if line.startswith("WARNING ar: 1 of 4 completions")]
    assert len(warnings) == 1
    assert "unreadable reply" in warnings[0]
    with opened(missing=None) as left_out:
        assert rewarded(left_out) == [rewards[0], None, rewards[2], rewards[3]]


def test_without_a_verdict_on_the_clip_the_batchs_mean_counts(
    opened: Open, server: JudgeServer
) -> None:
    """Where none of the clip's completions has one."""
    server.script = refuse("A cat")
    with opened() as reward:
        first, second, *others = rewarded(reward)
    assert first is not None
    assert second is not None
    assert all(isclose(other or 0.0, (first + second) / 2) for other in others)


def test_a_judge_that_stopped_ends_training(serve: ServerFactory, tmp_path: Path) -> None:
    """At once where nothing was scored, and where anything is missing from then on."""
    server = serve(key="another")
    wrong: dict[str, Any] = {"openai_key": "wrong", **ASK_ONCE}
    with (
        open_reward("vcapsbench", server, tmp_path, **wrong) as reward,
        pytest.raises(JudgeStoppedError, match=r"4 of 4 completions have no reward.*401"),
    ):
        rewarded(reward)
    server = serve()
    with open_reward("vcapsbench", server, tmp_path, **ASK_ONCE) as reward:
        known = rewarded(reward)
        server.behaviour.status = 401
        others = [*CAPTIONS[:3], "A cow."]
        assert rewarded(reward, others)[:3] == known[:3]
        with pytest.raises(JudgeStoppedError, match="1 of 4 completions"):
            rewarded(reward, others)


def test_a_budget_that_is_never_enough_ends_training(
    serve: ServerFactory, tmp_path: Path, logged: list[str]
) -> None:
    """After some batches without a single verdict, which are left out until then."""
    server = serve(status=503)
    settings: dict[str, Any] = {"time_budget_s": 0.1, **ASK_ONCE}
    with open_reward("vcapsbench", server, tmp_path, **settings) as reward:
        for _ in range(3):
            assert rewarded(reward) == [None] * 4
        with pytest.raises(JudgeStoppedError, match=r"none in 4 batches in a row.*time_budget_s"):
            rewarded(reward)
    assert not [line for line in logged if line.startswith("ERROR")]


def test_a_budget_counts_for_the_whole_batch(serve: ServerFactory, tmp_path: Path) -> None:
    """What is answered by then has its reward, the late reply is free in the next batch."""
    server = serve(latency_s=0.2)
    settings: dict[str, Any] = {"time_budget_s": 0.5, "concurrency": 4, **ASK_ONCE}
    with open_reward("vcapsbench", server, tmp_path, **settings) as reward:
        first = rewarded(reward)
        assert None not in first
        n_sent = server.counts.n_requests
        assert n_sent < 24
        for _ in range(2):
            rewarded(reward)
        last = rewarded(reward)
        assert server.counts.n_requests == 24
        assert server.counts.n_repeated == 0
    with open_reward("vcapsbench", server, tmp_path, **ASK_ONCE) as whole:
        assert rewarded(whole) == last


def test_it_can_be_copied_pickled_and_forked(opened: Open, server: JudgeServer) -> None:
    """A copy is the same object; another process has an engine of its own."""
    with opened() as reward:
        rewards = rewarded(reward)
        assert copy.deepcopy({"args": reward})["args"] is reward
        assert copy.copy(reward) is reward
        with pickle.loads(pickle.dumps(reward)) as other:  # noqa: S301 - our own
            assert rewarded(other) == rewards
            assert other.__name__ == reward.__name__ == "ar"
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                rewards = rewarded(reward, [*CAPTIONS[:3], "A cow."])
                os.write(write, json.dumps(rewards).encode())
            finally:
                os._exit(0)
        os.close(write)
        os.waitpid(child, 0)
        assert json.loads(os.read(read, 4096))[:3] == rewards[:3]
        assert rewarded(reward) == rewards


def test_a_coroutine_gives_the_same(opened: Open) -> None:
    """TRL awaits it beside other reward functions."""
    with opened() as reward:
        later = reward.asynchronous
        assert asyncio.iscoroutinefunction(later)
        assert later.__name__ == "ar"
        rewards = asyncio.run(later([""] * 4, CAPTIONS, **columns()))
        assert rewards == rewarded(reward)


def test_verl_has_the_same_rewards(opened: Open) -> None:
    """Of a batch and one by one, with questions as ground truth or in mappings."""
    truths = [QUESTIONS[clip] for clip in CLIPS]
    infos = [{"clip_id": clip, "index": place} for place, clip in enumerate(CLIPS)]
    with opened() as reward:
        expected = rewarded(reward)
        assert reward.compute_scores(["x"] * 4, CAPTIONS, truths, infos) == expected
        told = [json.dumps({"clip_id": c, "questions": QUESTIONS[c]}) for c in CLIPS]
        assert reward.compute_scores(["x"] * 4, CAPTIONS, told) == expected
        single = [
            reward.compute_score(
                data_source="x", solution_str=caption, ground_truth=truth, extra_info=info
            )
            for caption, truth, info in zip(CAPTIONS, truths, infos, strict=True)
        ]
        assert single == expected
    with opened(missing=None) as left_out, pytest.raises(SettingsError, match="numbers alone"):
        left_out.compute_scores(["x"] * 4, CAPTIONS, truths, infos)


def test_one_rollout_of_verls_has_the_mean_of_earlier_ones(
    opened: Open, server: JudgeServer
) -> None:
    """Of its clip's; where nothing is known it is an error, and no guess."""
    server.script = refuse("A dog sits.")
    ask = {"data_source": "x", "ground_truth": QUESTIONS["a"], "extra_info": {"clip_id": "a"}}
    with opened() as reward:
        with pytest.raises(JudgeStoppedError, match="at least one completion"):
            reward.compute_score(solution_str="A dog sits.", **ask)
        known = reward.compute_score(solution_str="A dog runs.", **ask)
        assert reward.compute_score(solution_str="A dog sits.", **ask) == known


def test_rollouts_that_are_awaited_are_asked_about_together(
    opened: Open, server: JudgeServer
) -> None:
    """However few threads an event loop has of its own; as verl's reward loop calls it."""
    clips, captions = [f"clip {n}" for n in range(60)], [f"A dog runs, {n}." for n in range(60)]
    asked = [yes_no(2, about=clip) for clip in clips]
    server.behaviour.latency_s = 0.3
    with opened(concurrency=120) as reward:
        score = partial(reward.acompute_score)
        assert inspect.iscoroutinefunction(score)

        async def scored() -> list[float]:
            loop = asyncio.get_running_loop()
            loop.set_default_executor(ThreadPoolExecutor(1))
            rollouts = zip(captions, asked, clips, strict=True)
            return await asyncio.gather(
                *(
                    score(
                        data_source="x",
                        solution_str=caption,
                        ground_truth=questions,
                        extra_info={"clip_id": clip, "num_turns": None},
                        reward_router_address=None,
                    )
                    for caption, questions, clip in rollouts
                )
            )

        rewards = asyncio.run(scored())
        assert server.counts.most_in_flight > 30, "one thread would have two requests in flight"
        assert rewards == reward([""] * 60, captions, clip_id=clips, questions=asked)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_one_without_a_verdict_waits_for_those_under_way(
    concurrency: int, opened: Open, server: JudgeServer
) -> None:
    """The first to come is no reason to end; where all are without, each is an error."""
    server.script = refuse("A dog sits.")
    ask = {"data_source": "x", "ground_truth": QUESTIONS["a"], "extra_info": {"clip_id": "a"}}
    with opened(concurrency=concurrency) as reward:

        async def scored(captions: Sequence[str]) -> list[Any]:
            return await asyncio.gather(
                *(reward.acompute_score(solution_str=caption, **ask) for caption in captions),
                return_exceptions=True,
            )

        first = asyncio.run(scored(["A dog sits."] * 3))
        assert [type(each) for each in first] == [JudgeStoppedError] * 3
        without, known = asyncio.run(scored(["A dog sits.", "A dog runs."]))
    assert without == known
    assert isinstance(known, float)


def one_rollout(clip: str = "a", n_questions: int = 2) -> dict[str, Any]:
    """What verl hands over beside the caption."""
    return {
        "data_source": "x",
        "ground_truth": yes_no(n_questions, about=clip),
        "extra_info": {"clip_id": clip},
    }


def test_rollouts_without_a_verdict_may_be_the_first_to_end(
    server: JudgeServer, tmp_path: Path
) -> None:
    """Sixteen empty captions of 64 end nothing while the others are asked about."""
    server.behaviour.latency_s = 0.2
    captions = ["" if number % 4 == 0 else f"A dog, {number}." for number in range(64)]
    ask = {"data_source": "x", "ground_truth": ["A dog."], "extra_info": {"clip_id": "a"}}
    with open_reward("gveval_ref_only", server, tmp_path) as reward:

        async def scored() -> list[float]:
            return await asyncio.gather(
                *(reward.acompute_score(solution_str=caption, **ask) for caption in captions)
            )

        rewards = asyncio.run(scored())
        in_one = reward.compute_scores(
            ["x"] * 64, captions, [["A dog."]] * 64, [{"clip_id": "a"}] * 64
        )
    known = [number for number, caption in enumerate(captions) if caption]
    assert [rewards[number] for number in known] == [in_one[number] for number in known]
    assert all(min(in_one) <= reward <= max(in_one) for reward in rewards)


def test_a_row_of_rollouts_without_a_verdict_ends_training(
    opened: Open, server: JudgeServer
) -> None:
    """Hundreds of them, after one that had one: there is nothing left to learn from."""
    server.script = refuse("A dog sits")
    with opened() as reward:
        reward.compute_score(solution_str="A dog runs.", **one_rollout())
        for _ in range(255):
            reward.compute_score(solution_str="A dog sits.", **one_rollout())
        with pytest.raises(JudgeStoppedError, match="got none in 256"):
            reward.compute_score(solution_str="A dog sits.", **one_rollout())


def test_later_rollouts_do_not_prolong_an_earlier_one_s_budget(
    opened: Open, server: JudgeServer
) -> None:
    """Each has its own, also where it has no verdict and waits for others."""
    server.script = lambda _: "hang"
    seconds: list[float] = []
    with opened(time_budget_s=1.0) as reward:

        async def one(number: int) -> None:
            await asyncio.sleep(0.6 * number)
            began_s = time.monotonic()
            with pytest.raises(JudgeStoppedError, match="at least one completion"):
                await reward.acompute_score(
                    solution_str="A dog.", **one_rollout(f"clip {number}", 1)
                )
            seconds.append(time.monotonic() - began_s)

        async def all_of_them() -> None:
            await asyncio.gather(*map(one, range(6)))

        asyncio.run(all_of_them())
    assert len(seconds) == 6
    assert max(seconds) < 1.6


def test_a_fork_does_not_wait_for_rollouts_of_its_parent(opened: Open, server: JudgeServer) -> None:
    """None of its threads will end them."""
    server.script = refuse("A ")
    server.behaviour.latency_s = 0.3
    ended: list[BaseException] = []
    with opened() as reward:

        def one() -> None:
            try:
                reward.compute_score(solution_str="A dog.", **one_rollout())
            except JudgeStoppedError as error:
                ended.append(error)

        thread = threading.Thread(target=one)
        thread.start()
        while not server.counts.n_in_flight:
            time.sleep(0.01)
        child = os.fork()
        if not child:
            status = 1
            with suppress(BaseException):
                signal.alarm(30)
                try:
                    reward.compute_score(solution_str="A cat.", **one_rollout("b"))
                except JudgeStoppedError:
                    status = 0
            os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        thread.join()
    assert len(ended) == 1


def test_closing_gives_no_awaited_rollout_a_mean(opened: Open, server: JudgeServer) -> None:
    """What was not answered is an error, then and later; what was spent is still known."""
    server.behaviour.latency_s = 0.5
    reward = opened()
    first = reward.compute_score(solution_str="A dog 0.", **one_rollout())

    async def closed_amid() -> list[Any]:
        rollouts = [
            asyncio.ensure_future(
                reward.acompute_score(solution_str=f"A dog {number}.", **one_rollout())
            )
            for number in range(1, 100)
        ]
        await asyncio.sleep(0.3)
        await asyncio.to_thread(reward.close)
        return await asyncio.gather(*rollouts, return_exceptions=True)

    outcomes = asyncio.run(closed_amid())
    assert isinstance(first, float)
    assert {type(outcome) for outcome in outcomes} == {JudgeStoppedError}
    with pytest.raises(JudgeStoppedError, match="closed"):
        asyncio.run(reward.acompute_score(solution_str="Late.", **one_rollout()))
    assert reward.scorer.usage.calls >= 2
    assert "closed" in (reward.scorer.stopped or "")


def test_a_process_ends_whose_rollout_was_given_up(server: JudgeServer, tmp_path: Path) -> None:
    """No thread of a reward that waits for a judge that hangs keeps it."""
    server.script = lambda _: "hang"
    code = f"""
import asyncio
from lmms_eval_captions import CaptionReward
reward = CaptionReward("vcapsbench", judge="judge", judge_url={server.url!r},
                       cache={str(tmp_path)!r}, evaluation=None)
ask = {one_rollout()!r}
try:
    asyncio.run(asyncio.wait_for(reward.acompute_score(solution_str="A dog.", **ask), 1))
except asyncio.TimeoutError:
    print("given up")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "given up\n"


def test_questions_that_are_not_there_are_asked_for(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column of another name is no matter of the hub alone."""
    monkeypatch.setenv("LMMS_CAPTIONS_DATA", str(tmp_path))
    with opened() as reward, pytest.raises(DataError, match="a column of questions, called as"):
        reward([""], ["A dog."], clip_id=["a"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"metric": "bleu"}, "metric: expected one of ar, ir, cr"),
        ({"missing": 0.0}, "missing: expected 'mean' or None"),
        ({"time_budget_s": 0}, "time_budget_s: expected seconds above 0"),
        ({"columns": {"caption": "x"}}, "columns: expected names of clip_id"),
        ({"evaluation": "vdc_mood"}, "evaluation: expected tasks or groups"),
    ],
)
def test_what_cannot_be_used_is_said(arguments: dict[str, Any], words: str, opened: Open) -> None:
    """Before anything is asked."""
    with pytest.raises(SettingsError, match=words):
        opened(**arguments)


def test_a_scorer_says_why_it_stopped(serve: ServerFactory, tmp_path: Path) -> None:
    """Nothing while the judge answers."""
    server = serve()
    with open_scorer("vcapsbench", server, tmp_path, **ASK_ONCE) as scorer:
        assert isinstance(scorer, Scorer)
        assert scorer.stopped is None
        scorer.score(CAPTIONS[:1], [QUESTIONS["a"]])
        assert scorer.stopped is None
        server.behaviour.status = 401
        scorer.score(CAPTIONS[1:2], [QUESTIONS["a"]])
        assert "401" in (scorer.stopped or "")


def test_questions_without_a_verdict_are_told(
    opened: Open, server: JudgeServer, logged: list[str]
) -> None:
    """What is answered counts; a line and the trainer's log have the share of the others."""
    server.script = refuse("number 0?")
    shares: dict[str, float] = {}
    with opened() as reward:
        rewards = reward(
            [""] * 4,
            CAPTIONS,
            **columns(),
            log_metric=lambda name, value: shares.update({name: value}),
        )
    assert None not in rewards
    assert shares["ar/missing"] == 0.0
    assert 0 < shares["ar/unscored"] < 0.5
    assert any("questions are unscored, rewards are those of the others" in line for line in logged)


@pytest.mark.parametrize("budget_s", [0, -1, float("inf"), float("nan"), True, "5", 1e10])
def test_a_budget_that_is_none_is_refused(budget_s: Any, opened: Open) -> None:
    """Rather than score nothing."""
    with pytest.raises(SettingsError, match="time_budget_s: expected seconds above 0"):
        opened(time_budget_s=budget_s)


@pytest.mark.parametrize("clip_id", [12.0, b"a", ["a"], {"a": 1}])
def test_names_that_are_none_are_refused(clip_id: Any, opened: Open) -> None:
    """A number with a point is no name: it would pass the guard."""
    with opened() as reward, pytest.raises(DataError, match="clip_id: expected text or a whole"):
        reward([""], ["A dog."], clip_id=[clip_id], questions=[QUESTIONS["a"]])


def test_an_empty_message_is_an_empty_caption(opened: Open) -> None:
    """It counts as one that says nothing, however the captioner says nothing."""
    said: list[object] = ["", None, []]
    messages = [[{"role": "assistant", "content": content}] for content in said]
    with opened() as reward:
        assert reward([""] * 3, messages, clip_id=["a"] * 3, questions=[QUESTIONS["a"]] * 3) == [
            0.0,
            0.0,
            0.0,
        ]


def test_verl_s_questions_may_come_column_by_column(opened: Open) -> None:
    """As a table hands a list of records over; what ``extra_info`` says stays."""
    question = {"question": ["Is it there?"], "answer": ["yes"]}
    with opened() as reward:
        by_column = reward.compute_scores([""], ["A dog."], [question], [{"clip_id": "mine"}])
        by_row = reward.compute_scores(
            [""],
            ["A dog."],
            [[{"question": "Is it there?", "answer": "yes"}]],
            [{"clip_id": "mine"}],
        )
    assert by_column == by_row


def test_a_key_is_in_no_text_of_it(opened: Open) -> None:
    """Neither pickled nor shown."""
    with opened(openai_key="sk-very-secret-word") as reward:
        texts = [repr(vars(reward)), repr(reward.__reduce__()), repr(pickle.dumps(reward))]
    assert not [text for text in texts if "very-secret" in text]


@pytest.mark.parametrize("reference", [float("nan"), None, b"A dog.", [5]])
def test_a_reference_that_is_none_is_told(
    reference: Any, server: JudgeServer, tmp_path: Path
) -> None:
    """It is not put into the prompt as a word."""
    with open_reward("gveval_ref_only", server, tmp_path) as reward:
        with pytest.raises(DataError, match="reference"):
            reward([""], ["A dog."], clip_id=["a"], reference=[reference])
        assert server.counts.n_requests == 0


def test_frames_are_shown_as_they_are(serve: ServerFactory, tmp_path: Path) -> None:
    """One array of all frames, or a list of them, has what the scorer gives."""
    server = serve(logprobs="whole")
    frames: Any = np.arange(4 * 16 * 16 * 3, dtype=np.uint8).reshape(4, 16, 16, 3)
    videos = [frames, list(frames)]
    with open_scorer("gveval_ref_free", server, tmp_path) as scorer:
        expected = scorer.score(["A dog."], frames=[frames])[0].scores["avg"] / 100.0
    with open_reward("gveval_ref_free", server, tmp_path) as reward:
        rewards = reward([""] * 2, ["A dog."] * 2, clip_id=["a", "b"], video=videos)
    assert rewards == [expected, expected]


def test_a_judge_that_stopped_in_the_middle_ends_training(
    serve: ServerFactory, tmp_path: Path
) -> None:
    """Where every caption has some verdict, too: the rest will never come."""
    server = serve()
    with open_reward("vcapsbench", server, tmp_path, concurrency=1, **ASK_ONCE) as reward:
        answered = iter(range(10))

        def script(_payload: dict[str, Any]) -> Say | None:
            if next(answered, None) is None:
                server.behaviour = replace(server.behaviour, status=401)
            return None

        server.script = script
        questions = [yes_no(20)]
        first = reward([""], ["A dog."], clip_id=["a"], questions=questions)
        assert first[0] is not None
        with pytest.raises(JudgeStoppedError, match="401"):
            reward([""], ["A dog."], clip_id=["a"], questions=questions)
