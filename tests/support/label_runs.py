"""Runs with sample logs that pages of ``label`` are made of, and labels as a page exports them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from lmms_eval_captions.analysis.captioners import captioners_of
from lmms_eval_captions.analysis.label.page import Page, PageOptions, render
from lmms_eval_captions.analysis.label.results_pages import side_by_side_page, verdict_page
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.judging.session import submit
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task
from planted_runs import STAMP, write_run

Row = dict[str, Any]


def judged_run(folder: Path, tasks: Mapping[str, Sequence[str]]) -> Path:
    """Have captions of the data's first videos judged, and write what a run leaves.

    Args:
        folder: As lmms-eval's ``--output_path``.
        tasks: Task to captions of its first videos; after the last one the first again.
    """
    records, logs = {}, {}
    for task, captions in tasks.items():
        benchmark = benchmark_of_task(task)
        docs = benchmark.read(data_settings(), benchmark.tasks[task])
        waiting = [submit(benchmark, d, c) for d, c in zip(cycle(docs), captions, strict=False)]
        judged = [wait() for wait in waiting]
        records[task] = [caption.record for caption in judged]
        logs[task] = [
            {
                "target": caption.record.video_id,
                "filtered_resps": [text],
                benchmark.headline: caption.item(benchmark, benchmark.headline)[1],
            }
            for caption, text in zip(judged, captions, strict=False)
        ]
    path = write_run(folder, records)
    for task, samples in logs.items():
        write_rows(path.parent / f"{STAMP}_samples_{task}.jsonl", samples)
    return path


def page_of(*folders: Path, pairs: bool = False, n: int = 200, **options: Any) -> Page:
    """The page that ``label`` makes of results folders."""
    known = {"n_frames": 0, **options}
    make = side_by_side_page if pairs else verdict_page
    return make(captioners_of(folders), PageOptions(n=n, **known), data_settings())


def write_page(path: Path, page: Page) -> None:
    """The page as the file that a browser opens."""
    path.write_text(render("A page", page.data), encoding="utf-8")


def reload_saved(page: Any) -> None:
    """Load a page of a browser again, once the browser has what the page keeps.

    It takes that to another process, behind the page's back: on a busy machine a page that is
    loaded within milliseconds may not see it.
    """
    page.wait_for_timeout(500)
    page.reload()
    page.wait_for_function("document.querySelector('#count').textContent")


def rows_of(
    page: Page, say: Callable[[Row], Mapping[str, object] | None], *, annotator: str = "ann"
) -> list[Row]:
    data: Any = page.data
    return [
        {
            **data["about"], **item["row"], "item": item["id"], "page": data["page"],
            "kind": data["kind"], "label": say(item), "judge": item["judge"],
            "annotator": annotator, "seconds": 2.5, "changed_after_reveal": False,
            "answered_at": "2026-01-02T03:04:05Z",
        }
        for item in data["items"]
    ]  # fmt: skip


def write_rows(path: Path, rows: Iterable[Mapping[str, object]]) -> Path:
    """A file of JSON lines."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path
