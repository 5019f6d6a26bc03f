"""From judged pairs to what a page asks about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lmms_eval_captions.analysis.label.page_data import (
    Page,
    PageOptions,
    finish_page,
    grading_to_row,
)
from lmms_eval_captions.analysis.label.pairs import (
    CAPTIONER,
    TASK,
    VERDICT,
    Pair,
    judged_pairs,
    tasks_to_label,
    verdicts_of,
)
from lmms_eval_captions.analysis.label.sampling import Design, draw
from lmms_eval_captions.analysis.verdicts.captioners import Captioner
from lmms_eval_captions.analysis.verdicts.samples import caption_of
from lmms_eval_captions.analysis.web_page.documents import Documents, documents_to_label
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.lmms_eval_tasks.grading import Grading, Label
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task

if TYPE_CHECKING:
    from lmms_eval_captions.judges.settings import DataSettings


def verdict_page(
    captioners: Sequence[Captioner], options: PageOptions, settings: DataSettings
) -> Page:
    """The page on which people grade what a judge graded.

    Raises:
        DataError: If sample logs are missing, or the benchmark's files where its questions need
            them.
        SettingsError: If the tasks or what to stratify by are not there.
    """
    tasks = tasks_to_label(captioners, options.tasks)
    population = [
        pair
        for captioner in captioners
        for task in tasks
        for pair in judged_pairs(captioner.name, verdicts_of(captioner, task))
    ]
    _check_sections(population, options.by)
    strata = [pair.stratum(options.by) for pair in population]
    places = draw(strata, options.n, options.seed)
    design = Design(options.by, options.seed, len(population), len(places))
    sizes, drawn = Counter(strata), Counter(strata[place] for place in places)
    pairs = [population[place] for place in places]
    rows = [
        {**_row(pair), "design": design.to_row(strata[place], sizes, drawn)}
        for pair, place in zip(pairs, places, strict=True)
    ]
    documents = {task: documents_to_label(task, settings) for task in tasks}
    logged = _logged(captioners, pairs)
    captions: dict[str, int] = {}
    items = []
    for place, (pair, row) in enumerate(zip(pairs, rows, strict=True)):
        caption, judgements = logged[pair.captioner, pair.record.task, pair.record.video_id]
        index = captions.setdefault(whole(caption), len(captions))
        items.append(_item(place, pair, row, index, judgements, documents[pair.record.task]))
    return finish_page(
        "verdict", items, list(captions), _gradings(tasks), documents, options, settings
    )


def _check_sections(population: Sequence[Pair], by: Sequence[str]) -> None:
    sections = dict.fromkeys(name for pair in population for name in pair.record.groups)
    known = [CAPTIONER, TASK, VERDICT, *sections]
    for name in by:
        if name not in known:
            raise SettingsError(f"--by {name!r}: expected any of {', '.join(known)}")


def _row(pair: Pair) -> dict[str, object]:
    """What every label of a pair carries to find it again."""
    return {
        "benchmark": pair.benchmark.name,
        "task": pair.record.task,
        "captioner": pair.captioner,
        "video_id": pair.record.video_id,
        "question_index": pair.place,
        "question": pair.question,
        "caption_digest": pair.record.caption_digest,
    }


def _logged(
    captioners: Sequence[Captioner], pairs: Sequence[Pair]
) -> dict[tuple[str, str, str], tuple[str, list[dict[str, Any]]]]:
    """Captioner, task and video to the caption and its judgements, from the sample logs."""
    wanted = {(pair.captioner, pair.record.task, pair.record.video_id) for pair in pairs}
    found: dict[tuple[str, str, str], tuple[str, list[dict[str, Any]]]] = {}
    runs = {captioner.name: captioner.runs for captioner in captioners}
    for captioner, task in dict.fromkeys((pair.captioner, pair.record.task) for pair in pairs):
        headline = benchmark_of_task(task).headline
        for sample in runs[captioner][task].samples(task):
            item = sample.get(headline)
            if not isinstance(item, dict):
                continue
            key = (captioner, task, str(item.get("video_id")))
            if key in wanted:
                found[key] = caption_of(sample), list(item.get("judgements") or ())
    missing = wanted - found.keys()
    if missing:
        raise DataError(
            f"the sample logs lack {len(missing)} captions that were judged, such as that of "
            f"{min(missing)}; run lmms-eval with --log_samples"
        )
    return found


def _item(
    place: int,
    pair: Pair,
    row: dict[str, object],
    caption: int,
    judgements: Sequence[dict[str, Any]],
    documents: Documents,
) -> dict[str, Any]:
    grading = _grading(pair)
    runs = sorted({judgement["run"] for judgement in judgements})
    of_pair = [[j for j in judgements if j["run"] == run][pair.place] for run in runs]
    doc = documents.get(pair.record.video_id, {})
    if grading.needs_data and not doc:
        raise DataError(
            f"{pair.record.task}: the benchmark's files lack video {pair.record.video_id!r}; set "
            "LMMS_CAPTIONS_DATA to the data that the run was judged with"
        )
    answer = whole(str(of_pair[0].get("answer") or ""))
    choices = grading.choices_of(doc, pair.place) if grading.choices_of else None
    return {
        "id": str(place),
        "task": pair.record.task,
        "grading": pair.record.task,
        "video_id": whole(pair.record.video_id),
        "question": whole(pair.question),
        "answer": answer,
        "captions": [caption],
        "references": [whole(text) for text in grading.references(doc)],
        "choices": None if choices is None else [asdict(choice) for choice in choices],
        "judge": [_to_row(grading.of_judge(judgement)) for judgement in of_pair],
        "row": {**row, "answer": answer},
    }


def _to_row(label: Label | None) -> object:
    return None if label is None else {"choice": label.choice, "ratings": dict(label.ratings)}


def _grading(pair: Pair) -> Grading:
    grading: Grading | None = pair.benchmark.grading
    if grading is None:
        raise SettingsError(f"{pair.record.task}: people cannot be asked about it")
    return grading


def _gradings(tasks: Sequence[str]) -> dict[str, object]:
    return {task: grading_to_row(benchmark_of_task(task).grading) for task in tasks}
