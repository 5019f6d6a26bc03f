"""Records of a judge: written, read back, and told apart."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.benchmark_record import (
    BenchmarkRecord,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.probe_facts import ProbeFacts
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.record import (
    JudgeRecord,
    read_record,
    require_writable,
    write_record,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.reply_form import StepForm

VDC = BenchmarkRecord(
    protocol=1,
    prompts="",
    anchors="0123abcd",
    verdicts={"000-0": "yes", "000-1": "unreadable"},
    numbers={"000-0": 88.5},
    form={"vdc_match": StepForm(n=2, readable=0.5, chars=9.5, reasoning=0, refused=0, cut=0)},
)
RECORD = JudgeRecord(
    model="org/judge",
    served=("judge-2024-08-06",),
    endpoints=("http://127.0.0.1:8000/v1",),
    made="2026-01-31T18:30:00+00:00",
    probes=ProbeFacts({"prose": 90}, "honoured", None),
    benchmarks={"vdc": VDC},
    fingerprints={"vdc": "01234567"},
)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Every field of it."""
    write_record(tmp_path / "below" / "record.json", RECORD)
    assert read_record(tmp_path / "below" / "record.json") == RECORD


@pytest.mark.parametrize(
    "change",
    [
        {"format": "something else"},
        {"version": 2},
        {"benchmarks": {"vdc": {"protocol": 1}}},
        {"benchmarks": []},
        {"probes": None},
        {"probes": {"colour": "red"}},
        {"probes": {"tokens": {"prose": "many"}}},
        {"probes": {"seed": "perhaps"}},
        {"fingerprints": {}},
        {"fingerprints": {"vdc": "a|judge:b"}},
        {"served": "judge"},
        {"made": None},
        {"benchmarks": {"vdc": {**asdict(VDC), "verdicts": ["yes"]}}},
        {"benchmarks": {"vdc": {**asdict(VDC), "verdicts": {"000-0": 1}}}},
        {"benchmarks": {"vdc": {**asdict(VDC), "numbers": {"000-0": "high"}}}},
        {"benchmarks": {"vdc": {**asdict(VDC), "form": {"vdc_match": {"n": 1}}}}},
        {"benchmarks": {"vdc": {**asdict(VDC), "protocol": True}}},
    ],
)
def test_what_is_no_record_is_refused(change: dict[str, object], tmp_path: Path) -> None:
    """With what wrote it, and what to do."""
    path = tmp_path / "record.json"
    path.write_text(json.dumps({**RECORD.to_json(), **change}, default=str))
    with pytest.raises(DataError, match="judge verify -o FILE"):
        read_record(path)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '"text"', "\ufeff"])
def test_a_damaged_file_is_refused(text: str, tmp_path: Path) -> None:
    """Whatever stands in it."""
    path = tmp_path / "record.json"
    path.write_text(text)
    with pytest.raises(DataError, match="--against"):
        read_record(path)


def test_a_record_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """Where, and why; before it is there, too."""
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "record.json", tmp_path):
        with pytest.raises(DataError, match=r"-o .*cannot be written"):
            require_writable(path)
    require_writable(tmp_path / "new" / "record.json")
    assert list((tmp_path / "new").iterdir()) == []
    with pytest.raises(DataError, match=r"-o .*cannot be written"):
        write_record(tmp_path / "file" / "record.json", RECORD)


@pytest.mark.parametrize(
    "other",
    [
        replace(VDC, protocol=2),
        replace(VDC, prompts="01234567"),
        replace(VDC, anchors="ffffffff"),
        replace(VDC, verdicts={**VDC.verdicts, "000-0": "no"}),
    ],
)
def test_a_fingerprint_is_that_of_all_that_was_said(other: BenchmarkRecord) -> None:
    """And of model and version; numbers and the look of replies vary from run to run."""
    own = VDC.fingerprint("judge", ())
    assert other.fingerprint("judge", ()) != own
    assert VDC.fingerprint("other", ()) != own
    assert VDC.fingerprint("judge", ("judge-1",)) != own
    assert replace(VDC, numbers={}, form={}).fingerprint("judge", ()) == own
    turned = dict(reversed(list(VDC.verdicts.items())))
    assert replace(VDC, verdicts=turned).fingerprint("judge", ()) == own
