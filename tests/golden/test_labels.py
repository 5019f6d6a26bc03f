"""Golden outputs of ``labels``: what people's grades say of the judge and of the score."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from golden import check, numbers
from lmms_eval_captions.cli.main import main
from planted_world import draw


def _label(item: Mapping[str, Any], grading: Mapping[str, Any], person: int) -> dict[str, object]:
    """A person's grade: mostly the judge's, else one of their own."""
    names = [choice["name"] for choice in item["choices"] or grading["choices"]]
    drawn = draw(item["row"]["video_id"], item["row"]["question_index"], person)
    judged = item["judge"][0] or {}
    own = names[drawn % len(names)]
    choice = own if drawn % 10 < 3 else judged.get("choice", own)
    return {"choice": choice, "ratings": judged.get("ratings", {})}


def _exported(page: Path) -> Path:
    """The file that two people export of a page."""
    [text] = re.findall(r'<script id="data"[^>]*>(.*?)</script>', page.read_text(), re.DOTALL)
    data = json.loads(text)
    rows = [
        {
            **data["about"],
            **item["row"],
            "item": item["id"],
            "page": data["page"],
            "kind": data["kind"],
            "label": _label(item, data["gradings"][item["grading"]], person),
            "judge": item["judge"],
            "annotator": f"person-{person}",
            "seconds": 2.5,
            "changed_after_reveal": False,
            "answered_at": "2026-01-02T03:04:05Z",
        }
        for person in (1, 2)
        for item in data["items"]
    ]
    path = page.with_suffix(".jsonl")
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


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
