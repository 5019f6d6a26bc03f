"""Files of a run that someone edited: an error that names the file, never a traceback."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from planted_pairs import TASKS, drawn, plant
from planted_runs import STAMP

Edit = Callable[[dict[str, Any]], object]


def _edited(folder: Path, task: str, edit: Edit) -> None:
    """Edit the first caption of a run."""
    path = folder / "m" / f"{STAMP}_verdicts_{task}.jsonl.gz"
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    item = json.loads(lines[1])
    edit(item)
    lines[1] = json.dumps(item)
    path.write_bytes(gzip.compress("\n".join(lines).encode()))


def _first_run(item: dict[str, Any]) -> list[Any]:
    """What the first judge run says, by the first metric in the file."""
    runs: list[list[Any]] = next(iter(item["values"].values()))
    return runs[0]


EDITS: dict[str, Edit] = {
    "no list of runs": lambda item: item["values"].update(dict.fromkeys(item["values"], 1)),
    "a run that is no list": lambda item: next(iter(item["values"].values())).append("yes"),
    "another label": lambda item: _first_run(item).__setitem__(0, "maybe"),
    "a list in the place of a verdict": lambda item: _first_run(item).__setitem__(0, [None]),
    "a verdict too many": lambda item: _first_run(item).append(None),
    "words in no list": lambda item: item.update(asked=[None]),
    "words that are a number": lambda item: item.update(n_words="many"),
    "a digest that is a list": lambda item: item.update(caption_digest=[]),
    "groups that are none": lambda item: item.update(groups=[1]),
}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_edited_verdicts_are_an_error(
    task: str, edit: Edit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whichever command reads them; a verdict that is none would count as wrong."""
    folders = [plant(tmp_path / name, task, drawn(task, seed, n_videos=3))
               for seed, name in enumerate("ab")]  # fmt: skip
    _edited(folders[1], task, edit)
    for command in ("compare", "agree", "stability"):
        assert main([command, *map(str, folders)]) == 2, command
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert f"{STAMP}_results.json" in error
        assert "score the captions again, which asks the judge nothing" in error


@pytest.mark.parametrize("groups", [1, {"vdc_score": 1}, {"vdc_score": [None]}, None], ids=str)
def test_edited_groups_are_an_error(
    groups: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A results file says which tasks are a group's; a group in itself is none of its tasks."""
    folder = plant(tmp_path / "a", "vdc_camera", drawn("vdc_camera", 1, n_videos=3))
    path = folder / "m" / f"{STAMP}_results.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "group_subtasks": groups}))
    assert main(["compare", str(folder)]) == 2
    assert "expected each group's tasks under 'group_subtasks'" in capsys.readouterr().err
    path.write_text(json.dumps({**document, "group_subtasks": {"vdc_camera": ["vdc_camera"]}}))
    main(["compare", str(folder)])


@pytest.mark.parametrize("figures", [None, 1, "x", {"all": 1}, {"all": {"vdc_acc_std": "x"}}])
def test_an_edited_breakdown_has_no_number(
    figures: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The paper's table has a dash there, and what the results hold."""
    folder = plant(tmp_path / "a", "vdc_camera", drawn("vdc_camera", 1, n_videos=3))
    path = folder / "m" / f"{STAMP}_breakdown_vdc_camera.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "overall": figures}))
    assert main(["compare", str(folder), "--paper"]) == 0
    assert "AuroraCap, Table 7" in capsys.readouterr().out
