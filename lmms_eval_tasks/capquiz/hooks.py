"""Hooks of the CapQuiz tasks, named by the YAML files beside this one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.protocols.capquiz import Question, judge_question, silent_judgement
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.judges.surrogates import whole
from lmms_eval_captions.lmms_eval_tasks.breakdown import MicroAverages, listed
from lmms_eval_captions.lmms_eval_tasks.capquiz.data import (
    DOMAINS,
    GROUP_OF,
    GROUPS,
    SUPER_OF,
    read_videos,
    video_path,
)
from lmms_eval_captions.lmms_eval_tasks.capquiz.records import CapQuizRecords
from lmms_eval_captions.lmms_eval_tasks.caption_prompts import caption_prompt
from lmms_eval_captions.lmms_eval_tasks.chat_messages import video_messages
from lmms_eval_captions.lmms_eval_tasks.judge_run import PendingRecord, Record, judge_defaults
from lmms_eval_captions.lmms_eval_tasks.records import Inquiry, pending, submit_caption
from lmms_eval_captions.lmms_eval_tasks.scoring import (  # noqa: F401 - the YAML files name them
    aggregate_signature,
    aggregate_unscored,
    resolve,
)
from lmms_eval_captions.metrics.capf1 import capf1
from lmms_eval_captions.metrics.capp import capp
from lmms_eval_captions.metrics.capr import capr

if TYPE_CHECKING:
    import argparse

    from datasets import Dataset

    from lmms_eval_captions.judges.endpoint.chain import Chain
    from lmms_eval_captions.judges.judge_config import JudgeConfig
    from lmms_eval_captions.judges.verdict import QuizJudgement

Doc = Mapping[str, object]

_TASKS: Final = {"standard": "capquiz", "detailed": "capquiz_detailed"}
"""Caption prompt to the task that asks for captions with it."""
_TEMPLATE: Final = Path(__file__).with_name("_default_template_yaml")


def process_docs(stub: Dataset) -> Dataset:
    """The documents: ``video``, ``domain``, ``questions`` and ``caption_prompt``.

    Raises:
        DataError: If the questions are missing or broken.
    """
    from datasets import Dataset

    prompt = stub[0]["caption_prompt"]
    return Dataset.from_list(
        [{**row, "caption_prompt": prompt} for row in read_videos(data_settings())]
    )


def doc_to_visual(doc: Doc) -> list[str]:
    """Path of the document's video, looked up when a captioner asks for it."""
    return [str(video_path(data_settings(), str(doc["video"])))]


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, str] | None = None) -> str:
    """The task's caption prompt, between a model's own ``pre_prompt`` and ``post_prompt``."""
    return caption_prompt("capquiz_caption", str(doc["caption_prompt"]), lmms_eval_specific_kwargs)


doc_to_messages = video_messages(doc_to_visual, doc_to_text)


def doc_to_target(doc: Doc) -> str:
    """The video's name: it makes a sample log readable again, also one without verdicts."""
    return str(doc["video"])


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, PendingRecord]:
    """Submit one caption; the records fill in place once it is judged."""
    caption, questions = whole(results[0]), _questions(doc)

    def chain(question: Question, config: JudgeConfig, run: int) -> Chain[QuizJudgement]:
        return partial(judge_question, question=question, caption=caption, config=config, run=run)

    records = submit_caption(
        partial(
            CapQuizRecords,
            categories=[question.category for question in questions],
            domain=str(doc["domain"]),
        ),
        caption,
        task=_TASKS[str(doc["caption_prompt"])],
        video_id=str(doc["video"]),
        defaults=judge_defaults(_TEMPLATE),
        inquiries=[
            Inquiry(partial(chain, question), partial(silent_judgement, question))
            for question in questions
        ],
        prompts=("capquiz_answer", f"capquiz_caption.{doc['caption_prompt']}"),
        prompt=str(doc["caption_prompt"]),
    )
    return pending(
        records,
        {"capf1": CapQuizRecords.capf1, "capp": CapQuizRecords.capp, "capr": CapQuizRecords.capr},
    )


def aggregate_capf1(items: Sequence[Record], args: argparse.Namespace | None = None) -> float:
    """``capf1`` in percent, mean over judge runs; also writes and shows the whole breakdown."""
    records = resolve(items)
    score = _SCORES.headline("capf1", records)
    if not isnan(score):
        _SCORES.report(records, args)
    return score


def aggregate_capp(items: Sequence[Record]) -> float:
    """``capp`` in percent, mean over judge runs."""
    return _SCORES.headline("capp", resolve(items))


def aggregate_capr(items: Sequence[Record]) -> float:
    """``capr`` in percent, mean over judge runs."""
    return _SCORES.headline("capr", resolve(items))


def _groups(item: Record) -> list[list[tuple[str, str]]]:
    """Where each question of a caption counts."""
    domain = str(item["domain"])
    return [list(_groups_of(str(category), domain)) for category in listed(item, "categories")]


def _groups_of(category: str, domain: str) -> Iterator[tuple[str, str]]:
    yield "overall", "all"
    yield "groups", GROUP_OF[category]
    yield "types", category
    if domain in SUPER_OF:
        yield "super_categories", SUPER_OF[domain]
    yield "domains", domain


_SCORES: Final = MicroAverages(
    metrics={"capf1": capf1, "capp": capp, "capr": capr},
    groups=_groups,
    order={
        "overall": ("all",),
        "groups": tuple(GROUPS),
        "types": tuple(GROUP_OF),
        "super_categories": tuple(DOMAINS),
        "domains": tuple(SUPER_OF),
    },
)


def _questions(doc: Doc) -> list[Question]:
    return [
        Question(
            category=row["category"],
            question=row["question"],
            options=tuple(row["options"]),
            answer=row["answer"],
        )
        for row in listed(doc, "questions")
    ]
