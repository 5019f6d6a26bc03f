"""Rewards of a batch of rollouts, as TRL and verl ask for them, with a judge server of the test."""

from __future__ import annotations

import asyncio
import inspect
import json
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import ServerFactory
from judge_server import JudgeServer, Say
from lmms_eval_captions import CaptionReward
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


def test_without_a_verdict_the_others_mean_counts(
    opened: Open, server: JudgeServer, logged: list[str]
) -> None:
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
    server = serve(latency_s=0.4)
    settings: dict[str, Any] = {"time_budget_s": 1.3, "concurrency": 4, **ASK_ONCE}
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


def test_verl_has_the_same_rewards(opened: Open) -> None:
    """Questions as ground truth or in mappings, as lists or JSON."""
    truths = [QUESTIONS[clip] for clip in CLIPS]
    infos = [{"clip_id": clip, "index": place} for place, clip in enumerate(CLIPS)]
    told = [json.dumps({"clip_id": clip, "questions": QUESTIONS[clip]}) for clip in CLIPS]

    async def scored(reward: CaptionReward, *rows: Sequence[object]) -> list[float]:
        given = zip(CAPTIONS, *rows, strict=True)
        return await asyncio.gather(*(reward.acompute_score("x", *row) for row in given))

    with opened() as reward:
        expected = rewarded(reward)
        assert asyncio.run(scored(reward, truths, infos)) == expected
        assert asyncio.run(scored(reward, told)) == expected
    with opened(missing=None) as left_out, pytest.raises(SettingsError, match="only numbers"):
        asyncio.run(scored(left_out, truths, infos))


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


@pytest.mark.parametrize(
    ("name", "content"),
    [("ids.txt", "b.mp4\n"), ("ids.jsonl", '{"clip_id": "b"}\n'), ("ids.csv", "clip_id\nb\n")],
)
def test_clips_of_the_evaluation_set_are_refused(
    name: str, content: str, opened: Open, server: JudgeServer, tmp_path: Path
) -> None:
    """By their names, whatever the ending and the case; nothing is asked."""
    (tmp_path / name).write_text(content)
    with opened(evaluation=tmp_path / name) as reward:
        with pytest.raises(DataError, match=rf"clip 'B.MKV'.*{name} has a clip with the name"):
            reward([""] * 2, CAPTIONS[:2], clip_id=["a", "B.MKV"], questions=[yes_no(2)] * 2)
        assert not server.counts.n_requests
        assert reward([""], CAPTIONS[:1], clip_id=["a"], questions=[yes_no(2)]) != [None]
    (tmp_path / name).write_text("")
    with pytest.raises(DataError, match=f"{name}: expected clip ids"):
        opened(evaluation=tmp_path / name)


def test_questions_without_a_verdict_are_told(
    opened: Open, server: JudgeServer, logged: list[str]
) -> None:
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


def test_a_key_is_in_no_text_of_it(opened: Open) -> None:
    """Neither pickled nor shown."""
    with opened(openai_key="sk-very-secret-word") as reward:
        texts = [repr(vars(reward)), repr(reward.__reduce__()), repr(pickle.dumps(reward))]
    assert not [text for text in texts if "very-secret" in text]


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
