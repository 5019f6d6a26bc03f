"""Golden outputs of ``labels``: what people's grades say of the judge and of the score."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from golden import check, numbers
from label_runs import rows_of, write_rows
from lmms_eval_captions.analysis.label.page import Page
from lmms_eval_captions.cli.main import main
from planted_world import draw


def _label(data: Mapping[str, Any], person: int, item: Mapping[str, Any]) -> dict[str, object]:
    """A person's grade: mostly the judge's, else one of their own."""
    choices = item["choices"] or data["gradings"][item["grading"]]["choices"]
    drawn = draw(item["row"]["video_id"], item["row"]["question_index"], person)
    judged = item["judge"][0] or {}
    own = choices[drawn % len(choices)]["name"]
    choice = own if drawn % 10 < 3 else judged.get("choice", own)
    return {"choice": choice, "ratings": judged.get("ratings", {})}


def _exported(page: Path) -> Path:
    """The file that two people export of a page."""
    [text] = re.findall(r'<script id="data"[^>]*>(.*?)</script>', page.read_text(), re.DOTALL)
    made = Page(json.loads(text), [])
    rows = [
        row
        for person in (1, 2)
        for row in rows_of(made, partial(_label, made.data, person), annotator=f"person-{person}")
    ]
    return write_rows(page.with_suffix(".jsonl"), rows)


@pytest.mark.parametrize("task", ["vdc_camera", "vidcapbench_ae", "vcapsbench", "capquiz"])
def test_grades(
    task: str, tmp_path: Path, folders: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Agreement of people and judge, and the score corrected by the labels."""
    page, run = tmp_path / "page.html", folders["alpha"]
    main(["label", run, "--tasks", task, "--frames", "0", "--n", "25", "-o", str(page)])
    labels = str(_exported(page))
    capsys.readouterr()
    assert main(["labels", labels, "--against", run, "--format", "json"]) == 0
    check(f"labels-{task}", numbers(json.loads(capsys.readouterr().out)))
