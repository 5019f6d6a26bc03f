"""One captioner, one run: our benchmark beside tasks of lmms-eval's own kinds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hostile_clips import write_clip
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.model_wrappers.caption_files.columns import ASPECTS
from other_tasks import hf_home, write_tasks
from runs import environment, run_lmms_eval
from zoo import ARCHITECTURES

if TYPE_CHECKING:
    from pathlib import Path

    from runs import Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Qwen2.5-VL, the tasks, and a cache."""
    root = tmp_path_factory.mktemp("other")
    shapes = [(12, (64, 48)), (30, (48, 96))]
    clips = [
        write_clip(root / f"clip{number}.mp4", n_frames, size=size)
        for number, (n_frames, size) in enumerate(shapes)
    ]
    write_tasks(root / "tasks", clips)
    ARCHITECTURES["qwen2_5_vl"].write(root / "model")
    sample_root(root / "cache")
    return root


def _run(folder: Path, output: Path, tasks: str) -> Run:
    env = environment(
        folder / "cache", LMMS_CAPTIONS_JUDGE="lexical", HF_HOME=str(hf_home(folder / "tasks"))
    )
    return run_lmms_eval(
        output, "--model", "caption_hf", "--tasks", tasks, "--batch_size", "2", "--device", "cpu",
        "--include_path", str(folder / "tasks"), "--gen_kwargs", "max_new_tokens=8",
        "--model_args", f"pretrained={folder / 'model'},max_num_frames=4",
        env=env,
    )  # fmt: skip


def test_one_run_captions_pictures_choices_and_videos_beside_vdc(
    folder: Path, tmp_path: Path
) -> None:
    """Every document of every task has an answer about what it shows, and every task its score."""
    run = _run(folder, tmp_path / "out", "vdc_score,pictures_cap,pictures_choice,videos_cap")
    assert run.returncode == 0, run.log
    assert "no caption for" not in run.log
    n_rows = {"pictures_cap": 3, "pictures_choice": 3, "videos_cap": 2, "vdc_short": 12}
    for task, n in n_rows.items():
        rows = run.samples(task)
        assert len(rows) == n
        assert all(row["filtered_resps"] not in ("", [""]) for row in rows)
        # Two clips of different sizes may be captioned alike, but not from as many tokens.
        kinds = {json.dumps([row["filtered_resps"], row["token_counts"]]) for row in rows}
        assert len(kinds) == n, "answers follow what is shown"
    results = run.document["results"]
    assert results["pictures_cap"]["n_letters,none"] > 0
    assert results["videos_cap"]["n_letters,none"] > 0
    assert 0 <= results["pictures_choice"]["blink_acc,none"] <= 1
    assert all(f"vdc_{aspect} vdc_acc" in run.scores() for aspect in ASPECTS)
