"""VDC: its files; aspects judged as in the paper, with ROUGE-L in the second step, and by VDD."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, get_args

from loguru import logger

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols import vdc as protocol
from lmms_eval_captions.judges.protocols.vdc import Comparison, Question
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.judges.verdict import Match, MatchJudgement, WholeJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import (
    Benchmark,
    Doc,
    J,
    Metric,
    Q,
    Task,
    check_of_answers,
    over_videos,
)
from lmms_eval_captions.lmms_eval_tasks.common.clip_protocol import Clip, ClipProtocol
from lmms_eval_captions.lmms_eval_tasks.data import files
from lmms_eval_captions.lmms_eval_tasks.data.files import Row, find_file, read_located
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source
from lmms_eval_captions.lmms_eval_tasks.judge_check import JudgeCheck, tell_answer
from lmms_eval_captions.lmms_eval_tasks.ratios import of_means
from lmms_eval_captions.metrics.captioning import rouge_l
from lmms_eval_captions.metrics.vdc import mean_over_videos, vdc_acc, vdc_score
from lmms_eval_captions.model_wrappers.caption_files.columns import ASPECTS

SOURCE: Final = Source(
    benchmark="vdc",
    page="https://huggingface.co/datasets/wchai/Video-Detailed-Caption",
    license="Apache-2.0",
    video_folder="vdc/videos",
    hub_repo="wchai/Video-Detailed-Caption",
    archives=("videos/videos_*.tar.gz",),
)
"""``VDC_1k.jsonl``, ``VDCScore_qa/<aspect>.jsonl``, three shards of videos."""
QUESTIONS: Final = "VDCScore_qa/{aspect}.jsonl"
"""File of an aspect's questions."""
REFERENCES: Final = "VDC_1k.jsonl"
"""File of reference captions, one row for each video."""
Pair = dict[str, str]
"""One question, its gold ``answer`` and its ``category``."""


def read_questions(settings: DataSettings, aspect: str) -> dict[str, list[Pair]]:
    """Return the questions of one aspect, by video id, in the official order.

    Every official line holds one video under a key of its own. Of a repeated video the last line
    counts, as in the released script's dictionary. Empty pairs are kept.

    Raises:
        DataError: If the file is missing or a row is not of the official shape.
    """
    path = find_file(settings, SOURCE, QUESTIONS.format(aspect=aspect))
    questions = {
        video_id: files.read_pairs(pairs, "category", where=f"{where}, video {video_id!r:.80}")
        for where, row in read_located(path)
        for video_id, pairs in row.items()
    }
    if not questions:
        raise DataError(f"{path}: expected at least one video with questions, the file has none")
    return questions


def _select(rows: Sequence[Row], keep: files.Keep) -> Iterator[Row]:
    last = {video_id: index for index, row in enumerate(rows) for video_id in row}
    for index, row in enumerate(rows):
        kept = {
            video_id: [pair for pair in pairs if keep(video_id, pair["question"])]
            for video_id, pairs in row.items()
            if last[video_id] == index
        }
        if any(kept.values()):
            yield {video_id: pairs for video_id, pairs in kept.items() if pairs}


def read_references(settings: DataSettings, aspect: str) -> dict[str, str]:
    """Return the reference caption of each video for one aspect, in the official order.

    Of a repeated video the last row counts. Videos with an empty reference are left out, with a
    warning.

    Raises:
        DataError: If the file is missing or a row is not of the official shape.
    """
    path, column = find_file(settings, SOURCE, REFERENCES), f"{aspect}_caption"
    captions: dict[str, str] = {}
    for where, row in read_located(path):
        video_id, caption = row.get("video_id"), row.get(column)
        is_text = isinstance(caption, str) or (caption is None and column in row)
        if not isinstance(video_id, str) or not is_text:
            raise DataError(
                f"{where}: expected texts under 'video_id' and {column!r}, got "
                f"{row!r:.120}; download the file again from {SOURCE.page}"
            )
        captions[video_id] = str(caption or "")
    kept = {video_id: text for video_id, text in captions.items() if text.strip()}
    if not kept:
        raise DataError(f"{path}: expected at least one video with a {column}, the file has none")
    if len(kept) < len(captions):
        logger.warning(
            f"{path}: {len(captions) - len(kept)} of {len(captions):,} videos have no {column} and "
            "are left out"
        )
    return kept


_CAPTION_CHARS: Final = {
    "camera": 400,
    "short": 150,
    "background": 600,
    "main_object": 600,
    "detailed": 1200,
}

_NOT_IN_ALL: Final = frozenset(
    {"699b3cf7c5b6fc1187aa829ea8e5795b27a06a811fe63d4e9c78e50d87a3c21c", "JJshlR5WkrY"}
)
"""Videos that the official file of the main object lacks; the others are in all five."""


def tasks_of_aspects(
    prefix: str, judge_prompts: Sequence[str] = (), *, note: str = "", **extras: str
) -> dict[str, Task]:
    """Return a task for each aspect, named with a prefix such as ``vdc``."""
    tasks = [
        Task(
            name=f"{prefix}_{aspect}",
            fields={"aspect": aspect},
            caption_prompt=f"vdc_caption.{aspect}",
            judge_prompts=tuple(judge_prompts),
            aspect=aspect,
            extras=extras,
            note=note,
            caption_chars=_CAPTION_CHARS[aspect],
        )
        for aspect in ASPECTS
    ]
    return {task.name: task for task in tasks}


def accuracy_and_score(prefix: str) -> dict[str, Metric]:
    """Return the two metrics of a judge that says yes or no and 0 to 5, as means over videos."""
    return {
        f"{prefix}_acc": Metric(
            score=over_videos(vdc_acc),
            ratios=of_means(lambda verdict: float(verdict == "yes")),
            labels=get_args(Match),
        ),
        f"{prefix}_score": Metric(
            score=over_videos(vdc_score),
            scale=1.0,
            highest=5.0,
            ratios=of_means(),
            values=_score_of,
            field="scores",
        ),
    }


def mean_in_percent(values: Callable[[Any], Sequence[object]]) -> Metric:
    """Return a metric in percent that is a mean over videos of shares."""
    return Metric(
        score=over_videos(lambda videos: 100.0 * mean_over_videos(videos)),
        ratios=of_means(),
        values=values,
        field="scores",
    )


def _score_of(judgement: MatchJudgement) -> tuple[float | None]:
    return (judgement.score,)


class Vdc(Benchmark[Question, MatchJudgement]):
    """An answer from the caption to each question, and its match with the gold answer."""

    source = SOURCE
    probe_file = QUESTIONS.format(aspect=ASPECTS[0])
    question_file = files.of_json_lines(QUESTIONS.format_map, _select)
    tasks = tasks_of_aspects("vdc", ("vdc_answer", "vdc_match"))
    metrics = accuracy_and_score("vdc")
    headline = "vdc_acc"
    headline_means = "% of questions that the caption alone answers rightly, mean over videos"
    right, missed = frozenset({"yes"}), frozenset({"no"})
    sections = {"aspects": ASPECTS, "categories": ()}
    judge = staticmethod(protocol.judge_question)
    silent = staticmethod(lambda question, run: [protocol.silent_judgement(question, run)])
    judge_check = check_of_answers({"yes": 1.0}, silent=["no"])
    output_tokens = {"vdc_answer": 12, "vdc_match": 14}
    questions = staticmethod(lambda doc: [Question(**pair) for pair in doc["questions"]])

    def read(self, settings: DataSettings, task: Task) -> list[dict[str, object]]:
        """Return the videos by their ids: so ``--limit`` takes the same ones in every aspect.

        The five official files have orders of their own.
        """
        questions = read_questions(settings, task.fields["aspect"])
        names = sorted(questions, key=lambda name: (name in _NOT_IN_ALL, name))
        return [{"video_id": v, **task.fields, "questions": questions[v]} for v in names]

    def groups(
        self, doc: Doc, question: Question, _judgement: MatchJudgement | None
    ) -> dict[str, str]:
        """Return the aspect and the category, which is free text in the data, in one spelling."""
        category = " ".join(question.category.strip(" '\".,:;").lower().split())
        return {"aspects": doc["aspect"], "categories": category or "none"}


class VdcRouge(Vdc):
    """ROUGE-L of the judge's answer and the gold one, in percent (AuroraCap, Table C3)."""

    tasks = tasks_of_aspects("vdc_rouge", ("vdc_answer",), matching="rouge-l")
    metrics = {"vdc_rouge": mean_in_percent(_score_of)}
    headline = "vdc_rouge"
    headline_means = "ROUGE-L in % of answers from the caption alone and gold answers"
    right = missed = frozenset()
    judge = staticmethod(partial(protocol.judge_question, matcher=rouge_l))
    silent = staticmethod(
        lambda question, run: [protocol.silent_judgement(question, run, matcher=rouge_l)]
    )
    judge_check = JudgeCheck(
        tell=lambda question: tell_answer(question.question, question.answer),
        credit=lambda judgement: judgement.score,
        # An answer in free words: there is no verdict to be the same.
        said=lambda _question, _judgement: None,
    )


class WithReferences(Benchmark[Q, J]):
    """VDC's captions compared as a whole with the reference captions of their aspect."""

    source = SOURCE
    probe_file = REFERENCES

    def read(self, settings: DataSettings, task: Task) -> list[dict[str, object]]:
        """Return a document for each video that has a reference caption of the task's aspect."""
        references = read_references(settings, task.fields["aspect"])
        return [{"video_id": v, **task.fields, "reference": text} for v, text in references.items()]


_NOTE: Final = (
    "AuroraCap prints no prompt for VDD: the one that is asked here (vdc_vdd.yaml) is ours, so "
    "that these numbers compare with each other and not with its Tables 6 and 8"
)


class Vdd(WithReferences[Comparison, WholeJudgement]):
    """Accuracy and score as VDCscore has them, of one grade for each video."""

    tasks = tasks_of_aspects("vdc_vdd", ("vdc_vdd",), note=_NOTE, default_prompt="ours")
    metrics = accuracy_and_score("vdd")
    headline = "vdd_acc"
    headline_means = "% of captions that as a whole say what the reference caption says"
    right, missed = frozenset({"yes"}), frozenset({"no"})
    judge = staticmethod(protocol.judge_comparison)
    silent = staticmethod(lambda question, run: [protocol.silent_description(question, run)])
    judge_check = JudgeCheck(
        tell=lambda question: question.reference,
        credit=lambda judgement: (
            None if judgement.verdict is None else float(judgement.verdict == "yes")
        ),
        said=lambda _question, judgement: judgement.verdict,
        silent=frozenset({"no"}),
    )
    output_tokens = {"vdc_vdd": 14}
    questions = staticmethod(lambda doc: [Comparison(doc["reference"])])


VDC: Final = Vdc()
VDC_ROUGE: Final = VdcRouge()
VDD: Final = Vdd()


def _clip_document(clip: Clip) -> Doc:
    questions = files.read_pairs(list(clip.questions or ()), "category", where="questions")
    return {"video_id": clip.clip_id, "aspect": "own", "questions": questions}


PROTOCOLS: Final = (
    ClipProtocol(
        benchmark=VDC,
        task=replace(VDC.tasks["vdc_detailed"], name="vdc", fields={}, aspect=None),
        document=_clip_document,
    ),
)
"""Each question with its ``answer``, and a ``category`` if there is one."""
