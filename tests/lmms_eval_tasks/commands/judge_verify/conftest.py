"""What tests of ``judge verify`` share: a record of the honest judge, and the command itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from impostors import Script, honest
from judge_server import JudgeServer
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main


@dataclass(frozen=True)
class Told:
    """What one verification printed."""

    code: int
    out: str
    err: str
    n_asked: int
    """Requests that reached the server during it."""

    @property
    def last(self) -> str:
        """The last line."""
        return self.out.strip().splitlines()[-1]

    @property
    def document(self) -> dict[str, Any]:
        """What was printed as JSON."""
        loaded: dict[str, Any] = json.loads(self.out)
        return loaded

    def states(self) -> dict[str, str]:
        """Finding to its state, the worst where there are several."""
        order = ["ok", "unknown", "note", "differs"]
        found: dict[str, str] = {}
        for each in self.document["findings"]:
            before = found.get(each["name"], "ok")
            found[each["name"]] = max(before, each["state"], key=order.index)
        return found


Verify = Callable[..., Told]


@pytest.fixture(scope="session")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record of the honest judge, of all benchmarks."""
    folder = tmp_path_factory.mktemp("trusted")
    with pytest.MonkeyPatch.context() as patch, JudgeServer() as server:
        server.script = honest()
        patch.setenv("LMMS_CAPTIONS_CACHE", str(folder / "cache"))
        patch.setenv("LMMS_CAPTIONS_JUDGE", "judge")
        patch.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
        assert main(["judge", "verify", "-o", str(folder / "record.json")]) == 0
    return folder / "record.json"


@pytest.fixture
def verify(bench: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Verify:
    """Runs the command against a server, with what it is told to say."""

    def run(server: JudgeServer, script: Script | None, *arguments: str) -> Told:
        if script is not None:
            server.script = script
        bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
        before = server.counts.n_requests
        capsys.readouterr()
        code = main(["judge", "verify", *arguments])
        captured = capsys.readouterr()
        return Told(code, captured.out, captured.err, server.counts.n_requests - before)

    return run
