"""The data card, what the screen says at the end, and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lmms_eval_captions.judges.endpoint.request import Request
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.commands.building.building import Built, build
from lmms_eval_captions.lmms_eval_tasks.commands.building.card import (
    card_data,
    warnings_of,
    write_card,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.capquiz import CAPQUIZ
from lmms_eval_captions.lmms_eval_tasks.commands.building.options import Options
from lmms_eval_captions.lmms_eval_tasks.commands.building.screen import screen
from scripted_crew import ScriptedCrew, model, write_clip

N = 12


def _answer(request: Request) -> str:
    """Solvers choose A, viewers what is right; every third question is known to solvers."""
    if "write" in request.protocol:
        options = [f"colour {k}" for k in range(5)]
        pairs = [
            {
                "category": "Entity" if k % 2 else "Action",
                "question": f"What is object number {k}?",
                "options": options,
                "answer": "colour 0",
            }
            for k in range(N)
        ]
        return json.dumps(pairs)
    if "domain" in request.protocol:
        return '{"Nature": 1.0}'
    if "cluster" in request.protocol:
        return "nothing"
    content = request.messages[-1]["content"]
    text = content if isinstance(content, str) else str(content)
    right = next(letter for letter in "ABCDE" if f"{letter}. colour 0" in text)
    knows = any(f"number {k}?" in text for k in range(0, N, 3))
    return (
        right if "sighted" in request.protocol or knows else "ABCDE"[("ABCDE".index(right) + 1) % 5]
    )


@pytest.fixture
def built(tmp_path: Path) -> Built:
    """One clip, one writer that solves, too."""
    return _build(tmp_path, _answer)


def _build(tmp_path: Path, answer: Callable[[Request], str]) -> Built:
    write_clip(tmp_path / "clips" / "a.mp4", n_frames=18)
    (tmp_path / "clips" / "b.mp4").write_bytes(b"none" * 99)
    one = (model("m"),)
    options = Options(
        kind="capquiz",
        videos=tmp_path / "clips",
        data=tmp_path / "data",
        writers=one,
        solvers=one,
        viewers=(model("v"),),
        per_video=20,
        n_frames=2,
        license="CC0 | ours",
    )
    settings = read_judge_settings({"LMMS_CAPTIONS_CACHE": str(tmp_path / "cache")})
    return build(CAPQUIZ, options, settings, ScriptedCrew(answer))


def test_the_card_says_what_is_in_it_and_how_it_came_to_be(built: Built) -> None:
    """Numbers worked by hand: 12 questions, 4 of them known without the clip."""
    data = card_data(built)
    assert (data["n_clips_given"], data["n_clips_unreadable"], data["n_clips"]) == (2, 1, 1)
    assert data["n_questions"] == 8
    assert data["categories"] == {"Action": 4, "Entity": 4}
    assert data["hours"] == 0.001  # 18 frames of 0.2 s
    assert data["blind_accuracy"] == {"chance": 0.2, "before": 0.3333, "after": 0.0}
    assert data["models"] == {"writer": ["m"], "solver": ["m"], "viewer": ["v"]}
    assert data["files"] == {"capquiz.jsonl": 8}
    stages = {stage["stage"]: stage for stage in data["stages"]}
    assert stages["blind"]["dropped"] == {"blind check: answered without the clip": 4}
    assert stages["similar"]["requests"]["failures"] == {"unreadable": 1}


def test_the_card_is_written_for_people_and_for_programs(built: Built) -> None:
    """Words of others cannot break its tables."""
    write_card(built)
    folder = built.options.folder
    text = (folder / "DATA_CARD.md").read_text()
    assert "8 questions" in text
    assert "33.3% of the solvers' trials before the blind check, 0.0%" in text
    assert "No person checked the questions" in text
    assert r"CC0 \| ours" in text
    assert "| Entity | 4 |" in text
    assert "Beware: one and the same model writes and solves" in text
    assert json.loads((folder / "data_card.json").read_text()) == card_data(built)


def test_the_screen_ends_with_how_to_go_on(built: Built) -> None:
    """Stages, what was dropped and why, what is wrong with replies, the next command."""
    lines = list(screen(built))
    assert lines[0].split() == ["stage", "in", "kept", "requests", "unreadable"]
    assert any(line.split()[:4] == ["blind", "12", "8", "36"] for line in lines)
    assert "  blind: 4 x blind check: answered without the clip" in lines
    assert "  clips: 1 x the clip cannot be read" in lines
    assert "LMMS_CAPTIONS_DATA=" in lines[-1]
    # The solver is not where a judge is asked by default.
    at = "LMMS_CAPTIONS_JUDGE=m LMMS_CAPTIONS_JUDGE_URL=http://127.0.0.1:1/v1 lmms-eval "
    assert at in lines[-1]
    assert "--tasks capquiz" in lines[-1]


def test_lost_requests_are_told_and_cost_the_exit_code(tmp_path: Path) -> None:
    """The next run asks them."""
    lost: list[Request] = []

    def answer(request: Request) -> str:
        if "sighted" in request.protocol and not lost:
            lost.append(request)
            return "unavailable"
        return _answer(request)

    built = _build(tmp_path, answer)
    assert built.n_lost == 1
    lines = list(screen(built))
    assert any(line.startswith("1 requests have no reply yet: run the same") for line in lines)
    assert "  sighted: 1 of 10 requests unavailable: it was unavailable" in lines


def test_a_model_that_checks_itself_is_warned_of(tmp_path: Path) -> None:
    """So is one that solves its own questions; people in its place need no warning."""
    one, other = (model("m"),), (model("v"),)
    given = {"kind": "capquiz", "videos": tmp_path, "data": tmp_path, "per_video": 1}
    same = Options(**given, writers=one, solvers=one, viewers=one)  # type: ignore[arg-type] # above
    assert len(warnings_of(same)) == 2
    apart = Options(**given, writers=one, solvers=other, viewers=other)  # type: ignore[arg-type]
    assert warnings_of(apart) == []


def test_a_card_that_cannot_be_written_is_an_error_in_words(built: Built) -> None:
    """A folder stands in the place of the card."""
    (built.options.folder / "DATA_CARD.md").mkdir()
    with pytest.raises(DataError, match=r"cannot be written: .* the questions are written"):
        write_card(built)
