"""Results folders whose verdicts are planted: what a run leaves, without captioning or judging.

The numbers are made by the functions that score a run, and the files by those that write them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import numpy as np

from lmms_eval_captions.judges.verdict import WordsJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.results.breakdown import break_down
from lmms_eval_captions.lmms_eval_tasks.results.scoring import score_of, signature_of
from lmms_eval_captions.lmms_eval_tasks.results.verdict_file import verdict_path, write_verdicts
from lmms_eval_captions.lmms_eval_tasks.signature import Signature, questions_digest
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task

STAMP: Final = "20260102_030405"


def _words(n: int) -> WordsJudgement:
    n_grams = (10, 9, 8, 7)
    return WordsJudgement(
        run=0,
        reference="",
        tokenizer="ptb",
        cider=n / 2,
        rouge_l=n / 10,
        bleu=(10, 10, *n_grams, *(n - order for order in range(len(n_grams)))),
        meteor=(10, 10, 0, 0, n, n, *(0.0,) * 14, 1, n, n),
    )


VERDICTS: Final[Mapping[str, Sequence[object]]] = {
    "vdc": ("yes", "no"),
    "vdc_rouge": (0.9, 0.1),
    "vdc_vdd": ("yes", "no"),
    "vdc_classic": tuple(map(_words, (9, 6, 3))),
    "vidcapbench": ("correct", "partial", "neutral", "wrong"),
    "vcapsbench": ("positive", "negative", "unanswerable"),
    "capquiz": ("true_positive", "false_positive", "false_negative"),
    "msvd_eval": (80.0, 40.0),
    "own_gveval": (80.0, 40.0),
    "own_rating": (5, 2),
}
"""Benchmark to what a judge may say of a question, the best first; ``None`` is unscored."""


_FIELDS: Final = {"n_malformed": 0, "n_malformed_in_file": 0}


@dataclass(frozen=True)
class Question:
    """A question about a video, with the groups of the breakdown that it is in."""

    text: str
    groups: Mapping[str, str]


@dataclass(frozen=True)
class PlantedCaption:
    """A caption of a video with what each judge run says of each question."""

    video: str
    questions: Sequence[Question]
    runs: Sequence[Sequence[object]]
    """Shape (n_runs, n_questions): of :data:`VERDICTS`, or ``None``."""
    text: str = "A dog runs along the beach."


def record_of(task: str, caption: PlantedCaption, *, judge: str = "gpt-4o") -> CaptionRecord:
    """The record of a caption, as judging makes it."""
    benchmark = benchmark_of_task(task)
    n_verdicts = sum(map(len, caption.runs))
    n_unscored = sum(verdict is None for run in caption.runs for verdict in run)
    texts = [question.text for question in caption.questions]
    sections = dict.fromkeys(name for question in caption.questions for name in question.groups)
    n_words = len(caption.text.split())
    return CaptionRecord(
        task=task,
        video_id=caption.video,
        judge=judge,
        runs=len(caption.runs),
        protocol=1,
        extras={},
        n_questions=n_verdicts,
        n_unscored=n_unscored,
        reasons={"the reply cannot be read": n_unscored} if n_unscored else {},
        questions=questions_digest(caption.video, texts),
        values={name: _values(benchmark, name, caption.runs) for name in benchmark.metrics},
        groups={
            section: [[question.groups.get(section) for question in caption.questions]]
            * len(caption.runs)
            for section in sections
        },
        asked=texts if benchmark.name not in ("msvd_eval", "own") else [""],
        n_words=n_words,
        caption_digest=blake2b(caption.text.encode(), digest_size=8).hexdigest(),
        fields=(
            {"n_tokens": n_words}
            if benchmark.name == "vidcapbench"
            else _FIELDS
            if benchmark.name == "vcapsbench"
            else {}
        ),
    )


def write_run(
    folder: Path,
    tasks: Mapping[str, Sequence[CaptionRecord]],
    *,
    groups: Mapping[str, Sequence[str]] = {},
    model: str = "m",
    cost_usd: float | None = None,
) -> Path:
    """Write what a run over these tasks leaves in its results folder.

    Args:
        folder: As lmms-eval's ``--output_path``.
        tasks: Task to the records of its captions.
        groups: Group to its tasks, whose plain mean it is.
        model: Name of the model's folder.
        cost_usd: Dollars that the judge cost, ``None`` where that is not known.

    Returns:
        The results file.
    """
    here = folder / model
    here.mkdir(parents=True, exist_ok=True)
    results: dict[str, dict[str, object]] = {}
    ours: dict[str, dict[str, str]] = {}
    for task, records in tasks.items():
        benchmark = benchmark_of_task(task)
        results[task] = {
            f"{name},none": score_of(benchmark, name, records) for name in benchmark.metrics
        }
        breakdown = f"{STAMP}_breakdown_{task}.json"
        ours[task] = {"signature": signature_of(records), "breakdown": breakdown}
        _dump(here / breakdown, {"task": task, **break_down(benchmark, records)})
        head = {"task": task, "model": model, "signature": ours[task]["signature"]}
        write_verdicts(verdict_path(here, STAMP, task), head, benchmark, records)
    for group, members in groups.items():
        names = benchmark_of_task(members[0]).metrics
        results[group] = {
            f"{name},none": float(np.mean([results[task][f"{name},none"] for task in members]))
            for name in names
        }
        signatures = [ours[task]["signature"] for task in members]
        sizes = [len(tasks[task]) for task in members]
        ours[group] = {"signature": str(Signature.merge(map(Signature.parse, signatures), sizes))}
    _dump(here / f"{STAMP}_judging.json", {
        "model": model, "finished": "2026-01-02T03:04:05+00:00", "tasks": {},
        "judging": {"usd": cost_usd, "calls": 1000, "from_store": {}},
    })  # fmt: skip
    path = here / f"{STAMP}_results.json"
    _dump(path, {
        "results": results,
        "group_subtasks": {name: list(groups.get(name, ())) for name in results},
        "lmms_eval_captions": {"judging": f"{STAMP}_judging.json", "tasks": ours},
    })  # fmt: skip
    return path


def _values(
    benchmark: Benchmark[Any, Any], metric: str, runs: Sequence[Sequence[object]]
) -> list[list[object]]:
    known = benchmark.metrics[metric]
    grades = {"yes": 4.0, "no": 1.0} if metric in ("vdc_score", "vdd_score") else {}

    def read(verdict: Any) -> Sequence[object]:
        if isinstance(verdict, WordsJudgement):
            return known.values(verdict)
        return [grades.get(verdict, verdict)] * known.n_values

    return [[value for verdict in run for value in read(verdict)] for run in runs]


def _dump(path: Path, document: Mapping[str, object]) -> None:
    path.write_text(json.dumps(document), encoding="utf-8")
