"""How ratings of generated videos are read, and what the judge is shown."""

from __future__ import annotations

import pytest

from lmms_eval_captions.judges.endpoint.request import Picture, Reply
from lmms_eval_captions.judges.protocols.prompt import attach_pictures
from lmms_eval_captions.judges.protocols.t2v_rating import read_ratings

GOOD = '{"VA": 3, "SC": 4, "AR": 2, "LC": 5}'
READ = {"VA": 3.0, "SC": 4.0, "AR": 2.0, "LC": 5.0}


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"The subject stays.\n{GOOD}",
        "{'va': '3', 'sc': 4.0, 'ar': 2, 'lc': 5,}",
        f"<think>First {{'VA': 1}}</think>{GOOD}",
        f"{GOOD}\n{GOOD}",
    ],
)
def test_a_reply_that_states_all_four_is_read(text: str) -> None:
    """In any common dress."""
    assert read_ratings(Reply(text, "stop")) == READ


@pytest.mark.parametrize(
    "text",
    [
        "",
        "VA 3, SC 4, AR 2, LC 5",
        GOOD.replace("5", "6"),
        GOOD.replace("2", "0"),
        GOOD.replace("2", "2.5"),
        GOOD.replace("2", '"good"'),
        '{"VA": 3, "SC": 4, "AR": 2}',
        GOOD[:-1],
        GOOD[:-4],
        GOOD + GOOD.replace("2", "3"),
        GOOD.replace("}", ', "VA": 4}'),
        f"I cannot rate these. {GOOD}",
        f"For example: {GOOD}",
        '{"VA": v, "SC": s, "AR": a, "LC": l}',
    ],
)
def test_a_reply_that_does_not_is_unreadable(text: str) -> None:
    """Off the scale, not whole, cut off, contradicting itself, or declined: never a guess."""
    assert read_ratings(Reply(text, "stop")) is None


def test_pictures_are_shown_in_order() -> None:
    """The original's before the generated video's, behind the words."""
    pictures = [Picture(b"one", "image/jpeg"), Picture(b"two", "image/png")]
    [message] = attach_pictures([{"role": "user", "content": "Rate."}], *pictures)
    kinds = [part["type"] for part in message["content"]]  # type: ignore[attr-defined]  # a list
    urls = [part["image_url"]["url"] for part in message["content"][1:]]  # type: ignore[index]
    assert kinds == ["text", "image_url", "image_url"]
    assert urls == ["data:image/jpeg;base64,b25l", "data:image/png;base64,dHdv"]
