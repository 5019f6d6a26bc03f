"""The honest judge of every benchmark whose judge can be verified, with data to judge."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from conftest import ServerFactory
from five_tasks import TASKS, Texts, write_data
from impostors import honest
from judge_server import JudgeServer
from lmms_eval_captions.judges.settings import data_settings

VERIFIED: Final = [task for task in TASKS if task.hooks.benchmark.verification is not None]
"""A task of each benchmark that has anchors."""
EACH: Final = pytest.mark.parametrize("task", VERIFIED, ids=lambda task: task.name)


def clips(n: int) -> list[Texts]:
    """As many videos, each with a question of its own."""
    return [Texts(f"clip{number}", question=f"What is on {number}?") for number in range(n)]


def start_honest_judge(
    serve: ServerFactory, bench: pytest.MonkeyPatch, videos: Sequence[Texts], folder: Path
) -> JudgeServer:
    """Start it as the judge of the settings, beside data of every benchmark.

    Args:
        serve: The fixture.
        bench: The fixture.
        videos: What the data are about.
        folder: Where they are written.
    """
    server = serve()
    server.script = honest()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "1")
    bench.setenv("LMMS_CAPTIONS_DATA", str(write_data(folder, videos)))
    data_settings.cache_clear()
    return server
