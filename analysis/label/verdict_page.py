"""Page on which people grade what a judge graded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lmms_eval_captions.analysis.captioners import Captioner
from lmms_eval_captions.analysis.label.page import (
    Item,
    Page,
    PageOptions,
    item_of,
    page_of_results,
)
from lmms_eval_captions.analysis.label.pairs import (
    FEATURES,
    designs,
    draw,
    judged_pairs,
    strata_of,
    tasks_to_label,
)
from lmms_eval_captions.analysis.web_page.documents import documents_to_label
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.lmms_eval_tasks.grading import Grading, Label
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task

if TYPE_CHECKING:
    from lmms_eval_captions.judges.settings import DataSettings

_Logged = dict[tuple[str, str, str], tuple[str, list[dict[str, Any]]]]
"""By captioner, task and video: the caption and its judgements."""


def verdict_page(
    captioners: Sequence[Captioner], options: PageOptions, settings: DataSettings
) -> Page:
    """Return the page.

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
    return page_of_results("verdict", items, list(captions), gradings, options, settings, documents)


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
