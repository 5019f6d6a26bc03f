"""Pages about captions of finished runs: graded questions, and captions side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from lmms_eval_captions.analysis.captioners import Captioner, common_names
from lmms_eval_captions.analysis.gradings import Choice, Grading, grading_of
from lmms_eval_captions.analysis.label.labels import LEFT, RIGHT, TIE
from lmms_eval_captions.analysis.label.page import Item, Page, PageOptions, item_of, page_of
from lmms_eval_captions.analysis.label.sampling import FEATURES, draw, judged_pairs, strata_of
from lmms_eval_captions.analysis.web_page import (
    Documents,
    LoggedCaption,
    documents_of,
    logged_captions,
    video_file,
)
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task, our_benchmarks

_WHICH_IS_BETTER: Final = Grading(
    asks="Which caption describes the video better?",
    choices=(
        Choice(key="1", name=LEFT, text="The left one"),
        Choice(key="2", name=RIGHT, text="The right one"),
        Choice(key="0", name=TIE, text="Neither: a tie"),
    ),
)


def verdict_page(
    captioners: Sequence[Captioner], options: PageOptions, settings: DataSettings
) -> Page:
    """Return the page on which people grade what a judge graded."""
    tasks = _tasks_to_label(captioners, options.tasks, graded=True)
    gradings = {task: of for task in tasks if (of := grading_of(benchmark_of_task(task)))}
    judged = [judged_pairs(captioner, task) for captioner in captioners for task in gradings]
    known = [*FEATURES, *dict.fromkeys(name for of, _ in judged for name in of.head["sections"])]
    for name in options.by:
        if name not in known:
            raise SettingsError(f"--by {name!r}: expected any of {', '.join(known)}")
    population = pd.concat([pairs for _, pairs in judged], ignore_index=True)
    sample = draw(strata_of(population, options.by), options.n, options.seed, options.by)
    documents = _documents(gradings, settings)
    runs = {captioner.name: captioner.runs for captioner in captioners}
    logged = cache(lambda captioner, task: logged_captions(runs[captioner][task], task))
    captions: dict[str, int] = {}
    items = []
    drawn = population.iloc[list(sample)].itertuples()
    for pair, design in zip(drawn, sample.values(), strict=True):
        caption = _caption_of(pair, logged(pair.captioner, pair.task))
        index = captions.setdefault(whole(caption.text), len(captions))
        doc = documents[pair.task].get(pair.video, {})
        items.append(_item(pair, index, caption, gradings[pair.task], doc, design))
    videos = _videos(items, documents, settings)
    return page_of("verdict", items, list(captions), gradings, options, videos)


def _tasks_to_label(
    captioners: Sequence[Captioner], wanted: Sequence[str] | None, *, graded: bool
) -> list[str]:
    """Return the tasks that all captioners have and people can be asked about."""
    benchmarks = our_benchmarks()
    names = [
        name
        for name in common_names(captioners)
        if name in benchmarks and (not graded or grading_of(benchmarks[name]) is not None)
    ]
    missing = [name for name in wanted or () if name not in names]
    if missing or not names:
        raise SettingsError(
            f"{' '.join(['--tasks', *missing])}: expected tasks that people can be asked about and "
            f"{', '.join(captioner.name for captioner in captioners)} all have: "
            f"{', '.join(names) or 'none'}"
        )
    return [name for name in names if not wanted or name in wanted]


def _documents(
    gradings: Mapping[str, Grading | None], settings: DataSettings
) -> dict[str, Documents]:
    return {
        task: documents_of(task, settings, is_needed=grading is not None and grading.needs_data)
        for task, grading in gradings.items()
    }


def _caption_of(
    pair: Any,  # noqa: ANN401 - a row
    logged: Mapping[str, list[LoggedCaption]],
) -> LoggedCaption:
    """Return the logged caption that a pair is of: the same text, asked the same question."""
    own = [of for of in logged.get(pair.video, ()) if of.judgements]
    own = [of for of in own if pair.caption_digest in ("", of.digest)] or own
    if not own:
        raise DataError(
            f"the sample log of {pair.task} lacks the caption of {pair.video!r} by "
            f"{pair.captioner}, which was judged; run lmms-eval with --log_samples"
        )
    asks = (of for of in own if any(j.get("question") == pair.question for j in of.judgements))
    return next(asks, own[-1])


def _item(
    pair: Any,  # noqa: ANN401 - a row
    index_of_caption: int,
    caption: LoggedCaption,
    grading: Grading,
    doc: Mapping[str, Any],
    design: Mapping[str, object],
) -> Item:
    if grading.needs_data and not doc:
        raise DataError(
            f"{pair.task}: the benchmark's files lack video {pair.video!r}; set "
            "LMMS_CAPTIONS_DATA to the data that the run was judged with"
        )
    index = pair.question_index
    runs = sorted({judgement["run"] for judgement in caption.judgements})
    of_pair = [[j for j in caption.judgements if j["run"] == run][index] for run in runs]
    answer = whole(str(of_pair[0].get("answer") or ""))
    row = {
        "benchmark": benchmark_of_task(pair.task).name, "task": pair.task,
        "captioner": pair.captioner, "video_id": pair.video, "question_index": index,
        "question": pair.question, "caption_digest": pair.caption_digest, "design": design,
        "answer": answer,
    }  # fmt: skip
    choices = grading.choices_of(doc, index) if grading.choices_of else None
    said = [grading.of_judge(judgement) for judgement in of_pair]
    return item_of(
        pair.task, whole(pair.video), row, question=whole(pair.question), answer=answer,
        captions=[index_of_caption],
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
    tasks = _tasks_to_label(captioners, options.tasks, graded=False)
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
    texts: dict[str, int] = {}
    items = []
    for index, design in draw([""] * len(pairs), options.n, options.seed).items():
        task, video, *sides = pairs[index]
        if rng.random() < 0.5:
            sides.reverse()
        row = {
            "benchmark": benchmark_of_task(task).name, "task": task, "video_id": video,
            LEFT: sides[0][0], RIGHT: sides[1][0], "design": design,
        }  # fmt: skip
        shown = [texts.setdefault(text, len(texts)) for _, text in sides]
        items.append(item_of(task, whole(video), row, grading="pair", captions=shown))
    documents = _documents({task: grading_of(benchmark_of_task(task)) for task in tasks}, settings)
    videos = _videos(items, documents, settings)
    page = page_of("pair", items, list(texts), {"pair": _WHICH_IS_BETTER}, options, videos)
    if len(all_pairs) > len(pairs):
        page.notes.append(f"pairs of equal captions, left out: {len(all_pairs) - len(pairs)}")
    return page


def _videos(
    items: Sequence[Item], documents: Mapping[str, Documents], settings: DataSettings
) -> dict[str, Callable[[], Path]]:
    """Return functions that find the videos of questions, by key."""
    return {
        item["frames"]: partial(video_file, settings, documents, item["task"], item["video_id"])
        for item in items
    }
