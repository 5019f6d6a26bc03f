"""One limit of cost for all endpoints of a build: never passed, and what it cut off goes on."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from builder_replies import Told
from builder_server import Builder, BuilderServer
from building_runs import options_of
from ended_builds import contents, hasten, name_clips
from judge_server import Say
from lmms_eval_captions.judges.endpoint.models import Model
from lmms_eval_captions.judges.errors import JudgeStoppedError
from lmms_eval_captions.judges.settings import read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.commands.building.building import Built, build
from lmms_eval_captions.lmms_eval_tasks.commands.building.registry import NAMES, kind_of

USD_IN: Final = 1000.0
USD_OUT: Final = 1.0
"""Per million tokens. What is read costs nearly all: the worst case is near the real one."""
MODELS: Final = ("writer-a", "writer-b", "solver-a", "solver-b", "viewer")


class BilledServer(BuilderServer):
    """Adds up what its replies cost by the tokens that it says they took."""

    def __init__(self) -> None:
        super().__init__(Builder(Told(n_questions=4)))
        self.usd = 0.0
        self._adding = threading.Lock()

    def _answer(self, connection: Any, body: bytes, digest: bytes, say: Say) -> None:
        with self._adding:
            self.usd += (len(body) // 4 * USD_IN + (len(say.text) // 4 + 1) * USD_OUT) / 1e6
        super()._answer(connection, body, digest, say)


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    hasten(monkeypatch)


def _build(
    kind: str, clips: Path, folder: Path, servers: tuple[BilledServer, ...], limit_usd: float | None
) -> Built:
    """A build of which the first writer is asked at one address, all others at another."""
    folder.mkdir(exist_ok=True)
    prices = folder / "prices.yaml"
    of_each = f"{{input: {USD_IN}, output: {USD_OUT}}}"
    prices.write_text(f"models: {{{', '.join(f'{name}: {of_each}' for name in MODELS)}}}")
    options = options_of(
        kind, clips, folder / "data", servers[1].url, per_video=4, max_cost_usd=limit_usd
    )
    first, *others = options.writers
    endpoint = replace(first.endpoint, urls=(servers[0].url,))
    options = replace(options, writers=(Model(first.name, endpoint), *others))
    environment = {
        "LMMS_CAPTIONS_CACHE": str(folder / "cache"),
        "LMMS_CAPTIONS_PRICES": str(prices),
    }
    return build(kind_of(kind), options, read_judge_settings(environment))


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("kind", NAMES)
def test_all_endpoints_stay_within_one_limit(kind: str, share: float, tmp_path: Path) -> None:
    """The build stops with what to do, and with more to spend asks what is missing alone."""
    clips = name_clips(tmp_path / "clips", 4)
    with BilledServer() as one, BilledServer() as two:
        _build(kind, clips, tmp_path / "whole", (one, two), None)
        assert min(one.usd, two.usd) > 0
        whole_usd = one.usd + two.usd
    with BilledServer() as one, BilledServer() as two:
        limit_usd = share * whole_usd
        with pytest.raises(JudgeStoppedError, match=r"--max-cost: \$.*Run the same command again"):
            _build(kind, clips, tmp_path / "capped", (one, two), limit_usd)
        assert 0 < one.usd + two.usd <= limit_usd
        _build(kind, clips, tmp_path / "capped", (one, two), 2 * whole_usd)
        assert one.n_repeated() == two.n_repeated() == 0
        assert one.usd + two.usd == pytest.approx(whole_usd)
    capped, whole = (contents(tmp_path / name / "data" / kind) for name in ("capped", "whole"))
    assert capped == whole
