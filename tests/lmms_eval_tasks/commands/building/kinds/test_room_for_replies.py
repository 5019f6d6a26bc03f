"""Every request of a build leaves room for a model that reasons before it answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_captions.judges.endpoint.request import Request
from lmms_eval_captions.lmms_eval_tasks.commands.building.crew import Rehearsal
from lmms_eval_captions.lmms_eval_tasks.commands.building.registry import NAMES, kind_of
from scripted_build import build_all, prompt_of, work_of

ROOM = 256
"""Tokens."""


@pytest.mark.parametrize("kind", NAMES)
def test_no_reply_is_cut_within_a_few_sentences(kind: str, tmp_path: Path) -> None:
    """The shortest room is that of a verdict behind a few sentences."""
    rooms: dict[str, int] = {}

    def note(request: Request, _reply: str) -> None:
        room = request.params["max_tokens"]
        assert isinstance(room, int)
        rooms[prompt_of(request)] = min(room, rooms.get(prompt_of(request), room))

    build_all(kind_of(kind), work_of(kind_of(kind), tmp_path, Rehearsal(note)))
    assert len(rooms) >= 3
    assert min(rooms.values()) >= ROOM, rooms
