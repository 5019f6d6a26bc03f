"""The planted world's finished runs, made once for all goldens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge_server import Behaviour, JudgeServer
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from planted_world import (
    CAPTIONERS,
    RUNS,
    TASKS,
    World,
    judged,
    write_captions,
    write_data,
    write_tokenizer,
)
from runs import environment
from warm_lmms_eval import WarmProcess


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Two captioners by two judges and a third captioner by one, all runs at once."""
    root = tmp_path_factory.mktemp("golden")
    with JudgeServer(Behaviour()) as server:
        server.script = judged
        env = environment(
            root / "cache",
            LMMS_CAPTIONS_DATA=str(write_data(root / "data")),
            LMMS_CAPTIONS_T5=str(write_tokenizer(root / "t5")),
            LMMS_CAPTIONS_JUDGE="judge-a",
            LMMS_CAPTIONS_JUDGE_URL=server.url,
            LMMS_CAPTIONS_JUDGE_RUNS="3",
            LMMS_CAPTIONS_MAX_UNSCORED="0.5",
            LMMS_CAPTIONS_PRICES=str(_prices(root / "prices.yaml")),
            COLUMNS="100",
        )
        world = World(root, env)
        processes = []
        for captioner, judge in RUNS:
            captions = write_captions(root / f"{captioner}.jsonl", captioner)
            output = world.run(captioner, judge)
            output.mkdir(parents=True)
            line = ["--model", "caption_file", "--model_args", f"path={captions},missing=skip"]
            line += ["--tasks", TASKS, "--output_path", str(output), "--log_samples"]
            own = {**env, "LMMS_CAPTIONS_JUDGE": judge, "LMMS_CAPTIONS_CACHE": f"{output}-cache"}
            processes.append(WarmProcess(line, env=own, cwd=root))
        for (captioner, judge), process in zip(RUNS, processes, strict=True):
            ended = process.wait(300)
            assert [*world.run(captioner, judge).rglob("*_results.json")], ended.log[-3000:]
        yield world


@pytest.fixture
def folders(world: World, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Results folders by captioner, in an environment of the planted world."""
    for name, value in world.env.items():
        if name.startswith("LMMS_"):
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("COLUMNS", "100")
    SESSION.close()  # whose settings another test may have read
    return {captioner: str(world.run(captioner)) for captioner in CAPTIONERS}


def _prices(path: Path) -> Path:
    prices = {"judge-a": {"input": 2.5, "output": 10}, "judge-b": {"input": 0.5, "output": 1.5}}
    path.write_text(json.dumps({"models": prices}))
    return path
