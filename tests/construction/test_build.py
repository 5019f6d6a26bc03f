"""A build as a whole: what is checked before a model is asked, and what is left when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lmms_eval_captions.cli.build import _screen as screen
from lmms_eval_captions.construction.build import build
from lmms_eval_captions.construction.kinds.capquiz import CAPQUIZ
from lmms_eval_captions.construction.models import ModelPool
from lmms_eval_captions.construction.pipeline import Options, spent
from lmms_eval_captions.judges.endpoint.request import Request
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.settings import JudgeSettings, read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.sampling.named_models import Model
from scripted_crew import ScriptedPool, model, write_clip


def _options(folder: Path, **given: object) -> Options:
    write_clip(folder / "clips" / "a.mp4")
    one = (model("gpt-4o"),)
    options = Options(
        kind="capquiz",
        videos=folder / "clips",
        data=folder / "data",
        writers=one,
        solvers=one,
        viewers=(model("v"),),
        per_video=20,
        n_frames=2,
    )
    return replace(options, **given)  # type: ignore[arg-type] # fields of Options


def _settings(folder: Path) -> JudgeSettings:
    return read_judge_settings({"LMMS_CAPTIONS_CACHE": str(folder / "cache")})


def _nobody(_: Request) -> str:
    raise AssertionError("a model was asked")


def test_official_data_is_not_written_over_whatever_the_folders_above_are_called(
    tmp_path: Path,
) -> None:
    """A folder named build above the data is none of a build's."""
    options = _options(tmp_path, data=tmp_path / "build" / "data")
    official = options.folder / "capquiz.jsonl"
    official.parent.mkdir(parents=True)
    official.write_text("official")
    with pytest.raises(SettingsError, match="which no build made"):
        build(CAPQUIZ, options, _settings(tmp_path), ScriptedPool(_nobody))
    assert official.read_text() == "official"


def test_models_at_the_judges_address_keep_to_its_rate(tmp_path: Path) -> None:
    settings = replace(_settings(tmp_path), rate=7.5)
    here = Model("writer", settings.endpoint)
    elsewhere = Model("viewer", replace(settings.endpoint, urls=("http://127.0.0.1:1/v1",)))
    pool = ModelPool(settings, None)
    rates = [pool._engine(each).config.max_rate for each in (here, elsewhere)]
    pool.close()
    assert rates == [7.5, None]


def test_a_limit_of_cost_needs_the_price_of_every_model_before_one_is_asked(
    tmp_path: Path,
) -> None:
    """The viewer is asked last; its missing price is told before the writer is paid."""
    options = _options(tmp_path, max_cost_usd=5.0)
    with pytest.raises(SettingsError, match="--max-cost is set and the price of 'v' is not known"):
        build(CAPQUIZ, options, _settings(tmp_path), ScriptedPool(_nobody))


def test_a_second_build_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    """The one that came first goes on, and the folder is free once it is over."""
    options = _options(tmp_path, until="clips")
    seen: list[str] = []

    def second(_: Request) -> str:
        with pytest.raises(SettingsError, match="another process builds in") as caught:
            build(CAPQUIZ, options, _settings(tmp_path), ScriptedPool(_nobody))
        seen.append(str(caught.value))
        return "{}"

    first = replace(options, until="domains")
    build(CAPQUIZ, first, _settings(tmp_path), ScriptedPool(second))
    assert len(seen) == 1
    build(CAPQUIZ, options, _settings(tmp_path), ScriptedPool(_nobody))


def test_a_build_that_was_ended_early_says_how_it_goes_on(tmp_path: Path) -> None:
    """Before the sighted check it names the page for people; elsewhere the option alone."""
    options = _options(tmp_path, until="shortlist")
    pool = ScriptedPool(lambda _: "{}")
    text = "\n".join(screen(build(CAPQUIZ, options, _settings(tmp_path), pool)))
    assert "the same command without --until resumes" in text
    assert f"label --build {options.folder}" in text
    earlier = replace(options, until="form")
    text = "\n".join(screen(build(CAPQUIZ, earlier, _settings(tmp_path), pool)))
    assert "label --build" not in text


_ENDED = """
import os, signal, sys
from pathlib import Path
from lmms_eval_captions.construction import build
from lmms_eval_captions.judges.endpoint.progress import Totals
from lmms_eval_captions.model_wrappers.paid_endings import finishing
from scripted_crew import ScriptedPool
from test_build import CAPQUIZ, _options, _settings

class Ended(ScriptedPool):
    totals = Totals()

    def run(self, jobs, tally, *, n, what):
        self.totals = Totals(calls=3)
        with finishing(self.close):
            os.kill(os.getpid(), signal.SIGTERM)

folder = Path(sys.argv[1])
build.build(CAPQUIZ, _options(folder), _settings(folder), Ended(str))
"""


def test_what_a_build_that_sigterm_ends_was_billed_is_written_down(tmp_path: Path) -> None:
    """Job managers end with SIGTERM: the process ends by it, and its calls are on the card."""
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    ended = subprocess.run(
        [sys.executable, "-c", _ENDED, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGTERM, ended.stderr
    assert "3 calls" in spent(tmp_path / "data" / "capquiz" / "build")
