"""A benchmark of one's own clips, made and judged by a real small model behind a real server.

It is shown pictures that are nearly nothing to it (``seeing_model.py``): what its questions say is
nonsense, but requests, pictures, replies, stages and scores are real. With the packaged prompts it
writes no list that can be read; those of ``few_shot_prompts`` it follows now and then.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from real_judge import judge_captions, judged
from runs import environment
from small_model import NAME, Installed
from vllm_server import CONTEXT_TOKENS, KEY, VllmServer

pytestmark = pytest.mark.real

PROMPTS: Final = Path(__file__).resolve().parents[1] / "support" / "few_shot_prompts"
N_CLIPS: Final = 3
_MOST_S: Final = 3600.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the clips, the benchmarks and the runs, with the cache that they share."""
    folder = tmp_path_factory.mktemp("build")
    clips = folder / "clips"
    clips.mkdir()
    videos = sorted((sample_root(folder / "cache") / "vdc" / "videos").iterdir())
    for video in videos[:N_CLIPS]:
        shutil.copy(video, clips)
    return folder


@pytest.fixture(scope="module")
def server(seeing_model: Installed, folder: Path) -> Iterator[VllmServer]:
    """The small model, which takes pictures."""
    log = folder / "vllm.log"
    with VllmServer(seeing_model, log, most_tokens=CONTEXT_TOKENS, n_pictures=4) as running:
        yield running


@pytest.fixture(scope="module")
def built(server: VllmServer, folder: Path) -> subprocess.CompletedProcess[str]:
    """A benchmark of open questions."""
    return _build(server, folder, "vdc", "--max-tokens", "300")


def test_open_questions_are_made_of_three_clips(
    built: subprocess.CompletedProcess[str], folder: Path
) -> None:
    """Some questions are left, every stage says what became of the others, and so does the card."""
    assert built.returncode == 0, built.stdout + built.stderr
    assert "Traceback" not in built.stderr
    card = json.loads((folder / "data" / "vdc" / "data_card.json").read_text("utf-8"))
    assert card["n_questions"] == sum(card["files"].values()) > 0
    assert card["models"]["writer"] == [NAME]
    for before, stage in zip(card["stages"], card["stages"][1:], strict=False):
        assert stage["n_before"] == before["n_kept"]
        assert stage["n_kept"] + sum(stage["dropped"].values()) == stage["n_rows"]
        assert not stage["requests"]["failures"].get("unavailable")


def test_the_same_command_asks_nothing(
    built: subprocess.CompletedProcess[str], server: VllmServer, folder: Path
) -> None:
    """All stages come from their files, and the last lines are the same."""
    n_requests = server.n_requests()
    again = _build(server, folder, "vdc", "--max-tokens", "300")
    assert server.n_requests() == n_requests
    assert again.stdout.splitlines()[-2:] == built.stdout.splitlines()[-2:]


def test_the_last_line_says_who_judges(
    built: subprocess.CompletedProcess[str], server: VllmServer
) -> None:
    """A server of one's own is not where the judge of a paper is."""
    judge = f"LMMS_CAPTIONS_JUDGE={NAME} LMMS_CAPTIONS_JUDGE_URL={server.url}"
    assert judge in built.stdout.splitlines()[-1]


def test_captions_are_scored_by_the_task(
    built: subprocess.CompletedProcess[str], server: VllmServer, folder: Path
) -> None:
    """The tasks that the last line names judge every question; some have a verdict."""
    (tasks,) = re.findall(r"--tasks (\S+)", built.stdout.splitlines()[-1])
    run = judge_captions(
        server,
        folder / "scored",
        captions=sample_root(folder / "cache") / "vdc" / "captions.jsonl",
        tasks=tasks.split(","),
        n_videos=N_CLIPS,
        LMMS_CAPTIONS_DATA=str(folder / "data"),
        LMMS_CAPTIONS_PROMPTS=str(PROMPTS),
    ).run
    assert run.returncode == 0, run.log[-3000:]
    judgements = [each for task in tasks.split(",") for each in judged(run, task)]
    card = json.loads((folder / "data" / "vdc" / "data_card.json").read_text("utf-8"))
    assert len(judgements) == card["n_questions"]
    assert any(each["reason"] is None for each in judgements)


def test_a_context_that_is_too_short_is_told(server: VllmServer, folder: Path) -> None:
    refused = _build(server, folder, "vdc", "--limit", "1", "-o", str(folder / "refused"))
    assert refused.returncode == 2
    assert f"{CONTEXT_TOKENS}" in refused.stderr
    assert "Give a smaller --max-tokens" in refused.stderr


def _build(
    server: VllmServer, folder: Path, kind: str, *more: str
) -> subprocess.CompletedProcess[str]:
    model = f"{NAME}@{server.url}#OPENAI_API_KEY"
    command = [
        sys.executable, "-m", "lmms_eval_captions.cli.main", "build", kind,
        "--videos", str(folder / "clips"), "-o", str(folder / "data"), "--writer", model,
        "--frames", "2", "--per-video", "3", *more,
    ]  # fmt: skip
    env = environment(folder / "cache", OPENAI_API_KEY=KEY, LMMS_CAPTIONS_PROMPTS=str(PROMPTS))
    return subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=_MOST_S, check=False
    )
