"""Pages about captions of finished runs: graded questions, and captions side by side."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from functools import cache, partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from lmms_eval_captions.analysis.captioners import Captioner, common_names
from lmms_eval_captions.analysis.gradings import Grading, grading_of
from lmms_eval_captions.analysis.label.labels import LEFT, RIGHT, WHICH_IS_BETTER, judged_pairs
from lmms_eval_captions.analysis.label.page import Item, Page, PageOptions, draw, item_of, page_of
from lmms_eval_captions.analysis.web_page import (
    LoggedCaption,
    documents_of,
    logged_captions,
    video_file,
)
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task, our_benchmarks


def verdict_page(
    captioners: Sequence[Captioner], options: PageOptions, settings: DataSettings
) -> Page:
    """Return the page on which people grade what a judge graded."""
    asked = {
        task: grading
        for task, benchmark in our_benchmarks().items()
        if (grading := grading_of(benchmark)) is not None
    }
    gradings = {task: asked[task] for task in _tasks(captioners, options.tasks, asked)}
    population = pd.concat(
        [judged_pairs(captioner, task)[1] for captioner in captioners for task in gradings],
        ignore_index=True,
    )
    documents = {
        task: documents_of(task, settings, is_needed=grading.needs_data)
        for task, grading in gradings.items()
    }
    runs = {captioner.name: captioner.runs for captioner in captioners}
    logged = cache(lambda captioner, task: logged_captions(runs[captioner][task], task))
    items = []
    for pair in population.iloc[draw(len(population), options.n, options.seed)].itertuples():
        captions = logged(pair.captioner, pair.task).get(pair.video, [])[pair.copy :]
        if not captions or not captions[0].judgements:
            raise DataError(
                f"the sample log of {pair.task} lacks the caption of {pair.video!r} by "
                f"{pair.captioner}, which was judged; run lmms-eval with --log_samples"
            )
        grading, doc = gradings[pair.task], documents[pair.task].get(pair.video, {})
        if grading.needs_data and not doc:
            raise DataError(
                f"{pair.task}: the benchmark's files lack video {pair.video!r}; set "
                "LMMS_CAPTIONS_DATA to the data that the run was judged with"
            )
        items.append(_item(pair, captions[0], grading, doc))
    return page_of("verdict", items, gradings, options, partial(video_file, settings, documents))


def _tasks(
    captioners: Sequence[Captioner], wanted: Sequence[str], known: Collection[str]
) -> list[str]:
    """Return the wanted ones of the known tasks, all of which all captioners have."""
    names = [name for name in common_names(captioners) if name in known]
    missing = [name for name in wanted if name not in names]
    if missing or not names:
        raise SettingsError(
            f"{' '.join(['--tasks', *missing])}: expected tasks that people can be asked about and "
            f"{', '.join(captioner.name for captioner in captioners)} all have: "
            f"{', '.join(names) or 'none'}"
        )
    return [name for name in names if not wanted or name in wanted]


def _item(
    pair: Any,  # noqa: ANN401 - a row
    caption: LoggedCaption,
    grading: Grading,
    doc: Mapping[str, Any],
) -> Item:
    index = pair.question_index
    runs = sorted({judgement["run"] for judgement in caption.judgements})
    of_pair = [[j for j in caption.judgements if j["run"] == run][index] for run in runs]
    answer = whole(str(of_pair[0].get("answer") or ""))
    row = {
        "captioner": pair.captioner, "question_index": index, "question": pair.question,
        "caption_digest": pair.caption_digest, "answer": answer,
    }  # fmt: skip
    choices = grading.choices_of(doc, index) if grading.choices_of else None
    said = [grading.of_judge(judgement) for judgement in of_pair]
    return item_of(
        benchmark_of_task(pair.task).name, pair.task, pair.video, row,
        question=whole(pair.question), answer=answer, captions=[whole(caption.text)],
        references=[whole(text) for text in grading.references(doc)],
        choices=None if choices is None else list(map(asdict, choices)),
        judge=[of and asdict(of) for of in said],
    )  # fmt: skip


def side_by_side_page(
    captioners: Sequence[Captioner], options: PageOptions, settings: DataSettings
) -> Page:
    """Return the page on which people choose between two captions, without captioners' names.

    Source:
        AuroraCap, appendix O and figure O17: captions of two random models for the same video.
    """
    if len(captioners) < 2:
        names = ", ".join(captioner.name for captioner in captioners)
        raise SettingsError(f"label --pairs: expected at least 2 captioners, got {names}")
    tasks = _tasks(captioners, options.tasks, our_benchmarks())
    captions: dict[tuple[str, str], dict[str, str]] = {}
    for task in tasks:
        for captioner in captioners:
            for video, own in logged_captions(captioner.runs[task], task).items():
                captions.setdefault((task, video), {})[captioner.name] = whole(own[-1].text)
    all_pairs = [
        (*key, *sides)
        for key, of_video in captions.items()
        for sides in combinations(of_video.items(), 2)
    ]
    pairs = [pair for pair in all_pairs if pair[2][1].strip() != pair[3][1].strip()]
    if not pairs:
        raise DataError("label --pairs: no video has two captions that differ")
    rng = np.random.default_rng([options.seed, 1])
    items = []
    for index in draw(len(pairs), options.n, options.seed):
        task, video, *sides = pairs[index]
        if rng.random() < 0.5:
            sides.reverse()
        (left, left_text), (right, right_text) = sides
        item = item_of(
            benchmark_of_task(task).name, task, video, {LEFT: left, RIGHT: right},
            grading="pair", captions=[left_text, right_text],
        )  # fmt: skip
        items.append(item)
    documents = {task: documents_of(task, settings) for task in tasks}
    find = partial(video_file, settings, documents)
    page = page_of("pair", items, {"pair": WHICH_IS_BETTER}, options, find)
    if len(all_pairs) > len(pairs):
        page.notes.append(f"pairs of equal captions, left out: {len(all_pairs) - len(pairs)}")
    return page
