"""``agree`` of runs in which there is little to compare; golden outputs hold its numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_captions.cli.main import main
from planted_runs import PlantedCaption, Question, record_of, write_run


def test_a_judge_that_is_never_readable_twice_has_no_agreement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No share of no questions is printed, and no coefficient."""
    questions = [Question("Is there a dog?", {}), Question("Is it brown?", {})]
    runs = [["yes", None], [None, "no"]]
    captions = [PlantedCaption(f"v{number}", questions, runs) for number in range(30)]
    write_run(tmp_path, {"vdc_camera": [record_of("vdc_camera", of) for of in captions]})
    assert main(["agree", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "gpt-4o: no question has a verdict in all 2 of its runs" in printed
    assert "- of the questions" not in printed
