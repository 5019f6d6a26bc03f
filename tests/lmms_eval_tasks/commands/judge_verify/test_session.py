"""The nonce of a verification: gone on with within a day, drawn anew then."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.session import (
    GOES_ON_S,
    open_session,
)


def test_it_goes_on_within_a_day(tmp_path: Path) -> None:
    """With the same number, which no judge run has."""
    path = tmp_path / "cache" / "a.session"
    first = open_session(path)
    assert not first.goes_on
    assert first.nonce >= 1_000
    assert open_session(path).nonce == first.nonce
    assert open_session(path).goes_on


def test_it_is_another_one_later_or_where_that_is_asked_for(tmp_path: Path) -> None:
    """An endpoint is asked, and not what it said a month ago."""
    path = tmp_path / "a.session"
    nonces = {open_session(path, anew=True).nonce for _ in range(5)}
    assert len(nonces) > 1
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "begun_s": time.time() - GOES_ON_S - 1}))
    assert not open_session(path).goes_on


@pytest.mark.parametrize("text", ["", "[]", '{"nonce": 1, "begun_s": 0}', '{"nonce": "x"}'])
def test_a_damaged_one_is_begun_anew(text: str, tmp_path: Path) -> None:
    """Nothing is lost but what was answered."""
    path = tmp_path / "a.session"
    path.write_text(text)
    assert not open_session(path).goes_on
    assert open_session(path).goes_on


def test_one_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """With what to do."""
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="LMMS_CAPTIONS_CACHE"):
        open_session(tmp_path / "file" / "a.session")
