"""What lmms-eval's tasks show, in all the forms in which they show it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.caption_jobs import Message, Visuals, asked_about
from lmms_eval_captions.model_wrappers.visuals import (
    Picture,
    Segment,
    conversation_of,
    one_question,
    visuals_of,
)

PIL_PICTURE = Image.new("RGB", (4, 3))
ARRAY = np.zeros((3, 4, 3), np.uint8)
SHOWN: dict[str, tuple[object, list[object]]] = {
    "a video": (["a.mp4"], [Path("a.mp4")]),
    "a video by path": (Path("a.mkv"), [Path("a.mkv")]),
    "a video without an ending": (["a"], [Path("a")]),
    "a video of one picture format": (["a.gif"], [Path("a.gif")]),
    "two videos": (["a.mp4", "b.mp4"], [Path("a.mp4"), Path("b.mp4")]),
    "a file address": (["file:///a/b.mp4"], [Path("/a/b.mp4")]),
    "a picture": ([PIL_PICTURE], [PIL_PICTURE]),
    "pictures in a list of their own": ([[PIL_PICTURE, ARRAY]], [PIL_PICTURE, ARRAY]),
    "a picture's bytes": ([b"\xff\xd8"], [b"\xff\xd8"]),
    "a picture undecoded": ([{"bytes": b"\xff", "path": "a.jpg"}], [b"\xff"]),
    "a picture undecoded, in a file": ([{"bytes": None, "path": "a.jpg"}], [Path("a.jpg")]),
    "a picture's file": (["a.JPG"], [Path("a.JPG")]),
    "a picture's address": (["https://a.example/b.png?c=1"], ["https://a.example/b.png?c=1"]),
    "a picture in an address": (["data:image/png;base64,AA"], ["data:image/png;base64,AA"]),
    "a picture and a video": ([PIL_PICTURE, "a.mp4"], [PIL_PICTURE, Path("a.mp4")]),
    "a picture that is not there": ([None, PIL_PICTURE], [PIL_PICTURE]),
    "nothing": (None, []),
    "an empty list": ([], []),
    "a part of a video": (
        [{"type": "video", "path": "a.mp4", "video_start": 2, "video_end": 4.5}],
        [Segment(Path("a.mp4"), 2.0, 4.5)],
    ),
    "the end of a video": (
        [{"video_path": "a.mp4", "start": 2}],
        [Segment(Path("a.mp4"), 2.0, float("inf"))],
    ),
    "a video in a dict": ([{"video_path": "a.mp4"}], [Path("a.mp4")]),
}
REFUSED: dict[str, tuple[object, str]] = {
    "a number": ([3], "int"),
    "sound": (["a.wav"], "sound: a.wav"),
    "a sound's samples": ([{"array": [], "sampling_rate": 1}], "array, sampling_rate"),
    "a sound in a dict": ([{"type": "audio", "path": "a.ogg"}], "sound: a.ogg"),
    "a video's address": (["https://a.example/watch?v=1"], "fetch it first"),
    "frames without times": ([np.zeros((2, 3, 4, 3), np.uint8)], "ndarray"),
    "no bytes": ([b""], "bytes"),
    "a part that ends first": ([{"path": "a.mp4", "start": 3, "end": 1}], "ends after its start"),
    "odd seconds": ([{"path": "a.mp4", "start": "0:03"}], "expected seconds for video_start"),
}


def _plain(shown: object) -> object:
    return shown.raw if isinstance(shown, Picture) else shown


@pytest.mark.parametrize("form", SHOWN)
def test_every_form_of_what_a_task_shows(form: str) -> None:
    """Pictures are told from videos, none is opened, and their order is kept."""
    given, expected = SHOWN[form]
    shown = [_plain(visual) for visual in visuals_of(given).shown]
    assert len(shown) == len(expected)
    assert all(
        one is other if isinstance(other, np.ndarray | Image.Image) else one == other
        for one, other in zip(shown, expected, strict=True)
    )


@pytest.mark.parametrize("form", REFUSED)
def test_what_is_neither_picture_nor_video_is_named(form: str) -> None:
    """In words that say what came."""
    given, words = REFUSED[form]
    with pytest.raises(DataError, match=words):
        visuals_of(given)


def test_a_conversation_keeps_its_turns_and_the_places_of_what_it_shows() -> None:
    """What messages call an image is a picture, whatever it is called, and a video a video."""
    visuals = conversation_of(
        [
            {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
            {
                "role": "user",
                "content": [{"type": "image", "url": "a"}, {"type": "text", "text": "Which?"}],
            },
            {"role": "assistant", "content": "The first."},
            {
                "role": "user",
                "content": [
                    "Then ",
                    {"type": "video", "url": "b.jpg", "start_time": 1.0, "end_time": 2.0},
                    {"type": "video", "video": "c.mp4"},
                ],
            },
        ],
        "unused",
    )
    picture, part, video = visuals.shown
    assert _plain(picture) == Path("a")
    assert (part, video) == (Segment(Path("b.jpg"), 1.0, 2.0), Path("c.mp4"))
    assert visuals.messages == (
        Message("system", ("Be brief.",)),
        Message("user", (0, "Which?")),
        Message("assistant", ("The first.",)),
        Message("user", ("Then ", 1, 2)),
    )
    assert one_question(visuals) is None


def test_messages_that_ask_nothing_are_asked_the_prompt() -> None:
    """Some show a video and leave the words to the request."""
    shown = [{"role": "user", "content": [{"type": "video", "url": "a.mp4"}]}]
    assert conversation_of(shown, "Describe.").messages == (Message("user", (0, "Describe.")),)
    assert conversation_of([], "Why?").messages == (Message("user", ("Why?",)),)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"role": "tool", "content": "a"}, "system, user, assistant, got one of 'tool'"),
        ({"role": "user", "content": 3}, "as text or a list, got 3"),
        ({"role": "user", "content": [{"type": "audio", "url": "a.wav"}]}, "got audio"),
    ],
)
def test_messages_of_another_kind_are_named(message: dict[str, Any], words: str) -> None:
    """Sound, tools and whatever else there may be."""
    with pytest.raises(DataError, match=words):
        conversation_of([message], "Describe.")


@pytest.mark.parametrize(
    ("n_shown", "prompt", "content"),
    [
        (1, "Describe.", (0, "Describe.")),
        (0, "Why?", ("Why?",)),
        (2, "Is <image> like <image> here?", ("Is", 0, "like", 1, "here?")),
        (1, "<image>\nDescribe.", (0, "Describe.")),
        (2, "<video> after <image>", (0, "after", 1)),
        (3, "<image> Describe.", (0, 1, 2, "Describe.")),
        (0, "What does <image> show?", ("What does  show?",)),
    ],
)
def test_marks_in_a_prompt_say_where_something_is_shown(
    n_shown: int, prompt: str, content: tuple[str | int, ...]
) -> None:
    """As many marks as there is to show are its places; any other number is left out."""
    assert asked_about(n_shown, prompt) == (Message("user", content),)


def test_a_system_message_is_part_of_one_question() -> None:
    """For captioners that know one prompt."""
    said = (Message("system", ("Be brief.",)), Message("user", (0, "Describe.")))
    assert one_question(Visuals((Path("a"),), said)) == "Be brief.\nDescribe."
    assert one_question(Visuals((Path("a"),), (Message("user", ("Describe", 0)),))) is None
