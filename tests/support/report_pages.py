"""A page of ``report`` without a browser: the data that its script unpacks.

Written by the page's contract and not with the code that makes it.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page as BrowserPage

from lmms_eval_captions.analysis.report.report import make_report
from lmms_eval_captions.judges.settings import data_settings

Open = Callable[..., BrowserPage]
"""From a page's text to the page in a browser; further arguments are those of a new context."""
TASKS = ("vidcapbench_ae", "vdc_camera", "vcapsbench", "capquiz", "msvd_eval_ref_free")
"""A task of each benchmark."""
RATED, UNSCORED, NOT_ASKED = 253, 254, 255
NO_GROUP = 65_535


@dataclass
class ShownQuestion:
    """A question with everything that the page has of it."""

    question: str
    answer: str
    groups: dict[str, str]
    verdicts: list[list[str | None]]
    """For each captioner and judge run: a label, ``rated``, ``unscored``; ``None``: not asked."""
    said: list[list[dict[str, Any]]]


@dataclass
class Page:
    """A page that was parsed."""

    scripts: dict[str, str]

    @property
    def core(self) -> dict[str, Any]:
        """The names and columns."""
        return json.loads(self.unpacked("core"))  # type: ignore[no-any-return] # an object

    def view(self, name: str) -> dict[str, Any]:
        (found,) = [view for view in self.core["views"] if view["name"] == name]
        return found  # type: ignore[no-any-return] # an object

    def questions(self) -> Iterator[tuple[str, str, list[str | None], list[ShownQuestion]]]:
        core, data, at = self.core, self.unpacked("questions"), 0
        of_tasks = []
        for task in core["tasks"]:
            columns = []
            for size in [2] * len(task["sections"]) + [1] * sum(task["n_runs"]):
                end = at + size * task["n"]
                columns.append(memoryview(data[at:end]).cast("H" if size == 2 else "B"))
                at = end
            of_tasks.append(columns)
        assert at == len(data)
        blocks = [json.loads(self.unpacked(f"text-{k}")) for k in range(core["n_blocks"])]
        starts = [sum(one["n"] for one in core["tasks"][:k]) for k in range(len(core["tasks"]))]
        for place, video in enumerate(core["rows"]["video"]):
            block, row = divmod(place, core["block_rows"])
            texts = {name: column[row] for name, column in blocks[block].items()}
            number = core["rows"]["task"][place]
            task, columns = core["tasks"][number], of_tasks[number]
            first = core["rows"]["first"][place] - starts[number]
            shown = []
            for q in range(core["rows"]["n"][place]):
                codes = [column[first + q] for column in columns]
                groups = {
                    section["name"]: section["groups"][code]
                    for section, code in zip(task["sections"], codes, strict=False)
                    if code != NO_GROUP
                }
                labels = iter(_label(task, code) for code in codes[len(task["sections"]) :])
                verdicts = [[next(labels) for _ in range(n)] for n in task["n_runs"]]
                said = [
                    [{name: of[q] for name, of in run.items() if of} for run in of_captioner]
                    for of_captioner in texts["said"]
                ]
                one = (texts["questions"][q], texts["answers"][q], groups, verdicts, said)
                shown.append(ShownQuestion(*one))
            yield task["name"], video, texts["captions"], shown

    def unpacked(self, name: str) -> bytes:
        """One of the data elements."""
        return gzip.decompress(base64.b64decode(self.scripts[name]))


def html_of(*folders: Path, **options: Any) -> str:
    """The page that ``report`` makes of results folders, without frames."""
    return make_report(folders, data_settings(), **{"n_frames": 0, **options}).html


def parsed(html: str) -> Page:
    """A page by its text."""
    return Page(dict(re.findall(r'<script id="([\w-]+)"[^>]*>([^<]*)</script>', html)))


def _label(task: dict[str, Any], code: int) -> str | None:
    others = {RATED: "rated", UNSCORED: "unscored", NOT_ASKED: None}
    if code in others:
        return others[code]
    name: str = task["labels"][code]["name"]
    return name
