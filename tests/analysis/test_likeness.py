"""Captioners that were judged in different ways are not compared unless that is asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from lmms_eval_captions.cli.main import main
from planted_pairs import TASKS, drawn, records
from planted_runs import write_run

DIFFERENT: Final[list[dict[str, Any]]] = [
    {"judge": "gpt-4.1"}, {"protocol": 2}, {"extras": {"format": "short"}},
    {"extras": {"prompts": "0a0a0a0a"}}, {"extras": {"temperature": "0.5"}},
    {"extras": {"prompt-order": "constant-first"}},
    {"extras": {"captions": "general"}}, {"extras": {"of_a_later_version": "x"}},
]  # fmt: skip
SAME: Final[list[dict[str, Any]]] = [
    {"n_empty": 1}, {"extras": {"con": "unavailable"}}, {"extras": {"served": "gpt-4o-2024-08-06"}},
]  # fmt: skip


def _folders(tmp_path: Path, task: str, changes: dict[str, Any]) -> list[str]:
    for name in "ab":
        of = records(task, drawn(task, ord(name), n_videos=12))
        changed = [replace(record, **changes) for record in of] if name == "b" else of
        write_run(tmp_path / name, {task: changed})
    return [str(tmp_path / name) for name in "ab"]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("changes", DIFFERENT, ids=str)
def test_what_moves_a_score_must_be_the_same(
    task: str, changes: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the field and both values; across judges it is a warning."""
    folders = _folders(tmp_path, task, changes)
    ((name, value),) = changes.items()
    if name == "extras":
        ((name, value),) = value.items()
    assert main(["compare", *folders]) == 2
    error = capsys.readouterr().err
    assert f"{task}: {name} is " in error
    assert f"{value} in b" in error
    assert "--across-judges" in error
    assert main(["compare", *folders, "--across-judges"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"WARNING: {task}: {name} is" in told
    assert "the difference is not the captions' alone" in told


@pytest.mark.parametrize("task", TASKS)
def test_the_number_of_judge_runs_must_be_the_same(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Means over several runs are another measurement than one run."""
    for name, n_runs in (("a", 1), ("b", 3)):
        verdicts = drawn(task, n_runs, n_videos=12, n_runs=n_runs)
        write_run(tmp_path / name, {task: records(task, verdicts)})
    folders = [str(tmp_path / name) for name in "ab"]
    assert main(["compare", *folders]) == 2
    assert "runs is 1 in a, 3 in b" in capsys.readouterr().err
    assert main(["compare", *folders, "--across-judges"]) == 0


@pytest.mark.parametrize("changes", SAME, ids=str)
def test_what_moves_no_score_may_differ(
    changes: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counts, metrics that are not there, and a served version that one run alone names."""
    assert main(["compare", *_folders(tmp_path, "vcapsbench", changes)]) == 0
    assert "WARNING" not in capsys.readouterr().out


def test_another_version_that_answered_is_another_judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If both runs name one."""
    of = records("vcapsbench", drawn("vcapsbench", 1))
    for name, served in (("a", "gpt-4o-2024-08-06"), ("b", "gpt-4o-2024-11-20")):
        own = [replace(record, extras={"served": served}) for record in of]
        write_run(tmp_path / name, {"vcapsbench": own})
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 2
    assert "served is gpt-4o-2024-08-06 in a, gpt-4o-2024-11-20 in b" in capsys.readouterr().err


def test_other_gold_answers_to_the_same_questions_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The words asked are the same, but not what counts as right."""
    of = records("vcapsbench", drawn("vcapsbench", 1))
    write_run(tmp_path / "a", {"vcapsbench": of})
    other = [replace(of[0], questions="0" * 16), *of[1:]]
    write_run(tmp_path / "b", {"vcapsbench": other})
    folders = [str(tmp_path / name) for name in "ab"]
    assert main(["compare", *folders]) == 2
    assert "the same questions about 1 of 30 captions" in capsys.readouterr().err
    assert main(["compare", *folders, "--across-judges"]) == 0


def test_what_not_all_have_is_left_out_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run over fewer videos is compared on these."""
    of = records("vcapsbench", drawn("vcapsbench", 1))
    write_run(tmp_path / "a", {"vcapsbench": of})
    write_run(tmp_path / "b", {"vcapsbench": of[:20]})
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Compared on 80 questions about 20 videos" in told
    assert "left out: 10 captions that not all have" in told


def test_runs_without_a_common_question_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They were run over other data; a task of several is left out where others remain."""
    of = {task: records(task, drawn(task, 1)) for task in ("vcapsbench", "capquiz")}
    other = {**of, "capquiz": [replace(r, video_id=f"x{r.video_id}") for r in of["capquiz"]]}
    write_run(tmp_path / "a", of)
    write_run(tmp_path / "b", other)
    folders = [str(tmp_path / name) for name in "ab"]
    assert main(["compare", *folders]) == 0
    assert "Left out: capquiz: there is no question" in capsys.readouterr().out
    assert main(["compare", *folders, "--tasks", "capquiz"]) == 2
    assert main(["compare", *folders, "--tasks", "vdc_camera"]) == 2
    assert "expected any of vcapsbench, capquiz" in capsys.readouterr().err
