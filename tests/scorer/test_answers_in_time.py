"""A caption that is waited for until a given time: what is in counts, and nothing more is sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from conftest import ServerFactory
from judge_server import JudgeServer
from lmms_eval_captions import CaptionScore, Scorer
from lmms_eval_captions.lmms_eval_tasks.common.clip_protocol import Clip
from lmms_eval_captions.scorer.scorer import OVER
from scorers import open_scorer, yes_no

N_QUESTIONS = 20
N_CAPTIONS = 16
N_REQUESTS = N_QUESTIONS * N_CAPTIONS


def submit_all(
    scorer: Scorer, captions: Sequence[str], budget_s: float | None
) -> list[CaptionScore]:
    """The scores of captions of one clip each, so many seconds after they were handed in."""
    until_s = None if budget_s is None else time.monotonic() + budget_s
    waits: list[Callable[[], CaptionScore]] = [
        scorer.submit(
            scorer.document(Clip(clip_id=str(place), questions=yes_no(N_QUESTIONS))),
            caption,
            until_s=until_s,
        )
        for place, caption in enumerate(captions)
    ]
    return [wait() for wait in waits]


def captions(kind: str) -> list[str]:
    return [f"A {kind} runs {place}." for place in range(N_CAPTIONS)]


def settled(server: JudgeServer) -> int:
    """Requests that came, once no more do."""
    n_before = -1
    while n_before != server.counts.n_requests:
        n_before = server.counts.n_requests
        time.sleep(0.3)
    return n_before


@pytest.mark.parametrize(
    ("protocol", "settings"),
    [
        pytest.param("vcapsbench", {"vcapsbench_asks": 1}, id="one request"),
        pytest.param("vcapsbench", {}, id="three at once"),
        pytest.param("vdc", {}, id="one after the other"),
    ],
)
def test_nothing_is_sent_when_time_is_over(
    protocol: Any, settings: dict[str, Any], serve: ServerFactory, tmp_path: Path, logged: list[str]
) -> None:
    server = serve(latency_s=0.15)
    with open_scorer(protocol, server, tmp_path, concurrency=32, **settings) as scorer:
        started_s = time.monotonic()
        scores = submit_all(scorer, captions("dog"), 0.6)
        took_s = time.monotonic() - started_s
        n_sent = settled(server)
        assert 0.55 < took_s < 2.0
        reasons = {reason for score in scores for reason in score.reasons}
        n_unscored = sum(score.n_unscored for score in scores)
        assert reasons == {OVER}
        assert 0 < n_unscored < N_REQUESTS
        assert n_sent == server.counts.n_answered == server.counts.n_requests
        whole = submit_all(scorer, captions("dog"), 60.0)
        assert sum(score.n_unscored for score in whole) == 0
        assert server.counts.n_repeated == 0
        assert server.counts.n_requests == len(server.counts.answered)
    assert not [line for line in logged if line.startswith(("ERROR", "WARNING"))]


def test_the_next_batch_is_served_at_full_speed(serve: ServerFactory, tmp_path: Path) -> None:
    server = serve(latency_s=0.1)
    settings: dict[str, Any] = {"concurrency": 64, "vcapsbench_asks": 1}
    with open_scorer("vcapsbench", server, tmp_path, **settings) as scorer:
        submit_all(scorer, captions("cat"), None)
        submit_all(scorer, captions("dog"), 0.15)
        started_s = time.monotonic()
        scores = submit_all(scorer, captions("cow"), None)
        assert sum(score.n_unscored for score in scores) == 0
        # Five round trips are 0.5 s.
        assert time.monotonic() - started_s < 2.0
