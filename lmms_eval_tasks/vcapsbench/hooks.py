"""Hooks of the VCapsBench task, named by the YAML files beside this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.protocols.vcapsbench import (
    N_ASKS,
    Question,
    judge_question,
    silent_judgement,
)
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.judges.surrogates import whole
from lmms_eval_captions.lmms_eval_tasks.breakdown import listed
from lmms_eval_captions.lmms_eval_tasks.caption_prompts import caption_prompt
from lmms_eval_captions.lmms_eval_tasks.chat_messages import video_messages
from lmms_eval_captions.lmms_eval_tasks.judge_run import PendingRecord, Record, judge_defaults
from lmms_eval_captions.lmms_eval_tasks.records import Inquiry, pending, submit_caption
from lmms_eval_captions.lmms_eval_tasks.scoring import (  # noqa: F401 - the YAML files name them
    aggregate_signature,
    aggregate_unscored,
    resolve,
)
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.data import read_videos, video_path
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.records import VCapsBenchRecords
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.scores import SCORES

if TYPE_CHECKING:
    import argparse

    from datasets import Dataset

    from lmms_eval_captions.judges.endpoint.chain import Chain
    from lmms_eval_captions.judges.judge_config import JudgeConfig
    from lmms_eval_captions.judges.verdict import AgreementJudgement

Doc = Mapping[str, object]

_TASK: Final = "vcapsbench"
_TEMPLATE: Final = Path(__file__).with_name("_default_template_yaml")


def process_docs(_stub: Dataset) -> Dataset:
    """The documents: ``video_id``, ``questions``, and how many strings are no question.

    Raises:
        DataError: If the questions are missing or broken.
    """
    from datasets import Dataset

    return Dataset.from_list(
        [
            {
                "video_id": video.video_id,
                "questions": video.questions,
                "n_malformed": video.n_malformed,
                "n_malformed_in_file": video.n_malformed_in_file,
            }
            for video in read_videos(data_settings())
        ]
    )


def doc_to_visual(doc: Doc) -> list[str]:
    """Path of the document's video, looked up when a captioner asks for it."""
    return [str(video_path(data_settings(), str(doc["video_id"])))]


def doc_to_text(_doc: Doc, lmms_eval_specific_kwargs: Mapping[str, str] | None = None) -> str:
    """The caption prompt, between a model's own ``pre_prompt`` and ``post_prompt``."""
    return caption_prompt("vcapsbench_caption", "caption", lmms_eval_specific_kwargs)


doc_to_messages = video_messages(doc_to_visual, doc_to_text)


def doc_to_target(doc: Doc) -> str:
    """The video's id: it makes a sample log readable again, also one without verdicts."""
    return str(doc["video_id"])


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, PendingRecord]:
    """Submit one caption; the records fill in place once it is judged."""
    caption, questions = whole(results[0]), _questions(doc)

    def chain(question: Question, config: JudgeConfig, run: int) -> Chain[AgreementJudgement]:
        return partial(judge_question, question=question, caption=caption, config=config, run=run)

    records = submit_caption(
        partial(
            VCapsBenchRecords,
            categories=[question.category for question in questions],
            n_malformed=int(str(doc["n_malformed"])),
            n_malformed_in_file=int(str(doc["n_malformed_in_file"])),
        ),
        caption,
        task=_TASK,
        video_id=str(doc["video_id"]),
        defaults=judge_defaults(_TEMPLATE),
        inquiries=[
            Inquiry(partial(chain, question), partial(silent_judgement, question))
            for question in questions
        ],
        asks=str(N_ASKS),
        prompts=("vcapsbench_answer", "vcapsbench_caption.caption"),
    )
    return pending(
        records,
        {"ar": VCapsBenchRecords.ar, "ir": VCapsBenchRecords.ir, "cr": VCapsBenchRecords.cr},
    )


def aggregate_ar(items: Sequence[Record], args: argparse.Namespace | None = None) -> float:
    """``ar`` in percent, mean over judge runs; also writes and shows the whole breakdown."""
    records = resolve(items)
    score = SCORES.headline("ar", records)
    if not isnan(score):
        # Every record has the file's number: videos without any question have no record.
        SCORES.report(records, args, n_malformed=records[0]["n_malformed_in_file"])
    return score


def aggregate_ir(items: Sequence[Record]) -> float:
    """``ir`` in percent, mean over judge runs."""
    return SCORES.headline("ir", resolve(items))


def aggregate_cr(items: Sequence[Record]) -> float:
    """``cr`` in percent, mean over judge runs."""
    return SCORES.headline("cr", resolve(items))


def _questions(doc: Doc) -> list[Question]:
    return [Question(**question) for question in listed(doc, "questions")]
