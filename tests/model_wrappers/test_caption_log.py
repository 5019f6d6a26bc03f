"""Captions are on disk before they are judged, somewhere, always."""

from __future__ import annotations

import json
import pickle
import resource
import tempfile
from pathlib import Path

import pytest

from lmms_eval_captions.model_wrappers.caption_files.records import open_captions
from lmms_eval_captions.model_wrappers.captions import CaptionLog
from lmms_eval_captions.model_wrappers.no_caption import NoCaption


def _save(log: CaptionLog, caption: str, video: str = "v") -> None:
    log.save(task="vdc_camera", video_id=video, caption=caption, aspect="camera")


def test_what_is_saved_can_be_judged_again(tmp_path: Path, logged: list[str]) -> None:
    """The file serves the model ``caption_file``, and its path is said once."""
    log = CaptionLog(tmp_path)
    _save(log, "A {red} ball.\n", "a.b")
    _save(log, "犬", "c")
    assert log.path is not None
    table = open_captions(log.path)("vdc_camera")
    assert table.find("a.b", "camera") == "A {red} ball.\n"
    assert table.find("c", "camera") == "犬"
    assert table.find("c", "short") is None
    assert sum(str(log.path) in line for line in logged) == 1


def test_lmms_eval_hands_on_that_there_is_no_caption() -> None:
    from lmms_eval.api.reasoning import strip_reasoning_tags

    missing = NoCaption("the clip is broken")
    stripped = strip_reasoning_tags(missing, [["<think>", "</think>"]])
    for kept in (stripped, pickle.loads(pickle.dumps(missing))):  # noqa: S301 - our own bytes
        assert isinstance(kept, NoCaption)
        assert (kept, kept.reason) == ("", "the clip is broken")


def test_a_full_disk_moves_captions_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged: list[str]
) -> None:
    (tmp_path / "cache").touch()
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    log = CaptionLog(tmp_path / "cache")
    _save(log, "kept")
    assert log.path is not None
    assert log.path.is_relative_to(tmp_path / "temporary")
    assert json.loads(log.path.read_text())["caption"] == "kept"
    assert any(line.startswith("ERROR") and "from here on" in line for line in logged)


def test_a_run_without_any_disk_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged: list[str]
) -> None:
    """Not even the temporary folder: an error says how to keep captions, nothing is raised."""
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    log = CaptionLog(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
    try:
        _save(log, "lost on disk")
        _save(log, "and this one")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert any("LMMS_CAPTIONS_CACHE" in line and "--log_samples" in line for line in logged)
