"""Golden outputs of scores outside of lmms-eval: ``score``, ``Scorer``, ``CaptionReward``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from golden import check, numbers
from lmms_eval_captions import CaptionReward, Scorer
from lmms_eval_captions.cli.main import main
from planted_world import ASPECTS, VIDEOS, quiz, words

PROTOCOLS = ("vdc", "vidcapbench", "vcapsbench", "capquiz", "gveval_ref_only")
KIND = {"primary_category": "video motion", "sub_category": "object motion"}

pytestmark = pytest.mark.usefixtures("folders")


def _caption(video: str) -> str:
    return f"A clip of {words(10, 'clip', video)}."


def _clips(protocol: str) -> dict[str, list[Any]]:
    """Columns of clips that are in no benchmark."""
    names = [f"own-{video}" for video in VIDEOS]
    clips: dict[str, list[Any]] = {"clip_id": names, "caption": [_caption(name) for name in names]}
    if protocol == "gveval_ref_only":
        return {**clips, "reference": [words(9, "own", name) for name in names]}
    pairs = [
        [
            {"question": f"Who {words(2, name, aspect)}?", "answer": words(2, aspect, name)}
            for aspect in ASPECTS
        ]
        for name in names
    ]
    questions: dict[str, list[Any]] = {
        "vdc": pairs,
        "vidcapbench": [[{**pair, **KIND} for pair in each] for each in pairs],
        "vcapsbench": [[f"action*{pair['question']}*yes" for pair in each] for each in pairs],
        "capquiz": [quiz(name) for name in names],
    }
    return {**clips, "questions": questions[protocol]}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_scorer(protocol: str) -> None:
    """Scores of each clip, and the totals."""
    clips = _clips(protocol)
    references = [[text] for text in clips.get("reference", [])] or None
    with Scorer(protocol) as scorer:
        scores = scorer.score(
            clips["caption"],
            clips.get("questions"),
            references=references,
            clip_ids=clips["clip_id"],
        )
        totals = scorer.totals(scores)
    rows = [[score.scores, score.n_questions, score.n_unscored] for score in scores]
    check(f"scorer-{protocol}", {"scores": rows, "totals": totals})


@pytest.mark.parametrize("protocol", PROTOCOLS[:4])
def test_reward(protocol: str) -> None:
    """A reward in [0, 1] for each rollout."""
    clips = _clips(protocol)
    columns = {"clip_id": clips["clip_id"], "questions": clips["questions"]}
    reward = CaptionReward(protocol)
    try:
        rewards = reward(["Caption it."] * len(VIDEOS), clips["caption"], **columns)
    finally:
        reward.close()
    check(f"reward-{protocol}", rewards)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_score(protocol: str, tmp_path: Path) -> None:
    """Rows of the scores, the worst clips and the summary."""
    pq.write_table(pa.table(_clips(protocol)), tmp_path / "clips.parquet")
    out = tmp_path / "out"
    line = ["score", "--in", str(tmp_path / "clips.parquet"), "--out", str(out)]
    code = main([*line, "--protocol", protocol, "--keep", "0.8"])
    files = {
        path.relative_to(out).as_posix(): numbers(pq.read_table(path).to_pylist())
        for path in sorted(out.rglob("*.parquet"))
    }
    summary = numbers(json.loads((out / "summary.json").read_text()))
    check(f"score-{protocol}", {"exit code": code, "files": files, "summary": summary})
