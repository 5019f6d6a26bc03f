"""The base of all models: requests of both forms, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.base import read_request

DOCS = {"task": {"test": [{"video": "a.mp4"}]}}


@pytest.mark.parametrize("shown", [["a.mp4"], "a.mp4", ("a.mp4",), [Path("a.mp4")]])
def test_a_simple_request_shows_what_its_hook_gives(shown: object) -> None:
    """A list, a tuple or a single visual."""
    settings = {"max_new_tokens": 3}
    arguments: tuple[object, ...] = ("Describe.", settings, lambda _: shown, 0, "task", "test")
    request = read_request(arguments, DOCS, is_simple=True)
    assert (request.prompt, request.doc, request.doc_id) == ("Describe.", {"video": "a.mp4"}, 0)
    assert request.generation_kwargs == {"max_new_tokens": 3}
    assert request.video_path() == Path("a.mp4")


def test_a_chat_request_shows_the_videos_of_its_messages() -> None:
    """Texts, pictures and plain contents are passed over."""
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [
            {"type": "image", "url": "a.jpg"}, {"type": "video", "url": "b.mp4"},
            {"type": "text", "text": "Describe."},
        ]},
    ]  # fmt: skip
    arguments: tuple[object, ...] = ("Describe.", lambda _: messages, {}, 0, "task", "test")
    assert read_request(arguments, DOCS, is_simple=False).video_path() == Path("b.mp4")


@pytest.mark.parametrize(("shown", "kinds"), [([], r"\[\]"), ([3, b""], r"\['int', 'bytes'\]")])
def test_a_task_without_a_video_is_told_what_it_shows(shown: list[object], kinds: str) -> None:
    """The task, the document and the kinds of what is there."""
    arguments: tuple[object, ...] = ("Describe.", {}, lambda _: shown, 0, "task", "test")
    with pytest.raises(DataError, match=f"task, document 0: expected .*{kinds}"):
        read_request(arguments, DOCS, is_simple=True).video_path()
