"""Page that shows two captions of one video next to each other, without their captioners' names.

Source: AuroraCap, appendix O and figure O17: captions of two random models for the same video.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from lmms_eval_captions.analysis.label.labels import LEFT, RIGHT, TIE
from lmms_eval_captions.analysis.label.page import (
    Page,
    PageOptions,
    item_of,
    page_of_results,
)
from lmms_eval_captions.analysis.label.pairs import designs, draw, tasks_to_label
from lmms_eval_captions.analysis.label.verdict_page import caption_of
from lmms_eval_captions.analysis.web_page.documents import documents_to_label
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.lmms_eval_tasks.grading import Choice, Grading
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmms_eval_captions.analysis.captioners import Captioner
    from lmms_eval_captions.judges.settings import DataSettings

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


def side_by_side_page(
    captioners: Sequence[Captioner], options: PageOptions, settings: DataSettings
) -> Page:
    """Return the page on which people choose between captions.

    Raises:
        DataError: If sample logs are missing, or no video has two different captions.
        SettingsError: If there is one captioner, or a task that not all have.
    """
    if len(captioners) < 2:
        names = ", ".join(captioner.name for captioner in captioners)
        raise SettingsError(f"label --pairs: expected at least 2 captioners, got {names}")
    tasks = tasks_to_label(captioners, options.tasks, graded=False)
    all_pairs = [
        (*key, *sides)
        for key, of_video in _captions(captioners, tasks).items()
        for sides in combinations(of_video.items(), 2)
    ]
    pairs = [pair for pair in all_pairs if pair[2][1].strip() != pair[3][1].strip()]
    if not pairs:
        raise DataError("label --pairs: no video has two captions that differ")
    strata = [""] * len(pairs)
    drawn = draw(strata, options.n, options.seed)
    rng = np.random.default_rng([options.seed, 1])
    texts: dict[str, int] = {}
    items = []
    for index, design in zip(drawn, designs(strata, drawn, (), options.seed), strict=True):
        task, video, *sides = pairs[index]
        if rng.random() < 0.5:
            sides.reverse()
        row = {
            "benchmark": benchmark_of_task(task).name, "task": task, "video_id": video,
            LEFT: sides[0][0], RIGHT: sides[1][0], "design": design,
        }  # fmt: skip
        captions = [texts.setdefault(text, len(texts)) for _, text in sides]
        items.append(item_of(task, whole(video), row, grading="pair", captions=captions))
    documents = {task: documents_to_label(task, settings) for task in tasks}
    gradings = {"pair": _GRADING}
    page = page_of_results("pair", items, list(texts), gradings, options, settings, documents)
    n_equal = len(all_pairs) - len(pairs)
    if n_equal:
        page.notes.append(f"pairs of equal captions, left out: {n_equal}")
    return page


def _captions(
    captioners: Sequence[Captioner], tasks: Sequence[str]
) -> dict[tuple[str, str], dict[str, str]]:
    """Return each captioner's caption by task and video."""
    captions: dict[tuple[str, str], dict[str, str]] = {}
    for task in tasks:
        headline = benchmark_of_task(task).headline
        for captioner in captioners:
            for sample in captioner.runs[task].samples(task):
                item = sample.get(headline)
                video = item.get("video_id") if isinstance(item, dict) else sample.get("target")
                of_video = captions.setdefault((task, str(video)), {})
                of_video[captioner.name] = whole(caption_of(sample))
    return captions
