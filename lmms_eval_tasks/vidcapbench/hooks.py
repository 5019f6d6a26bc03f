"""Hooks of the VidCapBench tasks, named by the YAML files beside this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loguru import logger

from lmms_eval_captions.judges.protocols.vidcapbench import (
    Question,
    judge_question,
    silent_judgement,
)
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.judges.surrogates import whole
from lmms_eval_captions.lmms_eval_tasks.breakdown import listed, verdicts_by_run
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
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.data import read_videos, video_path
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.group import keep_for_group
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.records import VidCapBenchRecords
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.report import metrics_of, report, tokens_of

if TYPE_CHECKING:
    import argparse

    from datasets import Dataset

    from lmms_eval_captions.judges.endpoint.chain import Chain
    from lmms_eval_captions.judges.judge_config import JudgeConfig
    from lmms_eval_captions.judges.verdict import CorrectnessJudgement

Doc = Mapping[str, object]

_TEMPLATE: Final = Path(__file__).with_name("_default_template_yaml")
_MEANT_FOR: Final = {
    "AE": "VidCapBench-AE holds the pairs that judges grade stably; it is meant to be judged "
    "automatically (section 3.4), as it is here",
    "HE": "VidCapBench-HE holds the pairs that judges grade unstably; it is meant to be judged by "
    "people (section 3.4). Here a judge model grades it: take its numbers with care",
}


def process_docs(stub: Dataset) -> Dataset:
    """The documents of one subset: a video's name, its questions, and how to ask for a caption.

    Also those of videos that the subset asks nothing about: their captions' tokens count.

    Raises:
        DataError: If the questions are missing or broken.
        SettingsError: If a setting cannot be used.
    """
    from datasets import Dataset

    subset = stub[0]["subset"]
    settings = data_settings()
    logger.log("INFO" if subset == "AE" else "WARNING", _MEANT_FOR[subset])
    return Dataset.from_list(
        [
            {
                "video_id": video.video_id,
                "video_dir": video.video_dir,
                "subset": subset,
                "caption_format": settings.vidcapbench_format,
                "questions": video.pairs,
            }
            for video in read_videos(settings, subset)
        ]
    )


def doc_to_visual(doc: Doc) -> list[str]:
    """Path of the document's video, looked up when a captioner asks for it."""
    return [str(video_path(data_settings(), str(doc["video_dir"])))]


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, str] | None = None) -> str:
    """The prompt of the caption format, between a model's ``pre_prompt`` and ``post_prompt``."""
    return caption_prompt(
        "vidcapbench_caption", str(doc["caption_format"]), lmms_eval_specific_kwargs
    )


doc_to_messages = video_messages(doc_to_visual, doc_to_text)


def doc_to_target(doc: Doc) -> str:
    """The video's name: it makes a sample log readable again, also one without verdicts."""
    return str(doc["video_id"])


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, PendingRecord]:
    """Submit one caption; the records fill in place once it is judged."""
    caption, questions = whole(results[0]), _questions(doc)

    def chain(question: Question, config: JudgeConfig, run: int) -> Chain[CorrectnessJudgement]:
        return partial(judge_question, question=question, caption=caption, config=config, run=run)

    records = submit_caption(
        partial(VidCapBenchRecords, caption=caption, questions=questions),
        caption,
        task=f"vidcapbench_{str(doc['subset']).lower()}",
        video_id=str(doc["video_id"]),
        defaults=judge_defaults(_TEMPLATE),
        inquiries=[
            Inquiry(partial(chain, question), partial(silent_judgement, question))
            for question in questions
        ],
        prompts=(
            "vidcapbench_answer",
            "vidcapbench_judge",
            f"vidcapbench_caption.{doc['caption_format']}",
        ),
        format=str(doc["caption_format"]),
    )
    return pending(
        records,
        {
            "acc": VidCapBenchRecords.acc,
            "pre": VidCapBenchRecords.pre,
            "cov": VidCapBenchRecords.cov,
            "con": VidCapBenchRecords.con,
        },
    )


def aggregate_acc(items: Sequence[Record], args: argparse.Namespace | None = None) -> float:
    """``acc`` in percent, mean over judge runs; also writes and shows the whole breakdown."""
    records = resolve(items)
    keep_for_group(records, args)
    acc = _headline("acc", records)
    if not isnan(acc):
        subset = str(records[0]["task"])[-2:].upper()
        report(records, n_tokens=tokens_of(records), note=_MEANT_FOR[subset], args=args)
    return acc


def aggregate_pre(items: Sequence[Record]) -> float:
    """``pre`` in percent, mean over judge runs."""
    return _headline("pre", resolve(items))


def aggregate_cov(items: Sequence[Record]) -> float:
    """``cov`` in percent, mean over judge runs."""
    return _headline("cov", resolve(items))


def aggregate_con(items: Sequence[Record]) -> float:
    """``con`` as the paper prints it, mean over judge runs; ``nan`` where there is no tokenizer."""
    records = resolve(items)
    reason = next((item["con_reason"] for item in records if "con_reason" in item), None)
    if reason is not None:
        logger.error("{} con is nan, all other metrics stand: {}", records[0]["task"], reason)
        return nan
    return _headline("con", records)


def _headline(metric: str, records: Sequence[Record]) -> float:
    score = metrics_of(tokens_of(records))[metric]
    return mean_over_runs(metric, records, lambda: list(map(score, verdicts_by_run(records))))


def _questions(doc: Doc) -> list[Question]:
    return [
        Question(
            pair["question"],
            pair["answer"],
            dimension=pair["primary_category"],
            sub_category=pair["sub_category"],
        )
        for pair in listed(doc, "questions")
    ]
