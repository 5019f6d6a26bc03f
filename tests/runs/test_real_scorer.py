"""Replies of a real small model through ``score``, a scorer and a reward, in every protocol.

It sees nothing in pictures and much of what it says cannot be read: that is what is to be counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from pathlib import Path
from typing import Any, Final

import pytest

from clip_rows import PROTOCOLS, read_rows, rows_of, write_rows
from lmms_eval_captions import CaptionReward, CaptionScore, Scorer
from lmms_eval_captions.cli.main import main
from real_judge import TIMEOUT_S
from small_model import NAME, Installed
from vllm_server import KEY, VllmServer

pytestmark = pytest.mark.real

N_CLIPS: Final = 3


@pytest.fixture(scope="module")
def server(
    seeing_model: Installed, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[VllmServer]:
    """The small model, which takes pictures, and is cut where it rambles."""
    log = tmp_path_factory.mktemp("server") / "vllm.log"
    with VllmServer(seeing_model, log, n_pictures=4) as running:
        yield running


@pytest.fixture(autouse=True)
def _judge(
    server: VllmServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> pytest.MonkeyPatch:
    for name, value in {
        "OPENAI_API_KEY": KEY,
        "LMMS_CAPTIONS_JUDGE": NAME,
        "LMMS_CAPTIONS_JUDGE_URL": server.url,
        "LMMS_CAPTIONS_JUDGE_TIMEOUT": TIMEOUT_S or "900",
        "LMMS_CAPTIONS_JUDGE_FRAMES": "2",
        "LMMS_CAPTIONS_CACHE": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_reply_is_a_verdict_or_a_reason(
    protocol: str, server: VllmServer, tmp_path: Path
) -> None:
    """Nothing is asked twice, nothing is lost, and all three say the same to the last bit."""
    videos = tmp_path / "videos"
    rows = rows_of(protocol, N_CLIPS, videos)
    write_rows(tmp_path / "in/a.parquet", rows)
    status = main(
        [
            "score", "--in", str(tmp_path / "in"), "--out", str(tmp_path / "out"),
            "--protocol", protocol, "--videos", str(videos),
        ]
    )  # fmt: skip
    found = read_rows(tmp_path / "out/scores/a.parquet")
    n_requests = server.n_requests()
    scored = _scored(protocol, rows, videos)
    assert [row["clip_id"] for row in found] == [row["clip_id"] for row in rows]
    for row, score in zip(found, scored, strict=True):
        assert {name: row[name] for name in score.scores} == _known(score)
        assert row["n_questions"] == score.n_questions > 0
        assert row["n_unscored"] == score.n_unscored == sum(score.reasons.values())
        assert bool(row["why_unscored"]) == (score.n_unscored > 0)
        assert len(score.judgements) == score.n_questions
        assert all(judgement.reply or judgement.reason for judgement in score.judgements)
        unread = [judgement for judgement in score.judgements if judgement.reason is not None]
        assert len(unread) == score.n_unscored
    n, n_unscored = (sum(row[name] for row in found) for name in ("n_questions", "n_unscored"))
    print(f"{protocol}: {n} questions, {n_unscored} unscored, exit code {status}")  # noqa: T201
    assert status == (1 if n_unscored else 0)
    settings: dict[str, Any] = {"evaluation": None, "normalise": False, "missing": None}
    with CaptionReward(protocol, videos=videos, **settings) as reward:
        rewards = reward([""] * N_CLIPS, [row["caption"] for row in rows], **_columns(rows, videos))
        assert rewards == [_known(score)[reward.metric] for score in scored]
    assert server.n_requests() == n_requests


def _scored(protocol: str, rows: list[dict[str, Any]], videos: Path) -> list[CaptionScore]:
    with Scorer(protocol) as scorer:
        return scorer.score(
            [row["caption"] for row in rows],
            [row.get("questions", ()) for row in rows],
            [videos / row["video"] if "video" in row else None for row in rows],
            references=[row.get("reference") or () for row in rows],
            clip_ids=[row["clip_id"] for row in rows],
        )


def _known(score: CaptionScore) -> dict[str, float | None]:
    """Scores, with nothing in the place of nan, which equals nothing."""
    return {name: None if isnan(value) else value for name, value in score.scores.items()}


def _columns(rows: list[dict[str, Any]], videos: Path) -> dict[str, list[Any]]:
    columns = {name: [row[name] for row in rows] for name in rows[0] if name != "caption"}
    if "video" in columns:
        columns["video"] = [str(videos / name) for name in columns["video"]]
    return columns
