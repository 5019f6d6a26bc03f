"""A page of ``report`` as a browser without script shows it, and the data that its script unpacks.

Written by the page's contract and not with the code that makes it.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from playwright.sync_api import Page as BrowserPage

from lmms_eval_captions.analysis.report.report import Options, make_report
from lmms_eval_captions.judges.settings import data_settings

Open = Callable[..., BrowserPage]
"""From a page's text to the page in a browser; further arguments are those of a new context."""
TASKS = ("vidcapbench_ae", "vdc_camera", "vcapsbench", "capquiz", "msvd_eval_ref_free")
"""A task of each benchmark."""
RATED, UNSCORED, NOT_ASKED = 253, 254, 255
NO_GROUP = 65_535


@dataclass
class ShownTable:
    """A table of the page."""

    section: str
    view: str | None
    caption: str
    header: list[str]
    rows: list[list[str]]


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

    tables: list[ShownTable] = field(default_factory=list)
    scripts: dict[str, str] = field(default_factory=dict)
    """Of elements with an id."""
    text: str = ""

    def table(self, caption: str, view: str | None = None) -> ShownTable:
        """The one table with a caption that begins so."""
        found = [t for t in self.tables if t.caption.startswith(caption) and t.view == view]
        assert len(found) == 1, [(t.view, t.caption) for t in self.tables]
        return found[0]

    @property
    def core(self) -> dict[str, Any]:
        """The names and columns."""
        return json.loads(self._bytes("core"))  # type: ignore[no-any-return] # an object

    def blocks(self) -> list[dict[str, Any]]:
        """The texts."""
        return [json.loads(self._bytes(f"text-{k}")) for k in range(self.core["n_blocks"])]

    def questions(self) -> Iterator[tuple[str, str, list[str | None], list[ShownQuestion]]]:
        """Of each row: task, video, each captioner's caption, questions."""
        core, data = self.core, self._bytes("questions")
        rows, n, n_sections = core["rows"], core["n_questions"], core["n_sections"]
        assert len(data) == n * (2 * n_sections + sum(c["n_runs"] for c in core["captioners"]))
        groups = [
            memoryview(data[2 * n * k : 2 * n * (k + 1)]).cast("H") for k in range(n_sections)
        ]
        codes, start = [], 2 * n * n_sections
        for captioner in core["captioners"]:
            codes.append(
                [data[start + n * r : start + n * (r + 1)] for r in range(captioner["n_runs"])]
            )
            start += n * captioner["n_runs"]
        blocks = self.blocks()
        for place, video in enumerate(rows["video"]):
            block, at = divmod(place, core["block_rows"])
            texts = {name: column[at] for name, column in blocks[block].items()}
            task = core["tasks"][rows["task"][place]]
            first, count = rows["first"][place], rows["n"][place]
            assert len(texts["questions"]) == len(texts["answers"]) == count
            shown = []
            for q in range(count):
                code = {
                    s["name"]: s["groups"][groups[k][first + q]]
                    for k, s in enumerate(task["sections"])
                    if groups[k][first + q] != NO_GROUP
                }
                verdicts = [[_label(task, run[first + q]) for run in of] for of in codes]
                said = [
                    [{name: of[q] for name, of in run.items() if of} for run in of_captioner]
                    for of_captioner in texts["said"]
                ]
                shown.append(
                    ShownQuestion(texts["questions"][q], texts["answers"][q], code, verdicts, said)
                )
            yield task["name"], video, texts["captions"], shown

    def _bytes(self, name: str) -> bytes:
        return gzip.decompress(base64.b64decode(self.scripts[name]))


def page_of(*folders: Path, **options: Any) -> Page:
    """The page that ``report`` makes of results folders, parsed."""
    return parsed(html_of(*folders, **options))


def html_of(*folders: Path, **options: Any) -> str:
    """The page that ``report`` makes of results folders, without frames."""
    known = Options(**{"n_frames": 0, **options})
    return make_report(folders, known, data_settings()).html


def parsed(html: str) -> Page:
    """A page by its text."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    return parser.page


def _label(task: dict[str, Any], code: int) -> str | None:
    others = {RATED: "rated", UNSCORED: "unscored", NOT_ASKED: None}
    if code in others:
        return others[code]
    name: str = task["labels"][code]["name"]
    return name


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self._section = ""
        self._view: str | None = None
        self._script: str | None = None
        self._cell: list[str] | None = None
        self._divs = 0
        self._skips = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag == "section":
            self._section = known.get("id") or ""
        elif tag == "div":
            self._divs += 1
            if known.get("class") == "view":
                self._view, self._divs = known["data-view"], 0
        elif tag == "script":
            self._script = known.get("id") or ""
        elif tag == "style":
            self._skips += 1
        elif tag == "table":
            self.page.tables.append(ShownTable(self._section, self._view, "", [], []))
        elif tag == "tr":
            self.page.tables[-1].rows.append([])
        elif tag in ("td", "th", "caption"):
            self._cell = []

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._script = None
        elif tag == "style":
            self._skips -= 1
        elif tag == "div" and self._view is not None:
            self._divs -= 1
            if self._divs < 0:
                self._view = None
        elif tag == "thead":
            self.page.tables[-1].header = self.page.tables[-1].rows.pop()
        elif tag in ("td", "th"):
            assert self._cell is not None
            self.page.tables[-1].rows[-1].append("".join(self._cell))
            self._cell = None
        elif tag == "caption":
            assert self._cell is not None
            self.page.tables[-1].caption = " ".join("".join(self._cell).split())
            self._cell = None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self.page.scripts[self._script] = self.page.scripts.get(self._script, "") + data
        elif self._cell is not None:
            self._cell.append(data)
            self.page.text += data
        elif not self._skips:
            self.page.text += data
