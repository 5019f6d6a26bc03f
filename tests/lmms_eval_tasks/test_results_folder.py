"""One reader of what lmms-eval and our tasks wrote of a run."""

from __future__ import annotations

import json
from math import isnan, nan
from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.measured import Measured
from lmms_eval_captions.lmms_eval_tasks.results_folder import (
    RunResults,
    TaskResults,
    read_all_results,
    read_results,
)
from lmms_eval_captions.lmms_eval_tasks.signature import Signature

SIGNATURE = "vdc_camera|judge:j|runs:1|protocol:1|unscored:1/9|lmms-eval-captions:0.1.0"
GROUP = "judge:j|runs:1|protocol:1|lmms-eval-captions:0.1.0"
DATE = "20260102_000000"


def _write(folder: Path, date: str = DATE, **of_camera: object) -> Path:
    """A results file as lmms-eval 0.7.3 writes it: a task and a group of ours, one of others."""
    folder.mkdir(parents=True, exist_ok=True)
    camera = {"vdc_acc,none": 40.0, "vdc_acc_stderr,none": 1.5, "signature,none": SIGNATURE}
    camera |= {"paired_ci_lower,none": nan}
    tasks = {
        "vdc_camera": {"alias": "vdc_camera", **camera, **of_camera},
        "vdc_score": {"alias": "vdc_score", "vdc_acc,none": nan, "signature,none": GROUP},
        "mme": {"alias": "mme", "mme,none": 1, "mme_stderr,none": "N/A"},
    }
    path = folder / f"{date}_results.json"
    path.write_text(json.dumps({"results": tasks, "config": {"model": "m"}}))
    return path


def _read(folder: Path) -> RunResults:
    (results,) = read_results(folder)
    return results


def test_results_keep_their_numbers_and_signatures(tmp_path: Path) -> None:
    """Standard errors and texts are no scores; another package's task has no signature."""
    results = _read(_write(tmp_path / "model"))
    camera, group, other = (results.tasks[name] for name in ("vdc_camera", "vdc_score", "mme"))
    assert camera.scores == {"vdc_acc": 40.0}
    assert camera.signature == Signature.parse(SIGNATURE)
    assert isnan(group.scores["vdc_acc"])
    assert (other.scores, other.signature) == ({"mme": 1.0}, None)
    assert results.document["config"] == {"model": "m"}


def _judged(path: Path, finished: str, **of_camera: object) -> None:
    """The judging document of a run, beside its results."""
    camera = {"metrics": {"vdc_acc": {"value": 40.0, "standard_error": 1.25}}, **of_camera}
    document = {"finished": finished, "tasks": {"vdc_camera": camera}}
    judging = path.with_name(path.name.replace("_results", "_judging"))
    judging.write_text(json.dumps(document))


def test_words_of_ours_stand_beside_the_metrics(tmp_path: Path) -> None:
    """Signature and breakdown have a place of their own in the file; older versions had none."""
    path = _write(tmp_path)
    document = json.loads(path.read_text())
    metrics = document["results"]["vdc_camera"]
    words = {"signature": metrics.pop("signature,none"), "breakdown": "1_breakdown_vdc_camera.json"}
    document["lmms_eval_captions"] = {"tasks": {"vdc_camera": words}}
    path.write_text(json.dumps(document))
    (tmp_path / "1_breakdown_vdc_camera.json").write_text('{"overall": 1}')
    results = _read(tmp_path)
    assert results.tasks["vdc_camera"].signature == Signature.parse(SIGNATURE)
    assert results.breakdown("vdc_camera") == {"overall": 1}


def test_what_was_judged_stands_beside_the_results(tmp_path: Path) -> None:
    """Standard errors, reasons, doubts and the end of the run; all of it may be missing."""
    path = _write(tmp_path)
    bare = _read(tmp_path)
    camera = bare.tasks["vdc_camera"]
    assert (camera.unscored_reasons, camera.doubts) == ({}, [])
    assert camera.measured["vdc_acc"].standard_error is None
    assert bare.finished_s == path.stat().st_mtime
    unscored = {"n": 2, "of": 9, "reasons": {"no reply": 2, "odd": "many"}}
    _judged(path, "1970-01-01T01:00:00+00:00", unscored=unscored, doubts=["It echoes."])
    results = _read(tmp_path)
    camera = results.tasks["vdc_camera"]
    assert camera.measured["vdc_acc"].standard_error == 1.25
    assert (camera.unscored_reasons, camera.doubts) == ({"no reply": 2}, ["It echoes."])
    assert results.finished_s == 3600.0


def test_a_run_without_results_is_read_from_what_was_judged() -> None:
    """A value that is null there is not a number."""
    metrics = {"vdc_acc": {"value": 40.0, "standard_error": None}, "vdc_score": {"value": None}}
    task = TaskResults.of_judging({"signature": SIGNATURE, "metrics": metrics})
    assert task.signature == Signature.parse(SIGNATURE)
    assert task.scores["vdc_acc"] == 40.0
    assert isnan(task.scores["vdc_score"])
    assert task.measured == {"vdc_acc": Measured(value=40.0)}


def test_a_results_file_by_itself_has_the_intervals() -> None:
    """They are no scores, and other people's metrics of like names are theirs."""
    ends = {"vdc_acc_ci_low,none": 38.0, "vdc_acc_ci_high,none": 43.5}
    task = TaskResults({"vdc_acc,none": 40.0, **ends, "loss_std,none": 1.0})
    assert task.scores == {"vdc_acc": 40.0, "loss_std": 1.0}
    assert str(task.measured["vdc_acc"]) == "40.00 [38.00, 43.50]"
    assert str(task.measured["loss_std"]) == "1.00"


def test_all_results_come_in_the_order_of_the_runs(tmp_path: Path) -> None:
    """By their end where each says it, as names may be in different time zones; else by name."""
    paths = [_write(tmp_path, date) for date in ("20260101_200000", "20260101_100000")]
    (runs,) = read_all_results(tmp_path)
    assert [run.path for run in runs] == paths[::-1]
    for path, finished in zip(
        paths, ("2026-01-01T12:00+00:00", "2026-01-01T16:00+00:00"), strict=True
    ):
        _judged(path, finished)
    (runs,) = read_all_results(tmp_path)
    assert [run.path for run in runs] == paths


def test_of_each_model_the_newest_results_are_read(tmp_path: Path) -> None:
    """Each folder below is a model's; of a file, that file is read."""
    first, second = tmp_path / "a", tmp_path / "deep" / "b"
    old = _write(first, "20260101_000000")
    paths = {_write(first), _write(second, "20250101_000000")}
    assert {results.path for results in read_results(tmp_path)} == paths
    assert [results.path for results in read_results(old)] == [old]


def test_samples_are_those_of_the_run(tmp_path: Path) -> None:
    """A newer log, of a run that ended before its results, is another run's."""
    path = _write(tmp_path / "model")
    for date, text in ((DATE, "right"), ("20270101_000000", "newer"), ("20250101_000000", "older")):
        log = path.parent / f"{date}_samples_vdc_camera.jsonl"
        log.write_text(f'{{"doc_id": 0, "filtered_resps": "{text}"}}\n\n{{"doc_id": 1}}\n')
    samples = list(_read(path).samples("vdc_camera"))
    assert [sample["doc_id"] for sample in samples] == [0, 1]
    assert samples[0]["filtered_resps"] == "right"
    with pytest.raises(DataError, match=r"'capquiz'.*'vdc_camera'.*--log_samples"):
        _read(path).samples("capquiz")


@pytest.mark.parametrize(
    "text", ['{"doc_id": 0}\n{"doc', "[1]\n", '{"a": ' + "[" * 200], ids=["cut", "list", "deep"]
)
def test_a_damaged_sample_log_is_told(tmp_path: Path, text: str) -> None:
    """The error names the file; what was read before is not taken for all of it."""
    path = _write(tmp_path)
    log = tmp_path / f"{DATE}_samples_vdc_camera.jsonl"
    log.write_text(text)
    with pytest.raises(DataError, match="expected a sample") as caught:
        list(_read(path).samples("vdc_camera"))
    assert log.name in str(caught.value)


def test_the_breakdown_is_the_one_that_the_results_name(tmp_path: Path) -> None:
    """Wherever the folder has been moved to, and whatever other models left in it."""
    names = {"breakdown,none": "elsewhere/out/2_breakdown_vdc_camera.json"}
    results = _read(_write(tmp_path / "model", **names))
    for number in (1, 2, 3):
        path = tmp_path / f"{number}_breakdown_vdc_camera.json"
        path.write_text(f'{{"overall": {number}}}')
    assert results.breakdown("vdc_camera") == {"overall": 2}
    assert results.breakdown("vdc_score") is None
    none = _write(tmp_path / "other", **{"breakdown,none": "none: there is no score"})
    assert _read(none).breakdown("vdc_camera") is None


@pytest.mark.parametrize("text", ["{", "[]", "[" * 200, None])
def test_a_damaged_breakdown_is_told(tmp_path: Path, text: str | None) -> None:
    """A file that was cut off or lost is not the same as none."""
    name = "1_breakdown_vdc_camera.json"
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=r"expected (a|the) breakdown") as caught:
        _read(_write(tmp_path / "model", **{"breakdown,none": name})).breakdown("vdc_camera")
    assert name in str(caught.value)


def test_a_folder_without_results_is_told(tmp_path: Path) -> None:
    """The error says which folder to give."""
    with pytest.raises(DataError, match=r"no \*_results.json here or below"):
        read_results(tmp_path)
    with pytest.raises(DataError, match=r"there is no such folder; give the folder that"):
        read_results(tmp_path / "nowhere")
