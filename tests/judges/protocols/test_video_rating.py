"""Ratings of captions and of generated videos."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import SHARED, EngineFactory, ServerFactory
from lmms_eval_captions.judges.endpoint.request import Picture, Reply
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.protocols.prompt import Prompts, attach_pictures
from lmms_eval_captions.judges.protocols.video_rating import (
    DIMENSIONS,
    ShownVideo,
    judge_video,
    read_ratings,
)

CONFIG = JudgeConfig(model="judge", frames=3)
PAPER = SHARED / "papers/003_b7038d4830a5474f.txt"


def _frames(n_frames: int) -> Sequence[Picture]:
    return [Picture(f"frame {n}".encode(), "image/jpeg") for n in range(n_frames)]


def test_the_prompt_is_the_printed_one() -> None:
    """Word by word figure 8's, apart from how the slot of the caption is written."""
    if not PAPER.is_file():
        pytest.skip(f"the paper is not at {PAPER}")
    printed = PAPER.read_text(encoding="utf-8").partition("## VLLM-as-a-Judge Prompt")[2]
    printed = printed.partition("Figure 8:")[0].replace("```", "")
    [message] = Prompts().messages("video_rating")
    ours = message["content"].replace("{{candidate_caption}}", "{candidate_caption}")
    assert ours.split() == printed.split()
    assert _lines(ours) == _lines(printed)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def test_a_judge_is_shown_as_many_frames_as_are_asked_for(
    make_engine: EngineFactory, serve: ServerFactory
) -> None:
    """After the words, in order, each marked as of high detail."""
    server = serve()
    server.keep_bodies = True
    chain = partial(
        judge_video, question=ShownVideo(_frames), caption="A dog.", config=CONFIG, run=0
    )
    (judgement,) = make_engine(server.url).submit([chain]).result(20)
    assert list(judgement.numbers) == list(DIMENSIONS)
    words, *pictures = server.bodies[0]["messages"][-1]["content"]
    assert '"A dog."' in words["text"]
    urls = [part["image_url"]["url"] for part in pictures]
    assert len(urls) == len(set(urls)) == 3
    assert {part["image_url"]["detail"] for part in pictures} == {"high"}


@given(st.text(max_size=200), st.sampled_from(["stop", "length", None]))
def test_the_reader_never_raises_nor_leaves_the_scale(text: str, reason: str | None) -> None:
    """Any text is three whole numbers from 1 to 5, or none."""
    for reply in (text, f'{{"scores": {{"trustworthiness": 5, "coverage": {text}'):
        ratings = read_ratings(Reply(reply, reason))
        assert ratings is None or (
            list(ratings) == list(DIMENSIONS) and {*ratings.values()} <= {1, 2, 3, 4, 5}
        )


@given(st.lists(st.integers(-2, 8), min_size=3, max_size=3))
def test_a_form_is_read_where_all_its_numbers_are_on_the_scale(numbers: list[int]) -> None:
    scores = dict(zip(DIMENSIONS, numbers, strict=True))
    text = re.sub("'", '"', str({"analysis": "Fine.", "scores": scores}))
    expected = scores if all(1 <= number <= 5 for number in numbers) else None
    assert read_ratings(Reply(text, "stop")) == expected


def test_pictures_are_shown_in_order() -> None:
    """The original's before the generated video's, behind the words."""
    pictures = [Picture(b"one", "image/jpeg"), Picture(b"two", "image/png")]
    [message] = attach_pictures([{"role": "user", "content": "Rate."}], *pictures)
    kinds = [part["type"] for part in message["content"]]  # type: ignore[attr-defined]  # a list
    urls = [part["image_url"]["url"] for part in message["content"][1:]]  # type: ignore[index]
    assert kinds == ["text", "image_url", "image_url"]
    assert urls == ["data:image/jpeg;base64,b25l", "data:image/png;base64,dHdv"]
