"""The base of all models: requests of both forms, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.base import read_request
from lmms_eval_captions.model_wrappers.documents import Picture

DOCS = {"task": {"test": [{"video": "a.mp4"}]}}


@pytest.mark.parametrize("shown", [["a.mp4"], "a.mp4", ("a.mp4",), [Path("a.mp4")]])
def test_a_simple_request_shows_what_its_hook_gives(shown: object) -> None:
    """A list, a tuple or a single visual."""
    settings = {"max_new_tokens": 3}
    arguments: tuple[object, ...] = ("Describe.", settings, lambda _: shown, 0, "task", "test")
    request = read_request(arguments, DOCS, is_simple=True)
    assert (request.prompt, request.doc, request.doc_id) == ("Describe.", {"video": "a.mp4"}, 0)
    assert request.generation_kwargs == {"max_new_tokens": 3}
    assert request.visuals().shown == (Path("a.mp4"),)


def test_a_chat_request_is_a_question_about_what_it_shows() -> None:
    """Texts, pictures and videos keep their order; plain contents are texts."""
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [
            {"type": "image", "url": "a.bin"}, {"type": "video", "url": "b.mp4"},
            {"type": "text", "text": "Which is older?"},
        ]},
    ]  # fmt: skip
    arguments: tuple[object, ...] = ("Describe.", lambda _: messages, {}, 0, "task", "test")
    visuals = read_request(arguments, DOCS, is_simple=False).visuals()
    picture, video = visuals.shown
    assert isinstance(picture, Picture)
    assert (picture.raw, video) == (Path("a.bin"), Path("b.mp4"))
    assert visuals.content == ("Be brief.", 0, 1, "Which is older?")


@pytest.mark.parametrize(("shown", "kind"), [(3, "int"), ({"array": []}, "something with array")])
def test_a_task_that_shows_something_else_is_told_what(shown: object, kind: str) -> None:
    """The task, the document and the kind of what is there."""
    arguments: tuple[object, ...] = ("Describe.", {}, lambda _: [shown], 0, "task", "test")
    with pytest.raises(DataError, match=f"task, document 0: expected .*{kind}"):
        read_request(arguments, DOCS, is_simple=True).visuals()


@pytest.mark.parametrize("error", [SystemExit("no video here"), FileNotFoundError("no video here")])
def test_a_task_that_ends_the_process_loses_its_document_alone(error: BaseException) -> None:

    def missing(_doc: object) -> list[str]:
        raise error

    arguments: tuple[object, ...] = ("Describe.", {}, missing, 0, "task", "test")
    with pytest.raises(DataError, match="task, document 0: no video here"):
        read_request(arguments, DOCS, is_simple=True).visuals()
