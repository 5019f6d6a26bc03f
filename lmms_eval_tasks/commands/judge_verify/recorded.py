"""Items of a run that is over, to be asked anew: captions, questions, and what was said of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.subjects import Subject
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.results_folder import RunResults, read_results
from lmms_eval_captions.lmms_eval_tasks.signature import Signature, questions_digest
from lmms_eval_captions.lmms_eval_tasks.verdicts.alignment import numbered
from lmms_eval_captions.lmms_eval_tasks.verdicts.samples import caption_of
from lmms_eval_captions.lmms_eval_tasks.verdicts.verdicts import read_verdicts
from lmms_eval_captions.lmms_eval_tasks.web_page.documents import documents_of

TOLERANCE: Final = 0.2
"""Part of a scale that two numbers may be apart and count as the same: a judge's grades of whole
captions vary by some points from run to run."""
SAME: Final = "the same"


@dataclass(frozen=True, slots=True)
class RecordedItem:
    """One question of a run, and the verdict that all judge runs gave it."""

    name: str
    """Task, video and place of the question."""
    task: str
    question: object
    """As the benchmark's protocol takes it."""
    caption: str
    verdict: object
    """A label, or the mean of several numbers."""


@dataclass(frozen=True, slots=True)
class RecordedItems:
    """The items of a benchmark that can be asked anew."""

    items: Sequence[RecordedItem]
    """In the order of asking."""
    n_open: int
    """Questions that were left out, as the judge runs or asks did not agree on them."""
    judge: str
    """Who judged."""


def recorded_items(
    folder: Path, subject: Subject, nonce: int, *, most: int
) -> RecordedItems | None:
    """Questions of a benchmark that are drawn at random from the runs of a results folder.

    Args:
        folder: As lmms-eval had it as ``--output_path``.
        subject: The benchmark.
        nonce: Draws.
        most: Items at most.

    Returns:
        ``None`` where the folder has no task of the benchmark.

    Raises:
        DataError: If the folder cannot be read, its captions are not there, or it was judged in
            another way.
    """
    items: list[RecordedItem] = []
    n_open, judges = 0, dict[str, None]()
    for run in read_results(folder):
        for task in subject.benchmark.tasks:
            if task in run.tasks and not run.tasks[task].is_prediction:
                judges[_check(run, task, subject)] = None
                found, undecided = _of_task(run, task, subject)
                items += found
                n_open += undecided
    if not judges:
        return None
    random.Random(f"{nonce} recorded {subject.name}").shuffle(items)  # noqa: S311 # nosec B311
    return RecordedItems(items[:most], n_open, ", ".join(judges))


def verdict_in(subject: Subject, judgements: Sequence[Any]) -> object | None:
    """What the headline metric reads of a judgement, as :attr:`RecordedItem.verdict` has it."""
    (judgement,) = judgements
    return _one(subject.benchmark.metrics[subject.benchmark.headline].values(judgement))


def words_of(subject: Subject, before: object, now: object | None) -> tuple[str, str]:
    """Two verdicts in words, equal where they count as the same."""
    span = subject.benchmark.metrics[subject.benchmark.headline].span
    if isinstance(before, float) and isinstance(now, float):
        if abs(before - now) <= TOLERANCE * span:
            return SAME, SAME
        return f"{before:.1f}", f"{now:.1f}"
    return str(before), "unscored" if now is None else str(now)


def _check(run: RunResults, task: str, subject: Subject) -> str:
    """The judge of a task that was judged as it would be now."""
    fields = (run.tasks[task].signature or Signature()).fields
    own = {"prompts": "", "prompt-order": "", **subject.prompt_fields}
    for name, value in {"protocol": str(subject.config.protocol), **own}.items():
        if fields.get(name, "") != value:
            raise DataError(
                f"--recorded {run.path}: {task} was judged with {name} "
                f"{fields.get(name) or 'of the paper'}, it would be {value or 'of the paper'} "
                "now: set LMMS_CAPTIONS_PROMPTS and LMMS_CAPTIONS_PROMPT_ORDER as they were, or "
                "score the captions again"
            )
    _require_settled(run, task, subject, fields)
    return fields.get("judge", "")


def _require_settled(
    run: RunResults, task: str, subject: Subject, fields: Mapping[str, str]
) -> None:
    """Refuse verdicts that were drawn once by chance: an honest judge would differ from them."""
    own = str(subject.benchmark.judge_defaults.get("temperature", 0.0))
    temperature = fields.get("temperature", own)
    is_drawn = temperature == "refused" or float(temperature) > 0.0
    if is_drawn and fields.get("runs", "1") == "1" and fields.get("asks", "1") == "1":
        raise DataError(
            f"--recorded {run.path}: {task} was judged once at temperature {temperature}, so which "
            "verdicts are the judge's and which are chance is not known: score the captions with "
            "LMMS_CAPTIONS_JUDGE_TEMPERATURE=0, or with LMMS_CAPTIONS_JUDGE_RUNS=3"
        )


def _of_task(run: RunResults, task: str, subject: Subject) -> tuple[list[RecordedItem], int]:
    """The items of a task, and how many questions are left out."""
    (verdicts,) = read_verdicts(run, task).tasks
    records = dict(zip(_keys(verdicts.captions), verdicts.captions, strict=True))
    samples = [sample for sample in run.samples(task) if isinstance(_logged(subject, sample), dict)]
    keys = numbered([str(_logged(subject, sample)["video_id"]) for sample in samples])
    # Sample logs hold no documents: what is asked stands in the benchmark's files.
    documents = documents_of(task, data_settings(), is_needed=True)
    items: list[RecordedItem] = []
    n_open = n_others = 0
    for key, sample in zip(keys, samples, strict=True):
        record, document = records.get(key), documents.get(key[0])
        if record is None:
            continue
        questions = [] if document is None else subject.benchmark.questions(document)
        if not questions or questions_digest(key[0], questions) != record.questions:
            n_others += 1
            continue
        for place, verdict in settled_in(subject, record, sample, len(questions)):
            if verdict is None:
                n_open += 1
                continue
            name = f"{task} {key[0]} question {place + 1}"
            items.append(RecordedItem(name, task, questions[place], caption_of(sample), verdict))
    if not items and n_others:
        raise DataError(
            f"--recorded {run.path}: expected the questions of {task} that were asked then, the "
            f"data at hand has others about all {n_others} videos: set LMMS_CAPTIONS_DATA as it was"
        )
    return items, n_open


def _keys(captions: Sequence[CaptionRecord]) -> list[tuple[str, int]]:
    return numbered([caption.video_id for caption in captions])


def _logged(subject: Subject, sample: dict[str, object]) -> Any:  # noqa: ANN401 - others' JSON
    return sample.get(subject.benchmark.headline)


def settled_in(
    subject: Subject, record: CaptionRecord, sample: dict[str, object], n_questions: int
) -> Iterator[tuple[int, object | None]]:
    """Each question's verdict in all judge runs, ``None`` where they do not agree."""
    metric = subject.benchmark.metrics[subject.benchmark.headline]
    runs = record.values[subject.benchmark.headline]
    if record.n_dropped or record.n_empty or not runs:
        return
    if any(len(run) != n_questions * metric.n_values for run in runs):
        return
    judgements = _logged(subject, sample).get("judgements") or []
    for place in range(n_questions):
        start = place * metric.n_values
        said = [_one(run[start : start + metric.n_values]) for run in runs]
        asks = [judgement.get("asks") for judgement in judgements[place::n_questions]]
        is_settled = all(len(set(each)) == 1 for each in asks if each)
        if any(each is None for each in said):
            continue
        if isinstance(said[0], float):
            numbers = [each for each in said if isinstance(each, float)]
            is_near = max(numbers) - min(numbers) <= TOLERANCE * metric.span
            yield place, fmean(numbers) if is_near else None
        else:
            yield place, said[0] if is_settled and len(set(said)) == 1 else None


def _one(values: Sequence[object]) -> object | None:
    """Several values of a judgement as one, ``None`` where one is missing."""
    if any(value is None for value in values):
        return None
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(numbers) == len(values) and not isinstance(values[0], bool):
        return float(fmean(numbers))
    return values[0]
