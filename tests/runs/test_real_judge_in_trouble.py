"""A real server that refuses, is too small or dies: runs end, say why, and lose nothing."""

from __future__ import annotations

import json
import threading
import time
from math import isnan
from pathlib import Path
from typing import Final

import pytest

from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from real_judge import headline_of, judge_captions, judged, judging_of
from small_model import install
from stamped_runs import StampedRun
from vllm_server import CONTEXT_TOKENS, KEY, VllmServer

pytestmark = pytest.mark.real

WRONG_KEY: Final = "sk-wrong-7c1f0a"
TASK: Final = "capquiz"
_MOST_S: Final = 900.0


@pytest.fixture(scope="module")
def captions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The captions of the built-in sample."""
    return sample_root(tmp_path_factory.mktemp("sample")) / "vdc" / "captions.jsonl"


def test_a_wrong_key_ends_judging_and_is_written_nowhere(
    real_server: VllmServer, captions: Path, tmp_path: Path
) -> None:
    """The server's own words are told, every question is unscored, and the key is in no file."""
    run = judge_captions(
        real_server,
        tmp_path / "wrong-key",
        captions=captions,
        tasks=[TASK],
        n_videos=2,
        OPENAI_API_KEY=WRONG_KEY,
    ).run
    assert isnan(headline_of(run, TASK))
    reasons = {judgement["reason"] for judgement in judged(run, TASK)}
    assert all("401" in reason for reason in reasons), reasons
    assert "OPENAI_API_KEY" in run.log
    written = [run.log.encode(), *(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())]
    assert not [text for text in written if WRONG_KEY.encode() in text or KEY.encode() in text]


def test_a_caption_beyond_the_context_costs_its_own_questions(
    real_server: VllmServer, captions: Path, tmp_path: Path
) -> None:
    """They are unscored with the server's words; those of the other caption are asked."""
    rows = [json.loads(line) for line in captions.read_text("utf-8").splitlines()]
    long_one, other = list(dict.fromkeys(row["video_id"] for row in rows))[:2]
    for row in rows:
        if row["video_id"] == long_one:
            row["caption"] = "A red ball rolls over the floor. " * CONTEXT_TOKENS
    changed = tmp_path / "captions.jsonl"
    changed.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run = judge_captions(
        real_server, tmp_path / "long", captions=changed, tasks=[TASK], n_videos=2
    ).run
    reasons: dict[str, list[str]] = {long_one: [], other: []}
    for judgement in judged(run, TASK):
        reasons[Path(judgement["video_id"]).stem].append(judgement["reason"] or "")
    assert reasons[long_one]
    assert all(str(CONTEXT_TOKENS) in reason for reason in reasons[long_one]), reasons[long_one]
    assert reasons[other]
    assert not [reason for reason in reasons[other] if "context" in reason]


def test_a_killed_server_ends_a_run_that_another_one_finishes(
    captions: Path, tmp_path: Path
) -> None:
    with VllmServer(install(), tmp_path / "first.log") as server:
        killer = threading.Thread(target=_kill_after, args=(server, 10))
        killer.start()
        started_s = time.monotonic()
        ended = _judge(server, tmp_path / "ended", captions)
        assert time.monotonic() - started_s < _MOST_S
        killer.join()
    n_kept = judging_of(ended.run)["judging"]["calls"]
    assert isnan(headline_of(ended.run, TASK))
    assert n_kept > 0
    assert "run the same command again" in ended.run.log
    with VllmServer(install(), tmp_path / "second.log") as server:
        finished = _judge(server, tmp_path / "finished", captions)
        n_asked = server.n_requests()
    judging = judging_of(finished.run)["judging"]
    assert sum(judging["from_store"].values()) >= n_kept
    assert judging["calls"] == n_asked
    assert not [j for j in judged(finished.run, TASK) if "connect" in (j["reason"] or "")]


def _judge(server: VllmServer, output: Path, captions: Path) -> StampedRun:
    return judge_captions(
        server,
        output,
        captions=captions,
        tasks=[TASK],
        n_videos=12,
        LMMS_CAPTIONS_MAX_UNSCORED="0.5",
        LMMS_CAPTIONS_JUDGE_CONCURRENCY="2",
    )


def _kill_after(server: VllmServer, n_requests: int) -> None:
    """Kill a server once it has answered so many."""
    while server.n_requests() < n_requests:
        time.sleep(0.2)
    server.kill()
