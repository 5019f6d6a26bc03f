"""Hooks of the VDC tasks, named by the YAML files beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_captions.judges.protocols.vdc import Question, judge_question, silent_judgement
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.judges.surrogates import whole
from lmms_eval_captions.lmms_eval_tasks.caption_prompts import caption_prompt
from lmms_eval_captions.lmms_eval_tasks.chat_messages import video_messages
from lmms_eval_captions.lmms_eval_tasks.judge_run import PendingRecord, Record, judge_defaults
from lmms_eval_captions.lmms_eval_tasks.records import Inquiry, pending, submit_caption
from lmms_eval_captions.lmms_eval_tasks.scoring import (  # noqa: F401 - the YAML files name them
    aggregate_signature,
    aggregate_unscored,
    mean_over_runs,
    resolve,
)
from lmms_eval_captions.lmms_eval_tasks.vdc.data import read_questions, video_path
from lmms_eval_captions.lmms_eval_tasks.vdc.records import VdcRecords, by_run
from lmms_eval_captions.metrics.mean_over_videos import mean_over_videos
from lmms_eval_captions.metrics.rouge_l import rouge_l
from lmms_eval_captions.metrics.vdc_acc import vdc_acc
from lmms_eval_captions.metrics.vdc_score import vdc_score

if TYPE_CHECKING:
    from datasets import Dataset

    from lmms_eval_captions.judges.endpoint.chain import Chain
    from lmms_eval_captions.judges.judge_config import JudgeConfig
    from lmms_eval_captions.judges.verdict import MatchJudgement

Doc = Mapping[str, object]

_TEMPLATE = Path(__file__).with_name("_default_template_yaml")


def process_docs(stub: Dataset) -> Dataset:
    """The documents of one aspect: ``video_id``, ``aspect`` and ``questions``.

    Raises:
        DataError: If the questions are missing or broken.
    """
    from datasets import Dataset

    aspect = stub[0]["aspect"]
    questions = read_questions(data_settings(), aspect)
    return Dataset.from_list(
        [
            {"video_id": video_id, "aspect": aspect, "questions": list(pairs)}
            for video_id, pairs in questions.items()
        ]
    )


def doc_to_visual(doc: Doc) -> list[str]:
    """Path of the document's video, looked up when a captioner asks for it."""
    return [str(video_path(data_settings(), str(doc["video_id"])))]


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, str] | None = None) -> str:
    """The aspect's caption prompt, between a model's own ``pre_prompt`` and ``post_prompt``."""
    return caption_prompt("vdc_caption", str(doc["aspect"]), lmms_eval_specific_kwargs)


doc_to_messages = video_messages(doc_to_visual, doc_to_text)


def doc_to_target(doc: Doc) -> str:
    """The video's id: it makes a sample log readable again, also one without verdicts."""
    return str(doc["video_id"])


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, PendingRecord]:
    """Submit one caption; the records fill in place once it is judged."""
    records = _submit(doc, whole(results[0]), task=f"vdc_{doc['aspect']}")
    return pending(records, {"vdc_acc": VdcRecords.acc, "vdc_score": VdcRecords.score})


def process_results_rouge(doc: Doc, results: Sequence[str]) -> dict[str, PendingRecord]:
    """As :func:`process_results`, with ROUGE-L in place of the judge's second step."""
    task = f"vdc_rouge_{doc['aspect']}"
    records = _submit(doc, whole(results[0]), task=task, matcher=rouge_l, matching="rouge-l")
    return pending(records, {"vdc_rouge": VdcRecords.rouge})


def aggregate_acc(items: Sequence[Record]) -> float:
    """``vdc_acc`` in percent, mean over judge runs."""
    records = resolve(items)
    return mean_over_runs(
        "vdc_acc", records, lambda: [vdc_acc(videos) for videos in by_run(records, "verdicts")]
    )


def aggregate_score(items: Sequence[Record]) -> float:
    """``vdc_score`` in [0, 5], mean over judge runs."""
    records = resolve(items)
    return mean_over_runs(
        "vdc_score", records, lambda: [vdc_score(videos) for videos in by_run(records, "scores")]
    )


def aggregate_rouge(items: Sequence[Record]) -> float:
    """``vdc_rouge`` in percent, mean over judge runs."""
    records = resolve(items)
    return mean_over_runs(
        "vdc_rouge",
        records,
        lambda: [100.0 * mean_over_videos(videos) for videos in by_run(records, "scores")],
    )


def _submit(
    doc: Doc,
    caption: str,
    *,
    task: str,
    matcher: Callable[[str, str], float] | None = None,
    **extras: str,
) -> Callable[[], VdcRecords]:
    def chain(question: Question, config: JudgeConfig, run: int) -> Chain[MatchJudgement]:
        return partial(
            judge_question,
            question=question,
            caption=caption,
            config=config,
            run=run,
            matcher=matcher,
        )

    questions = [Question(pair["question"], pair["answer"]) for pair in _pairs(doc)]
    steps = ("vdc_answer", "vdc_match") if matcher is None else ("vdc_answer",)
    return submit_caption(
        VdcRecords,
        caption,
        task=task,
        video_id=str(doc["video_id"]),
        aspect=str(doc["aspect"]),
        defaults=judge_defaults(_TEMPLATE),
        inquiries=[
            Inquiry(partial(chain, one), partial(silent_judgement, one, matcher=matcher))
            for one in questions
        ],
        prompts=(*steps, f"vdc_caption.{doc['aspect']}"),
        **extras,
    )


def _pairs(doc: Doc) -> list[dict[str, str]]:
    pairs = doc["questions"]
    if not isinstance(pairs, list):
        raise TypeError(f"expected a document made by process_docs, got questions {pairs!r}")
    return pairs
