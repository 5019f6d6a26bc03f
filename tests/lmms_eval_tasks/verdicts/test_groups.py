"""Verdicts of groups: the plain mean of tasks, or all their questions together."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.results_folder import read_results
from lmms_eval_captions.lmms_eval_tasks.verdicts.parts import parts_of
from lmms_eval_captions.lmms_eval_tasks.verdicts.verdicts import (
    names_with_verdicts,
    read_verdicts,
)
from lmms_eval_captions.metrics.ratio_parts import values_of_runs
from planted_runs import PlantedCaption, Question, record_of, write_run


def _caption(video: str, *runs: str) -> PlantedCaption:
    """A caption with a verdict for each letter: y(es), n(o), c(orrect), w(rong)."""
    names = {"y": "yes", "n": "no", "c": "correct", "w": "wrong"}
    questions = [Question(f"{place}?", {"dimensions": "d"}) for place in range(len(runs[0]))]
    return PlantedCaption(video, questions, [[names[letter] for letter in run] for run in runs])


def _values(folder: Path, name: str, metric: str) -> list[float]:
    (run,) = read_results(folder)
    verdicts = read_verdicts(run, name)
    parts = parts_of(verdicts, metric)
    assert parts is not None
    return [float(v) for v in values_of_runs(parts.parts, scale=100.0)]


def test_a_group_that_is_a_mean_has_a_term_for_each_task(tmp_path: Path) -> None:
    """One task of 4 captions and one of 1 count the same; judge runs may differ."""
    camera = [record_of("vdc_camera", _caption(f"v{n}", "yn")) for n in range(4)]
    short = [record_of("vdc_short", _caption("v3", "yy", "nn"))]
    tasks = {"vdc_camera": camera, "vdc_short": short}
    write_run(tmp_path, tasks, groups={"vdc_score": ["vdc_camera", "vdc_short"]})
    assert _values(tmp_path, "vdc_score", "vdc_acc") == [75.0, 25.0]
    (run,) = read_results(tmp_path)
    assert names_with_verdicts(run) == ["vdc_camera", "vdc_short", "vdc_score"]


def test_a_pooled_group_counts_all_questions(tmp_path: Path) -> None:
    """2 of 3 questions in one task and 0 of 1 in the other are 2 of 4."""
    ae = [record_of("vidcapbench_ae", _caption("v", "ccw"))]
    he = [record_of("vidcapbench_he", _caption("v", "w"))]
    tasks = {"vidcapbench_ae": ae, "vidcapbench_he": he}
    write_run(tmp_path, tasks, groups={"vidcapbench": list(tasks)})
    assert _values(tmp_path, "vidcapbench", "acc") == [50.0]


@pytest.mark.parametrize(
    ("other", "verdict"), [("vidcapbench_ae", "correct"), ("vdc_rouge_camera", 0.9)]
)
def test_a_group_of_several_benchmarks_has_no_verdicts_of_its_own(
    other: str, verdict: object, tmp_path: Path
) -> None:
    """It is left out of the names; who asks for it is told which there are. A variant is another."""
    tasks = {
        "vdc_camera": [record_of("vdc_camera", _caption("v", "y"))],
        other: [record_of(other, PlantedCaption("v", [Question("0?", {})], [[verdict]]))],
    }
    path = write_run(tmp_path, tasks)
    (run,) = read_results(path)
    members = dict.fromkeys(run.tasks, ()) | {"mixed": tuple(tasks)}
    run.document["group_subtasks"].update(members)  # type: ignore[attr-defined]
    mixed = {**run.tasks, "mixed": run.tasks["vdc_camera"]}
    run = type(run)(run.path, run.document, mixed)
    assert names_with_verdicts(run) == list(tasks)
    with pytest.raises(DataError, match=f"any of vdc_camera, {other}, got 'mixed'"):
        read_verdicts(run, "mixed")
