"""Pages about captions of finished runs: graded questions, and captions side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lmms_eval_captions.analysis.captioners import Captioner
from lmms_eval_captions.analysis.label.labels import LEFT, RIGHT, TIE
from lmms_eval_captions.analysis.label.page import Item, Page, PageOptions, item_of, page_of
from lmms_eval_captions.analysis.label.pairs import (
    FEATURES,
    designs,
    draw,
    judged_pairs,
    strata_of,
    tasks_to_label,
)
from lmms_eval_captions.analysis.web_page.documents import Documents, documents_to_label
from lmms_eval_captions.analysis.web_page.frames import NO_VIDEOS, frames_of
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.lmms_eval_tasks.grading import Choice, Grading, Label
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task

if TYPE_CHECKING:
    from lmms_eval_captions.judges.settings import DataSettings

_WHICH_IS_BETTER: Final = Grading(
    asks="Which caption describes the video better?",
    choices=(
        Choice(key="1", name=LEFT, text="The left one"),
        Choice(key="2", name=RIGHT, text="The right one"),
        Choice(key="0", name=TIE, text="Neither: a tie"),
    ),
    of_judge=lambda _logged: None,
    judgement=lambda _logged, _label: {},
)
_Logged = dict[tuple[str, str, str], tuple[str, list[dict[str, Any]]]]
"""By captioner, task and video: the caption and its judgements."""


def verdict_page(
    captioners: Sequence[Captioner], options: PageOptions, settings: DataSettings
) -> Page:
    """Return the page on which people grade what a judge graded.

    Raises:
        DataError: If sample logs are missing, or the benchmark's files if its questions need them.
        SettingsError: If a task, or what to stratify by, is not known.
    """
    import pandas as pd

    tasks = tasks_to_label(captioners, options.tasks)
    judged = [judged_pairs(captioner, task) for captioner in captioners for task in tasks]
    known = [*FEATURES, *dict.fromkeys(name for of, _ in judged for name in of.head["sections"])]
    for name in options.by:
        if name not in known:
            raise SettingsError(f"--by {name!r}: expected any of {', '.join(known)}")
    population = pd.concat([pairs for _, pairs in judged], ignore_index=True)
    strata = strata_of(population, options.by)
    drawn = draw(strata, options.n, options.seed)
    sample = population.iloc[drawn]
    documents = {task: documents_to_label(task, settings) for task in tasks}
    logged = _logged(captioners, sample)
    captions: dict[str, int] = {}
    items = []
    for pair, design in zip(
        sample.itertuples(), designs(strata, drawn, options.by, options.seed), strict=True
    ):
        text, judgements = logged[pair.captioner, pair.task, pair.video]
        caption = captions.setdefault(whole(text), len(captions))
        doc = documents[pair.task].get(pair.video, {})
        items.append(_item(pair, caption, judgements, doc, design))
    gradings = {task: _grading(task) for task in tasks}
    frames = partial(_frames, items, documents, options, settings)
    return page_of("verdict", items, list(captions), gradings, options, frames)


def _grading(task: str) -> Grading:
    grading = benchmark_of_task(task).grading
    assert grading is not None  # noqa: S101 - see tasks_to_label
    return grading


def _logged(captioners: Sequence[Captioner], sample: Any) -> _Logged:  # noqa: ANN401 - a DataFrame
    """Return captions with their judgements from the sample logs."""
    wanted = set(zip(sample["captioner"], sample["task"], sample["video"], strict=True))
    runs = {captioner.name: captioner.runs for captioner in captioners}
    found: _Logged = {}
    for captioner, task in dict.fromkeys(
        (captioner, task) for captioner, task, _ in sorted(wanted)
    ):
        headline = benchmark_of_task(task).headline
        for logged in runs[captioner][task].samples(task):
            item = logged.get(headline)
            if isinstance(item, dict):
                key = (captioner, task, str(item.get("video_id")))
                found[key] = caption_of(logged), list(item.get("judgements") or ())
    missing = wanted - found.keys()
    if missing:
        raise DataError(
            f"the sample logs lack {len(missing)} captions that were judged, such as that of "
            f"{min(missing)}; run lmms-eval with --log_samples"
        )
    return found


def caption_of(sample: Mapping[str, Any]) -> str:
    """Return the caption of a sample of a log."""
    replies = sample.get("filtered_resps") or sample.get("resps") or ""
    while isinstance(replies, list):
        replies = replies[0] if replies else ""
    return str(replies)


def _item(
    pair: Any,  # noqa: ANN401 - a row
    caption: int,
    judgements: Sequence[dict[str, Any]],
    doc: Mapping[str, Any],
    design: Mapping[str, object],
) -> Item:
    grading = _grading(pair.task)
    if grading.needs_data and not doc:
        raise DataError(
            f"{pair.task}: the benchmark's files lack video {pair.video!r}; set "
            "LMMS_CAPTIONS_DATA to the data that the run was judged with"
        )
    index = pair.question_index
    runs = sorted({judgement["run"] for judgement in judgements})
    of_pair = [[j for j in judgements if j["run"] == run][index] for run in runs]
    answer = whole(str(of_pair[0].get("answer") or ""))
    row = {
        "benchmark": benchmark_of_task(pair.task).name, "task": pair.task,
        "captioner": pair.captioner, "video_id": pair.video, "question_index": index,
        "question": pair.question, "caption_digest": pair.caption_digest, "design": design,
        "answer": answer,
    }  # fmt: skip
    choices = grading.choices_of(doc, index) if grading.choices_of else None
    return item_of(
        pair.task,
        whole(pair.video),
        row,
        question=whole(pair.question),
        answer=answer,
        captions=[caption],
        references=[whole(text) for text in grading.references(doc)],
        choices=None if choices is None else list(map(asdict, choices)),
        judge=[_to_row(grading.of_judge(judgement)) for judgement in of_pair],
    )


def _to_row(label: Label | None) -> object:
    return None if label is None else {"choice": label.choice, "ratings": dict(label.ratings)}


def side_by_side_page(
    captioners: Sequence[Captioner], options: PageOptions, settings: DataSettings
) -> Page:
    """Return the page on which people choose between two captions, without captioners' names.

    Raises:
        DataError: If sample logs are missing, or no video has two different captions.
        SettingsError: If there is one captioner, or a task that not all have.

    Source:
        AuroraCap, appendix O and figure O17: captions of two random models for the same video.
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
    gradings = {"pair": _WHICH_IS_BETTER}
    frames = partial(_frames, items, documents, options, settings)
    page = page_of("pair", items, list(texts), gradings, options, frames)
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


def _frames(
    items: Sequence[Item],
    documents: Mapping[str, Documents],
    options: PageOptions,
    settings: DataSettings,
    most_bytes: int,
) -> tuple[Mapping[str, Sequence[str]], Mapping[str, str]]:
    """Return frames of the videos, as far as they are available, and why others have none."""
    videos = {}
    for item in items:
        doc = documents[item["task"]].get(item["video_id"])
        if doc is not None:
            key = item["frames"]
            videos[key] = (key, benchmark_of_task(item["task"]), doc)
    frames, reasons = frames_of(
        settings, videos.values(), n_frames=options.n_frames, most_bytes=most_bytes
    )
    missing = {item["frames"] for item in items} - videos.keys()
    return frames, {**reasons, **dict.fromkeys(missing, f"No frames: {NO_VIDEOS}")}
