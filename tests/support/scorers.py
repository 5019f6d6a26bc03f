"""Scorers and rewards that ask a judge server of a test, and questions for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from judge_server import JudgeServer
from lmms_eval_captions import CaptionReward, Scorer


def yes_no(n: int, about: str = "it") -> list[dict[str, str]]:
    """So many questions of VCapsBench's form, which VDC takes too."""
    return [
        {"question": f"Is {about} number {index}?", "answer": "yes", "category": "action"}
        for index in range(n)
    ]


def open_scorer(protocol: str, server: JudgeServer, folder: Path, **settings: Any) -> Scorer:
    """A scorer that asks the server, with a cache of its own."""
    return Scorer(protocol, judge="judge", judge_url=server.url, cache=folder / "cache", **settings)


def open_reward(
    protocol: str, server: JudgeServer, folder: Path, **arguments: Any
) -> CaptionReward:
    """A reward that asks the server, without an evaluation set unless one is given."""
    given = {"evaluation": None, "judge": "judge", **arguments}
    return CaptionReward(protocol, judge_url=server.url, cache=folder / "cache", **given)
