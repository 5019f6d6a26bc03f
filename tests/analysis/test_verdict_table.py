"""Verdicts of finished runs as a table: scores as group-bys, and files that are damaged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lmms_eval_captions import read_verdicts
from lmms_eval_captions.cli.main import main
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from planted_runs import PlantedCaption, Question, record_of, write_run

ASPECTS = ("camera", "short", "background")


def _plant(folder: Path, seed: int, *, n_runs: int = 2, judge: str = "gpt-4o") -> Path:
    """Write a run over three tasks of VDC, 12 videos with 4 questions each."""
    rng = np.random.default_rng(seed)
    tasks = {}
    for aspect in ASPECTS:
        captions = []
        for video in range(12):
            asked = [
                Question(f"{aspect} {q}?", {"aspects": aspect, "categories": f"kind {q % 2}"})
                for q in range(4)
            ]
            runs: list[list[object]] = [
                [["yes", "no", None][int(n)] for n in rng.choice(3, 4, p=(0.5, 0.4, 0.1))]
                for _ in range(n_runs)
            ]
            captions.append(PlantedCaption(f"v{video:02}", asked, runs))
        task = f"vdc_{aspect}"
        tasks[task] = [record_of(task, caption, judge=judge) for caption in captions]
    return write_run(folder, tasks, groups={"vdc_score": list(tasks)})


def test_a_group_by_gives_the_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean over videos of the share of right answers in each run, as the run printed it."""
    monkeypatch.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "1")
    SESSION.close()  # it reads settings once
    paths = [_plant(tmp_path / name, seed) for seed, name in enumerate(("alpha", "beta"))]
    table = read_verdicts([tmp_path / "alpha", str(tmp_path / "beta")])
    is_unscored = table["verdict"].isna()
    assert len(table) == 2 * 3 * 12 * 4 * 2
    assert 0 < is_unscored.sum() < len(table)
    assert table.loc[is_unscored, "score"].isna().all()
    right = table[~is_unscored].assign(right=table["verdict"].eq("yes"))
    of_videos = right.groupby(["captioner", "task", "run", "video"])["right"].mean()
    scores = 100 * of_videos.groupby(["captioner", "task", "run"]).mean()
    scores = scores.groupby(["captioner", "task"]).mean()
    for path in paths:
        results = json.loads(path.read_text())["results"]
        for aspect in ASPECTS:
            printed = results[f"vdc_{aspect}"]["vdc_acc,none"]
            name = path.parent.parent.name
            assert scores[name, f"vdc_{aspect}"] == pytest.approx(printed, abs=1e-9)


def _without(name: str) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.drop_columns([name])


def _with(name: str, value: object) -> Callable[[pa.Table], pa.Table]:
    def changed(table: pa.Table) -> pa.Table:
        at = table.column_names.index(name)
        return table.set_column(at, name, pa.array([value] * len(table)))

    return changed


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (_without("video"), "no column 'video'"),
        (_without("score"), "no column 'score'"),
        (_with("run", "one"), "column 'run': expected whole numbers, got"),
        (_with("categories", 1), "column 'categories': expected text, got"),
        (_with("verdict", "maybe"), "column 'verdict': expected yes, no, got 'maybe'"),
        (None, "not a verdict file, or cut off"),
        (lambda table: table.slice(1), "rows that were written, got"),
        (lambda table: pa.concat_tables([table, table.slice(0, 1)]), "rows that were written, got"),
    ],
)
def test_a_damaged_file_is_named_with_its_column(
    damage: Callable[[pa.Table], pa.Table] | None, told: str, tmp_path: Path
) -> None:
    """And the message says how to make it again."""
    _plant(tmp_path / "alpha", 0)
    (path,) = tmp_path.rglob("*_verdicts_vdc_short.parquet")
    if damage is None:
        path.write_bytes(path.read_bytes()[:-100])
    else:
        pq.write_table(damage(pq.read_table(path)), path)
    with pytest.raises(DataError) as error:
        read_verdicts(tmp_path / "alpha")
    assert str(path) in str(error.value)
    assert told in str(error.value)
    assert "score the captions again" in str(error.value)


def test_p_does_not_depend_on_the_tasks_that_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every interval and p of a task is the same with ``--tasks`` and without."""
    folders = []
    for seed, name in enumerate(("alpha", "beta", "gamma")):
        _plant(tmp_path / name, seed)
        folders.append(str(tmp_path / name))

    def rows(*more: str) -> list[dict[str, Any]]:
        assert main(["compare", *folders, "--format", "json", *more]) == 0
        document = json.loads(capsys.readouterr().out)
        return [row for of in document["compared"] for row in of["rows"]]

    every = rows("--tasks", "vdc_score,vdc_camera,vdc_short,vdc_background")
    alone = rows("--tasks", "vdc_camera")
    assert alone == [row for row in every if row["task"] == "vdc_camera"]
    found = [row for row in every if row["p_adjusted"] is not None]
    assert found
    for row in found:
        excludes_0 = row["simultaneous_low"] > 0 or row["simultaneous_high"] < 0
        assert excludes_0 == (row["p_adjusted"] < 0.05)


def test_stability_needs_two_judge_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence instead of a table of dashes."""
    _plant(tmp_path / "alpha", 0, n_runs=1)
    assert main(["stability", str(tmp_path / "alpha")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "expected at least 2 judge runs, got 1" in told.err
    assert len(told.err.strip().splitlines()) == 1


def test_a_paper_table_of_the_stand_in_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unless it is forced; then its caption says what it is."""
    _plant(tmp_path / "alpha", 0, judge="lexical")
    assert main(["compare", str(tmp_path / "alpha"), "--paper"]) == 2
    assert "offline stand-in for smoke tests" in capsys.readouterr().err
    assert main(["compare", str(tmp_path / "alpha"), "--paper", "--force"]) == 0
    assert "smoke test" in " ".join(capsys.readouterr().out.split())
