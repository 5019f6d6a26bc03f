"""Captioners are called by the shortest ends of their paths, and have their newest runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.verdicts.captioners import captioners_of, common_names
from planted_runs import PlantedCaption, Question, record_of, write_run

QUESTION = Question("What moves?", {})


def _run(folder: Path, *, task: str = "vcapsbench", model: str = "m", verdict: str = "") -> Path:
    caption = PlantedCaption("v1", [QUESTION], [[verdict or "positive"]])
    return write_run(folder, {task: [record_of(task, caption)]}, model=model)


def test_names_are_the_shortest_ends_of_paths_that_differ(tmp_path: Path) -> None:
    """Two folders of one name have the one above before it, others have not."""
    folders = [tmp_path / "old" / "a", tmp_path / "new" / "a", tmp_path / "b"]
    for folder in folders:
        _run(folder)
    assert [captioner.name for captioner in captioners_of(folders)] == ["old/a", "new/a", "b"]


def test_several_models_below_a_folder_are_several_captioners(tmp_path: Path) -> None:
    """They are called by their own folders, which lmms-eval makes."""
    for model in ("m1", "m2"):
        _run(tmp_path / "all", model=model)
    _run(tmp_path / "b")
    names = [captioner.name for captioner in captioners_of([tmp_path / "all", tmp_path / "b"])]
    assert names == ["m1", "m2", "b"]


def test_a_long_name_loses_its_middle_and_stays_distinct(tmp_path: Path) -> None:
    """Names that are equal when cut are numbered."""
    folders = [tmp_path / f"a-captioner-{n}{'x' * 40}" for n in "12"]
    for folder in folders:
        _run(folder)
    names = [captioner.name for captioner in captioners_of(folders)]
    assert len(set(names)) == 2
    assert all(len(name) <= 26 for name in names)


def test_each_task_is_of_the_newest_run_that_has_it(tmp_path: Path) -> None:
    """A later run of one task replaces that task, and the earlier run has the others."""
    old = PlantedCaption("v1", [QUESTION], [["yes"]])
    tasks = ("vdc_camera", "vdc_short")
    first = write_run(tmp_path, {task: [record_of(task, old)] for task in tasks})
    for path in first.parent.iterdir():
        path.rename(path.with_name(f"2025{path.name[4:]}"))
    results = first.with_name(f"2025{first.name[4:]}")
    judging = results.with_name(results.name.replace("_results", "_judging"))
    judging.write_text(json.dumps({"finished": "2025-01-01T00:00:00+00:00"}))
    new = PlantedCaption("v1", [QUESTION], [["no"]])
    write_run(tmp_path, {"vdc_short": [record_of("vdc_short", new)]})
    (captioner,) = captioners_of([tmp_path])
    values = {task: captioner.verdicts(task).tasks[0].captions[0].values for task in tasks}
    assert [values[task]["vdc_acc"] for task in tasks] == [[["yes"]], [["no"]]]


def test_common_names_are_those_of_all(tmp_path: Path) -> None:
    """In the order of the first."""
    _run(tmp_path / "a")
    verdicts = {"vdc_short": "yes", "vcapsbench": "positive"}
    both = {
        task: [record_of(task, PlantedCaption("v1", [QUESTION], [[verdict]]))]
        for task, verdict in verdicts.items()
    }
    write_run(tmp_path / "b", both)
    assert common_names(captioners_of([tmp_path / "a", tmp_path / "b"])) == ["vcapsbench"]


def test_a_folder_named_twice_and_one_without_our_tasks_are_errors(tmp_path: Path) -> None:
    """Each says what to do."""
    _run(tmp_path / "a")
    with pytest.raises(DataError, match="named twice"):
        captioners_of([tmp_path / "a", tmp_path / "a"])
    path = tmp_path / "other" / "m" / "20260101_000000_results.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"results": {"mmlu": {"acc,none": 0.5}}}))
    with pytest.raises(DataError, match="verdicts of a task"):
        captioners_of([tmp_path / "other"])


@pytest.mark.parametrize("again", ["again/..", "m", "results", "above", "link"])
def test_a_run_is_of_one_captioner(
    again: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is named twice is an error however it is written: it would tie with itself."""
    results = _run(tmp_path / "a")
    (tmp_path / "a" / "again").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    monkeypatch.chdir(tmp_path)
    second = {"results": results, "above": tmp_path, "link": tmp_path / "link"}
    with pytest.raises(DataError, match="is named twice; name each results folder once"):
        captioners_of([Path("a"), second.get(again, tmp_path / "a" / again)])
