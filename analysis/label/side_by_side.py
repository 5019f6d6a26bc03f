"""Two captions of one video beside each other, without the names of who wrote them.

Source: AuroraCap, appendix O and figure O17: captions of two random models for the same video.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lmms_eval_captions.analysis.label.page_data import (
    Page,
    PageOptions,
    finish_page,
    grading_to_row,
)
from lmms_eval_captions.analysis.label.pairs import tasks_to_label
from lmms_eval_captions.analysis.label.sampling import Design, draw
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.lmms_eval_tasks.grading import Choice, Grading
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmms_eval_captions.analysis.verdicts.captioners import Captioner
    from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.analysis.verdicts.samples import caption_of
from lmms_eval_captions.analysis.web_page.documents import documents_to_label

LEFT: Final = "left"
RIGHT: Final = "right"
TIE: Final = "tie"
_GRADING: Final = Grading(
    asks="Which caption describes the video better?",
    choices=(
        Choice(key="1", name=LEFT, text="The left one"),
        Choice(key="2", name=RIGHT, text="The right one"),
        Choice(key="0", name=TIE, text="Neither: a tie"),
    ),
    of_judge=lambda _logged: None,
    judgement=lambda _logged, _label: {},
)
_Captions = dict[tuple[str, str], dict[str, str]]
"""Task and video to each captioner's caption."""


def side_by_side_page(
    captioners: Sequence[Captioner], options: PageOptions, settings: DataSettings
) -> Page:
    """The page on which people choose between captions.

    Raises:
        DataError: If sample logs are missing, or no video has two different captions.
        SettingsError: If there is one captioner, or a task that not all have.
    """
    if len(captioners) < 2:
        names = ", ".join(captioner.name for captioner in captioners)
        raise SettingsError(f"label --pairs: expected at least 2 captioners, got {names}")
    tasks = tasks_to_label(captioners, options.tasks, graded=False)
    population, n_equal = _population(_captions(captioners, tasks))
    if not population:
        raise DataError("label --pairs: no video has two captions that differ")
    places = draw([""] * len(population), options.n, options.seed)
    design = Design((), options.seed, len(population), len(places))
    row = design.to_row("", {"": len(population)}, {"": len(places)})
    rng = np.random.default_rng([options.seed, 1])
    texts: dict[str, int] = {}
    items: list[dict[str, Any]] = []
    for place in places:
        task, video, *sides = population[place]
        if rng.random() < 0.5:
            sides.reverse()
        items.append(_item(str(len(items)), task, video, sides, texts))
        items[-1]["row"]["design"] = row
    documents = {task: documents_to_label(task, settings) for task in tasks}
    page = finish_page(
        "pair", items, list(texts), {"pair": grading_to_row(_GRADING)}, documents, options, settings
    )
    equal = (f"{n_equal} pairs of equal captions are left out",) if n_equal else ()
    return Page(page.data, (*page.notes, *equal))


def _captions(captioners: Sequence[Captioner], tasks: list[str]) -> _Captions:
    captions: _Captions = {}
    for task in tasks:
        headline = our_benchmarks()[task].headline
        for captioner in captioners:
            for sample in captioner.runs[task].samples(task):
                item = sample.get(headline)
                video = item.get("video_id") if isinstance(item, dict) else sample.get("target")
                of_video = captions.setdefault((task, str(video)), {})
                of_video[captioner.name] = whole(caption_of(sample))
    return captions


def _population(
    captions: _Captions,
) -> tuple[list[tuple[str, str, tuple[str, str], tuple[str, str]]], int]:
    """Task, video, and captioner and caption of two sides; and how many pairs are equal."""
    population = []
    n_equal = 0
    for (task, video), of_video in captions.items():
        for first, second in combinations(of_video.items(), 2):
            if first[1].strip() == second[1].strip():
                n_equal += 1
            else:
                population.append((task, video, first, second))
    return population, n_equal


def _item(
    name: str, task: str, video: str, sides: list[tuple[str, str]], texts: dict[str, int]
) -> dict[str, Any]:
    return {
        "id": name,
        "task": task,
        "grading": "pair",
        "video_id": whole(video),
        "question": "",
        "answer": "",
        "captions": [texts.setdefault(text, len(texts)) for _, text in sides],
        "references": [],
        "choices": None,
        "judge": [],
        "row": {
            "benchmark": our_benchmarks()[task].name,
            "task": task,
            "video_id": video,
            LEFT: sides[0][0],
            RIGHT: sides[1][0],
        },
    }
