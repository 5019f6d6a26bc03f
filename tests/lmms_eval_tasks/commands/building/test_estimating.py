"""``estimate --build``: the pipeline rehearsed, its requests counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from lmms_eval_captions.judges.endpoint.prices import load_prices
from lmms_eval_captions.judges.settings import read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.commands.building.estimating import (
    estimate_build,
    estimate_table,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.options import Options
from lmms_eval_captions.lmms_eval_tasks.commands.building.registry import NAMES, kind_of
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from scripted_crew import model, write_clip


@pytest.fixture
def options(tmp_path: Path) -> Options:
    """Ten clips of six frames, two writers, two solvers, a viewer."""
    for number in range(10):
        write_clip(tmp_path / "clips" / f"{number}.mp4", shade=20 * number)
    return Options(
        kind="capquiz",
        videos=tmp_path / "clips",
        data=tmp_path / "data",
        writers=(model("gpt-4o"), model("gpt-4.1-2025-04-14")),
        solvers=(model("s"), model("gpt-4o-mini")),
        viewers=(model("gpt-4o"),),
        per_video=5,
        n_frames=4,
    )


def test_every_request_of_the_pipeline_is_counted(options: Options) -> None:
    """Worked by hand: 5 x 5 questions asked of each writer in ten types make 3 of each type.

    One question in ten is looked at twice more.
    """
    settings = read_judge_settings({"LMMS_CAPTIONS_CACHE": str(options.data / "cache")})
    estimate = estimate_build(kind_of("capquiz"), options, settings)
    calls = Counter[str]()
    for (prompt, _), count in estimate.counts.items():
        calls[prompt.removeprefix("build_capquiz_")] += round(count.n_requests)
    n_pairs = 2 * 3 * 10 * 10
    assert calls == {
        "domain": 10,
        "write": 10 * 2,
        "blind": n_pairs * 2 * 3,
        "cluster": 10,
        "sighted": 10 * 10 + 2 * 10 * 10 // 10,
    }
    assert (estimate.n_clips, estimate.n_rehearsed) == (10, 8)
    assert not options.data.exists() or not list(options.data.glob("capquiz*"))


def test_pictures_and_words_cost_what_the_price_list_says(options: Options) -> None:
    """A sighted request of four frames: their tokens, and a token for four letters of its words."""
    settings = read_judge_settings({"LMMS_CAPTIONS_CACHE": str(options.data / "cache")})
    two = replace(options, frame_pixels=512 * 512)
    estimate = estimate_build(kind_of("capquiz"), two, settings)
    count = estimate.counts["build_capquiz_sighted", "gpt-4o"]
    of_frames = 4 * load_prices().models["gpt-4o"].picture_tokens(512, 512)
    assert of_frames < count.input_tokens / count.n_requests < of_frames + 700
    lines = list(estimate_table(estimate, kind_of("capquiz"), two, load_prices()))
    assert any(line.startswith("build_capquiz_blind") and "price unknown" in line for line in lines)
    assert next(line for line in lines if line.startswith("all")).endswith("price unknown")


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_is_estimated_without_a_request_or_a_file(
    name: str, options: Options, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """From the command line; nothing answers at the address."""
    words = ["--videos", str(options.videos), "--writer", "w@http://127.0.0.1:1/v1"]
    before = sorted(tmp_path.rglob("*"))
    assert main(["estimate", "--build", name, *words, "--per-video", "3", "--frames", "2"]) == 0
    printed = capsys.readouterr().out
    assert f"build_{name}" in printed
    assert f"{name} of 10 clips, 2 frames each" in printed
    assert sorted(tmp_path.rglob("*")) == before


def test_estimate_wants_tasks_or_a_build(capsys: pytest.CaptureFixture[str]) -> None:
    """One of them."""
    with pytest.raises(SystemExit):
        main(["estimate"])
    assert "--build" in capsys.readouterr().err
