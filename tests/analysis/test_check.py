"""``lmms-eval-captions check`` finds scores that must not be trusted."""

from __future__ import annotations

import json
import os
from math import nan
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_captions.cli.main import main


def _write(folder: Path, name: str = "20260101_000000", **metrics: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}_results.json"
    signature = metrics.pop("signature", None)
    values = {f"{metric},none": value for metric, value in metrics.items()}
    document: dict[str, object] = {"results": {"vdc_camera": {"alias": "vdc_camera", **values}}}
    if signature is not None:
        document["lmms_eval_captions"] = {"tasks": {"vdc_camera": {"signature": signature}}}
    path.write_text(json.dumps(document))
    return path


def _signature(n_unscored: int, n_questions: int) -> str:
    return f"vdc_camera|judge:j|runs:1|protocol:1|unscored:{n_unscored}/{n_questions}|v:1"


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        pytest.param({"vdc_acc": 40.0, "signature": _signature(1, 100)}, None, id="fine"),
        pytest.param({"vdc_acc": nan, "signature": _signature(0, 9)}, "vdc_acc is nan", id="nan"),
        pytest.param(
            {"vdc_acc": 40.0, "signature": _signature(2, 100)}, "2 of 100 questions", id="unscored"
        ),
        pytest.param({"acc": 40.0}, "holds no task of lmms-eval-captions", id="somebody-elses"),
        pytest.param(
            {"vdc_acc": 4.0, "vdc_acc_stderr": nan, "signature": _signature(0, 1)},
            None,
            id="stderr",
        ),
    ],
)
def test_exit_status_and_words(
    metrics: dict[str, Any],
    words: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """0 where all is fine, 1 with the task and the reason where it is not."""
    _write(tmp_path / "model", **metrics)
    assert main(["check", str(tmp_path)]) == (0 if words is None else 1)
    assert (words or "ok ") in capsys.readouterr().out


def test_a_folder_without_results_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that ended early writes no results: that must not pass as fine."""
    assert main(["check", str(tmp_path)]) == 2
    assert "no *_results.json" in capsys.readouterr().err
    (tmp_path / "x_results.json").write_text("{")
    assert main(["check", str(tmp_path)]) == 2


def test_the_newest_results_of_each_task_of_each_model_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A later file of other tasks hides no ``nan``; a later file of the same task replaces it."""
    _write(tmp_path, "20260101_000000", vdc_acc=nan, signature=_signature(9, 9))
    later = _write(tmp_path, "20260102_000000", vdc_acc=40.0, signature=_signature(0, 9))
    other = later.read_text().replace("vdc_camera", "vdc_short")
    later.write_text(other)
    assert main(["check", str(tmp_path)]) == 1
    assert "problem: vdc_camera: vdc_acc is nan" in capsys.readouterr().out
    _write(tmp_path, "20260103_000000", vdc_acc=40.0, signature=_signature(0, 9))
    assert main(["check", str(tmp_path)]) == 0
    assert "20260101" not in capsys.readouterr().out
    _write(tmp_path / "b", "20250101_000000", vdc_acc=nan, signature=_signature(9, 9))
    assert main(["check", str(tmp_path)]) == 1


def test_runs_of_before_may_be_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By when they ended, not by the date in the name; that none ended since is no success."""
    old = _write(tmp_path, "20990101_000000", vdc_acc=nan, signature=_signature(9, 9))
    os.utime(old, (1e9, 1e9))
    assert main(["check", str(tmp_path), "--since", "2h"]) == 2
    assert "no run ended since" in capsys.readouterr().err
    assert main(["check", str(tmp_path), "--since", "2001-01-01"]) == 1
    _write(tmp_path / "b", "20260101_000000", vdc_acc=40.0, signature=_signature(0, 9))
    assert main(["check", str(tmp_path), "--since", "2h"]) == 0
    for since in ("yesterday", "2999-01-01", "-3h"):
        with pytest.raises(SystemExit):
            main(["check", str(tmp_path), f"--since={since}"])


def test_scores_come_with_their_interval_and_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the metric's unit, the headline first; what is doubted is a problem unless accepted."""
    path = _write(tmp_path, "1", vdc_score=2.5, vdc_acc=57.3, signature=_signature(0, 9))
    entry: dict[str, object] = {
        "headline": "vdc_acc",
        "metrics": {
            "vdc_acc": {"value": 57.3, "standard_error": 1.5, "ci_low": 54.1, "ci_high": 60.0}
        },
    }
    judging = tmp_path / "1_judging.json"
    judging.write_text(json.dumps({"tasks": {"vdc_camera": entry}}))
    assert main(["check", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert f"{path}\n" in said
    assert "ok       vdc_camera: vdc_acc 57.30 [54.10, 60.00], vdc_score 2.50\n" in said
    doubted = {**entry, "doubts": ["The judge echoes."]}
    judging.write_text(json.dumps({"tasks": {"vdc_camera": doubted}}))
    assert main(["check", str(tmp_path)]) == 1
    assert "problem: vdc_camera: The judge echoes." in capsys.readouterr().out
    assert main(["check", str(tmp_path), "--accept-doubts"]) == 0
    assert "warning  vdc_camera: The judge echoes." in capsys.readouterr().out
