"""The scorer as a function: what it takes, what it gives, and what it cannot use."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from clip_rows import PROTOCOLS, WITH_QUESTIONS, WITH_VIDEO, rows_of
from conftest import ServerFactory
from judge_server import Refuse
from lmms_eval_captions import CaptionScore, Scorer
from lmms_eval_captions.judges.errors import (
    CaptionsError,
    DataError,
    JudgeStoppedError,
    SettingsError,
)
from lmms_eval_captions.judges.settings import JudgeSettings, variables_of
from lmms_eval_captions.scorer.settings import ScorerSettings


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / "cache"))


def score_rows(scorer: Scorer, rows: list[dict[str, Any]], videos: Path) -> list[CaptionScore]:
    """A scorer's scores of rows as tables have them."""
    return scorer.score(
        [row["caption"] for row in rows],
        [row["questions"] for row in rows] if "questions" in rows[0] else None,
        [videos / row["video"] for row in rows] if "video" in rows[0] else None,
        references=[row["reference"] for row in rows] if "reference" in rows[0] else None,
        clip_ids=[row["clip_id"] for row in rows],
    )


def numbers(scores: list[CaptionScore]) -> list[dict[str, float | None]]:
    """Each caption's scores; nan, which equals nothing, as ``None``."""
    return [
        {name: None if isnan(value) else value for name, value in each.scores.items()}
        for each in scores
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_scores_come_in_order(protocol: str, tmp_path: Path) -> None:
    """With the clips' names, a score for each metric, and every question's judgement."""
    rows = rows_of(protocol, 5, tmp_path)
    with Scorer(protocol, judge="lexical") as scorer:
        scores = score_rows(scorer, rows, tmp_path)
        assert [each.clip_id for each in scores] == [row["clip_id"] for row in rows]
        for each in scores:
            assert tuple(each.scores) == scorer.metrics
            assert len(each.judgements) == each.n_questions >= 1
        assert scorer.headline in scorer.totals(scores)
        assert scorer.signature(scores).startswith(f"{protocol}|judge:lexical")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_async_twin_gives_the_same(protocol: str, tmp_path: Path) -> None:
    """In a loop that goes on meanwhile."""
    rows = rows_of(protocol, 3, tmp_path)

    async def in_a_loop() -> list[CaptionScore]:
        async with Scorer(protocol, judge="lexical") as scorer:
            return await scorer.ascore(
                [row["caption"] for row in rows],
                [row["questions"] for row in rows] if "questions" in rows[0] else None,
                [tmp_path / row["video"] for row in rows] if "video" in rows[0] else None,
                references=[row["reference"] for row in rows] if "reference" in rows[0] else None,
            )

    with Scorer(protocol, judge="lexical") as scorer:
        expected = numbers(score_rows(scorer, rows, tmp_path))
    assert numbers(asyncio.run(in_a_loop())) == expected


@pytest.mark.parametrize("protocol", WITH_QUESTIONS)
@pytest.mark.parametrize("kind", ["pandas", "numpy", "arrow"])
def test_columns_of_other_libraries_are_taken(kind: str, protocol: str, tmp_path: Path) -> None:
    """Series, arrays and Arrow's columns give what lists give; a missing caption is none."""
    rows = rows_of(protocol, 4, tmp_path)
    rows[2]["caption"] = None
    table = pa.Table.from_pylist(rows)
    frame = table.to_pandas()
    captions: Any
    questions: Any
    if kind == "arrow":
        captions, questions = table.column("caption"), table.column("questions")
    elif kind == "pandas":
        captions, questions = frame["caption"], frame["questions"]
        captions = captions.where(captions.notna(), float("nan"))
    else:
        captions, questions = np.array(frame["caption"]), np.array(frame["questions"])
    with Scorer(protocol, judge="lexical") as scorer:
        found = scorer.score(captions, questions)
        assert numbers(found) == numbers(score_rows(scorer, rows, tmp_path))
    assert pd.isna(found[2].scores[scorer.headline])


@pytest.mark.parametrize("protocol", WITH_VIDEO)
def test_frames_at_hand_are_shown(protocol: str, serve: ServerFactory) -> None:
    """Pictures and arrays are the same to the judge; what is no picture is said."""
    from PIL import Image

    server = serve(latency_s=0.0, logprobs="whole")
    frames = [np.full((20, 30, 3), shade, dtype=np.uint8) for shade in (0, 100, 200)]
    pictures = [Image.fromarray(frame) for frame in frames]
    told = [["A dog."]] if protocol == "gveval_combined" else None
    with Scorer(protocol, judge="judge", judge_url=server.url) as scorer:
        first = scorer.score(["A dog."], frames=[frames], references=told)
        n_calls = server.counts.n_requests
        assert numbers(scorer.score(["A dog."], frames=[pictures], references=told)) == numbers(
            first
        )
        assert server.counts.n_requests == n_calls == 1
        [bad] = scorer.score(["A cat."], frames=[[np.zeros((20, 30))]], references=told)
    assert "frame 0: expected a picture of PIL" in next(iter(bad.reasons))


def test_what_is_wrong_is_said_before_anything_is_asked(serve: ServerFactory) -> None:
    """A question that is none, or a column of another length."""
    server = serve(latency_s=0.0)
    good = [{"question": "Is there a dog?", "answer": "yes"}]
    with Scorer("vcapsbench", judge="j", judge_url=server.url) as scorer:
        with pytest.raises(DataError, match=r"clip 'b': questions, question 1: expected"):
            scorer.score(["A dog.", "A cat."], [good, [{"question": "?"}]], clip_ids=["a", "b"])
        with pytest.raises(ValueError, match=r"questions: expected 2, one for each caption, got 1"):
            scorer.score(["A dog.", "A cat."], [good])
        with pytest.raises(DataError, match=r"caption: expected text, got 7"):
            scorer.score([7], [good])  # type: ignore[list-item]  # as from a table
    assert not server.counts.n_requests


@pytest.mark.parametrize("value", [None, [], [1], "no question", [{"answer": "yes"}]])
@pytest.mark.parametrize("protocol", WITH_QUESTIONS)
def test_questions_that_are_none_are_told(protocol: str, value: Any, tmp_path: Path) -> None:
    """Each benchmark says what it expects; where none are given, where its own are looked for."""
    assert tmp_path
    with Scorer(protocol, judge="lexical") as scorer, pytest.raises(CaptionsError) as error:
        scorer.score(["A dog."], None if value is None else [value])
    assert protocol in str(error.value) or "question" in str(error.value)


def test_a_closed_scorer_says_so() -> None:
    """It takes no caption any more; to close it twice is no harm."""
    scorer = Scorer("vdc", judge="lexical")
    scorer.close()
    scorer.close()
    with pytest.raises(CaptionsError, match="this scorer is closed"):
        scorer.score(["A dog."], [[{"question": "Who?", "answer": "A dog"}]])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"concurency": 8}, "got concurency"),
        ({"concurrency": 0}, "LMMS_CAPTIONS_JUDGE_CONCURRENCY: expected a whole number"),
        ({"judge": "gpt-4.1", "openai_key": None}, "OPENAI_API_KEY"),
        ({"judge": None, "judge_url": "http://127.0.0.1:9/v1"}, "LMMS_CAPTIONS_JUDGE"),
    ],
)
def test_settings_that_cannot_be_used_are_told_at_once(
    settings: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scorer that is made can be asked."""
    for name in ("OPENAI_API_KEY", "LMMS_CAPTIONS_JUDGE", "LMMS_CAPTIONS_JUDGE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SettingsError, match=words):
        Scorer("vdc", **settings)


def test_each_setting_of_the_judge_is_a_keyword() -> None:
    """But those of a launcher's processes, of samples and of batches."""
    of_runs = {"rank", "world_size", "precision", "cheap_judge", "mode"}
    assert set(ScorerSettings.__annotations__) == set(variables_of(JudgeSettings)) - of_runs


def test_neither_torch_nor_lmms_eval_is_imported(tmp_path: Path) -> None:
    """Nor what they bring: a scorer starts fast, and works in programs that have their own."""
    program = (
        "import sys\nfrom lmms_eval_captions import Scorer\n"
        "with Scorer('vdc', judge='lexical') as scorer:\n"
        "    scorer.score(['A dog.'], [[{'question': 'Who?', 'answer': 'A dog'}]])\n"
        "heavy = {'torch', 'lmms_eval', 'transformers', 'datasets', 'cv2', 'accelerate'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        (sys.executable, "-c", program),
        capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout == "[]\n"


def test_a_limit_without_a_price_is_refused_when_it_is_made(tmp_path: Path) -> None:
    known: Any = {"judge": "my-judge", "openai_key": "sk-1", "cache": tmp_path}
    with pytest.raises(JudgeStoppedError, match="price of 'my-judge' is not known"):
        Scorer("vdc", judge_url="https://judge.example.com/v1", **known)
    Scorer("vdc", judge_url="http://127.0.0.1:9/v1", **known)
    Scorer("vdc", judge_url="https://judge.example.com/v1", max_cost_usd=None, **known)


def _many(n: int) -> tuple[list[str], list[list[dict[str, str]]]]:
    """Captions with a question each, all different."""
    captions = [f"A ball of number {number} rolls." for number in range(n)]
    return captions, [[{"question": f"Number {n}?", "answer": f"{n}"}] for n in range(n)]


def test_a_cancelled_call_asks_no_more(serve: ServerFactory) -> None:
    server = serve(latency_s=0.05)
    n_in_flight = 8

    async def score() -> tuple[int, list[CaptionScore]]:
        async with Scorer(
            "vdc", judge="judge", openai_base_url=server.url, concurrency=n_in_flight
        ) as scorer:
            captions, questions = _many(1000)
            call = asyncio.create_task(scorer.ascore(captions, questions))
            while server.counts.n_answered < 50:
                await asyncio.sleep(0.01)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            n_then = server.counts.n_requests
            next_call = await scorer.ascore(captions[-2:], questions[-2:])
            return server.counts.n_requests - n_then, next_call

    n_more, scores = asyncio.run(score())
    assert n_more <= n_in_flight + 2 * 2
    assert [score.n_unscored for score in scores] == [0, 0]


def test_the_limit_stays_one_after_a_judge_was_stopped(
    serve: ServerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key is refused for a moment: what was billed before counts for the next scorer."""
    server = serve(latency_s=0.0)
    usage = {"prompt_tokens": 450, "completion_tokens": 50}
    monkeypatch.setattr(server, "more_usage", lambda _: usage)
    prices = tmp_path / "prices.yaml"
    prices.write_text("models: {judge: {input: 100, output: 100}}")
    settings: Any = {"openai_key": "sk-1", "max_cost_usd": 10.0, "prices": prices}

    def score(n: int, text: str) -> None:
        captions, questions = _many(n)
        scorers.append(Scorer("vdc", judge="judge", openai_base_url=server.url, **settings))
        scorers[-1].score([f"{text} {caption}" for caption in captions], questions)

    scorers: list[Scorer] = []
    score(40, "Once.")
    monkeypatch.setattr(server, "script", lambda _: Refuse(401, "Incorrect API key"))
    score(5, "Twice.")
    monkeypatch.setattr(server, "script", lambda _: None)
    n_before = server.counts.n_answered
    score(400, "Thrice.")
    assert n_before < server.counts.n_answered <= 10.0 / (500 * 100 / 1e6)


def test_a_scorer_that_is_dropped_leaves_no_thread(serve: ServerFactory) -> None:
    """Nobody need close it."""

    def judges() -> list[threading.Thread]:
        return [each for each in threading.enumerate() if each.name == "judge"]

    before = judges()
    scorer = Scorer("vdc", judge="judge", openai_base_url=serve().url)
    scorer.score(*_many(3))
    assert len(judges()) == len(before) + 1
    del scorer
    gc.collect()
    assert judges() == before
