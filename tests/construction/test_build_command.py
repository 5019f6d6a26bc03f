"""The command ``build`` against an endpoint that refuses what it is asked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge_server import Behaviour, JudgeServer
from lmms_eval_captions.cli.main import main
from scripted_crew import write_clip

TOO_LONG = "max_tokens=16384 cannot be greater than max_model_len=8192."


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    """An endpoint whose context is short."""
    with JudgeServer(Behaviour(status=400, message=TOO_LONG)) as running:
        yield running


@pytest.fixture
def arguments(tmp_path: Path, server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A build of one clip."""
    for name in os.environ:
        if name.startswith("LMMS_CAPTIONS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / "cache"))
    write_clip(tmp_path / "clips" / "a.mp4")
    folders = ["--videos", str(tmp_path / "clips"), "-o", str(tmp_path / "data")]
    return ["build", "capquiz", *folders, "--writer", f"m@{server.url}", "--frames", "2"]


def test_a_context_that_is_too_short_is_told_with_what_to_do(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The server's own words, and the option that helps."""
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert "domains: all 1 requests were refused:" in err
    assert TOO_LONG in err
    assert "Give a smaller --max-tokens" in err


def test_what_was_refused_whole_is_asked_again(
    arguments: list[str], server: JudgeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server that was set up wrongly may be right by now: the same command asks it."""
    assert main(arguments) == 2
    n_requests = server.counts.n_requests
    assert n_requests > 0
    assert main(arguments) == 2
    assert server.counts.n_requests == 2 * n_requests
    assert "--max-tokens" in capsys.readouterr().err


def test_other_refusals_say_nothing_of_length(
    arguments: list[str], server: JudgeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Advice is given where it fits."""
    server.behaviour = Behaviour(status=400, message="content policy")
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert "content policy" in err
    assert "--max-tokens" not in err


def test_where_no_question_is_left_the_stages_say_why(
    arguments: list[str], server: JudgeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table of stages comes first; nothing is said to go on from there."""
    server.behaviour = Behaviour()
    server.reply = lambda _text: "I cannot see a video."
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert "  questions: 1 x no readable reply: no JSON" in out.splitlines()
    assert "the same command without" not in out
    assert "no question is left" in err
