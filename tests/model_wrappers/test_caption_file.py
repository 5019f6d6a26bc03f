"""The caption_file model, as lmms-eval calls it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from lmms_eval.api.instance import Instance, TokenCounts
from loguru import logger

from lmms_eval_captions.judges.errors import CaptionError, SettingsError
from lmms_eval_captions.model_wrappers.caption_file import CaptionFile, CaptionFileChat

if TYPE_CHECKING:
    from pathlib import Path

_REASON = "the caption file has none"
DOCS = [
    {"video_id": "a", "aspect": "camera"},
    {"video_id": "b", "aspect": "camera"},
    {"video_id": "c", "aspect": "short"},
]


def never(*_args: object) -> NoReturn:
    """Stand in for hooks that would open a video."""
    raise AssertionError("a hook was called, which would open a video")


def request(doc_id: int, *, chat: bool = False) -> Instance:
    """A request as lmms-eval builds it."""
    middle = (never, {}) if chat else ({}, never)
    return Instance(
        request_type="generate_until",
        arguments=("Describe.", *middle, doc_id, "vdc_camera", "test"),
        idx=0,
        metadata={"task": "vdc_camera", "doc_id": doc_id, "repeats": 1},
    )


def write(path: Path, captions: dict[str, str | None]) -> Path:
    """A caption file."""
    lines = [json.dumps({"video": video, "caption": text}) for video, text in captions.items()]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def model(path: Path, cls: type[CaptionFile] = CaptionFile, **args: Any) -> CaptionFile:
    """The model, with the documents that lmms-eval gives it."""
    captioner = cls(path=str(path), **args)
    captioner.task_dict["vdc_camera"] = {"test": DOCS}
    return captioner


@pytest.mark.parametrize(("cls", "chat"), [(CaptionFile, False), (CaptionFileChat, True)])
def test_captions_come_in_the_order_of_the_requests(
    tmp_path: Path, cls: type[CaptionFile], chat: bool
) -> None:
    """Both forms of request get their own video's caption, unchanged, and no hook is called."""
    path = write(tmp_path / "c.jsonl", {"a.mp4": " A\n", "b": "", "x/c.avi": "三"})
    captioner = model(path, cls)
    requests = [request(doc_id, chat=chat) for doc_id in (2, 0, 1, 0)]
    assert captioner.generate_until(requests) == ["三", " A\n", "", " A\n"]
    assert captioner.is_simple is not chat


def test_missing_captions_stop_the_run_before_any_is_returned(tmp_path: Path) -> None:
    """The error counts the missing captions, names the first, the file and the way out."""
    path = write(tmp_path / "c.jsonl", {"a": "A", "b": None})
    with pytest.raises(CaptionError, match=r"2 of 3 captions are missing.*'b \(vdc") as caught:
        model(path).generate_until([request(0), request(1), request(2)])
    assert str(path) in str(caught.value)
    assert "missing=skip" in str(caught.value)


def test_missing_captions_can_be_left_out(tmp_path: Path) -> None:
    """``missing=skip`` gives no caption, with the reason, and one warning."""
    heard: list[str] = []
    sink = logger.add(heard.append, level="WARNING", format="{message}")
    try:
        captioner = model(write(tmp_path / "c.jsonl", {"a": "A"}), missing="skip")
        first, present, last = captioner.generate_until([request(1), request(0), request(2)])
    finally:
        logger.remove(sink)
    assert present == "A"
    # A log without verdicts tells a missing caption from an empty one by its tokens.
    nothing = TokenCounts(input_tokens=0, output_tokens=0)
    for missing in (first, last):
        assert not isinstance(missing, str)
        assert (missing.text.reason, missing.token_counts) == (_REASON, nothing)
    assert len(heard) == 1
    assert "2 of 3 captions are missing" in heard[0]


def test_a_document_without_a_video_is_refused(tmp_path: Path) -> None:
    """A task of another kind gets an error that lists what its document has."""
    captioner = model(write(tmp_path / "c.jsonl", {"a": "A"}))
    captioner.task_dict["vdc_camera"] = {"test": [{"image": "a", "question": "?"}]}
    with pytest.raises(CaptionError, match=r"names no video .* it has image, question"):
        captioner.generate_until([request(0)])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            {"colunm": "x"},
            "does not know ['colunm'] (column is meant?); it takes ['column', 'missing', "
            "'path', 'video_column']",
        ),
        ({"missing": "ignore"}, "missing='ignore' is not one of error, skip"),
        ({"path": ""}, "expected --model_args path=FILE"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path: Path, args: dict[str, str], message: str) -> None:
    """Each wrong argument is answered with what is known."""
    path = write(tmp_path / "c.jsonl", {"a": "A"})
    with pytest.raises(SettingsError, match=re.escape(message)):
        CaptionFile(**{"path": str(path), **args})


def test_the_path_is_required() -> None:
    """Without a path the error says how to give one."""
    with pytest.raises(SettingsError, match="path=FILE"):
        CaptionFile()
