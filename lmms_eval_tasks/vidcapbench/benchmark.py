"""VidCapBench as one value: its two subsets, questions, metrics, dimensions and categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Final, Literal, get_args

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.protocols.vidcapbench import (
    Question,
    judge_question,
    silent_judgement,
)
from lmms_eval_captions.judges.settings import DataSettings, data_settings
from lmms_eval_captions.judges.verdict import Correctness, CorrectnessJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import (
    Benchmark,
    Doc,
    Metric,
    Task,
    Videos,
    asking,
    over_questions,
    silence,
)
from lmms_eval_captions.lmms_eval_tasks.grading import Choice, Grading, as_verdict, of_verdict
from lmms_eval_captions.lmms_eval_tasks.judge_check import JudgeCheck, tell_answer
from lmms_eval_captions.lmms_eval_tasks.ratios import (
    DENOMINATOR,
    NEITHER,
    NUMERATOR,
    Parts,
    of_verdicts,
)
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.signature import UNAVAILABLE
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.data import (
    CATEGORIES,
    QUESTION_FILE,
    SOURCE,
    SUBSETS,
    questions_file,
    read_videos,
)
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.paper import PAPER_TABLE
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.t5_tokens import TokenCounter, token_counter
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.verification import VERIFICATION
from lmms_eval_captions.metrics.vidcapbench import (
    vidcapbench_acc,
    vidcapbench_con,
    vidcapbench_cov,
    vidcapbench_pre,
)

_CREDIT: Final = {"correct": 1.0, "partial": 0.5, "neutral": 0.0, "wrong": 0.0}


_GRADING: Final = Grading(
    asks="Answer the question from the caption alone, then grade that answer beside the correct "
    "one.",
    choices=(
        Choice(key="2", name="correct", text="2: correct, it fully agrees with the answer"),
        Choice(key="1", name="partial", text="1: partially correct, right but incomplete"),
        Choice(key="0", name="neutral", text="0: neutral, the caption does not mention it"),
        Choice(key="-", name="wrong", text="-1: wrong, the caption speaks of it with an error"),
    ),
    of_judge=of_verdict,
    judgement=as_verdict,
)
"""The four classes of section 3.2."""


def _task(subset: str, note: str, note_level: Literal["INFO", "WARNING"]) -> Task:
    return Task(
        name=f"vidcapbench_{subset.lower()}",
        fields={"subset": subset},
        caption_prompt="vidcapbench_caption.{caption_format}",
        judge_prompts=("vidcapbench_answer", "vidcapbench_judge"),
        extras={"format": "{caption_format}"},
        note=note,
        note_level=note_level,
        caption_chars=800,
    )


def _documents(settings: DataSettings, task: Task) -> list[dict[str, object]]:
    """Also those of videos that the subset asks nothing about: their captions' tokens count."""
    subset = task.fields["subset"]
    return [
        {
            "video_id": video.video_id,
            "video_dir": video.video_dir,
            "subset": subset,
            "caption_format": settings.vidcapbench_format,
            "questions": video.pairs,
        }
        for video in read_videos(settings, subset)
    ]


def _questions(doc: Doc) -> list[Question]:
    return [
        Question(
            pair["question"],
            pair["answer"],
            dimension=pair["primary_category"],
            sub_category=pair["sub_category"],
        )
        for pair in doc["questions"]
    ]


def _fields(doc: Doc, caption: str | None) -> Mapping[str, object]:
    counter, reason = tokenizer()
    n_tokens = None if counter is None or caption is None else counter(caption)
    return {
        "dimensions": [pair["primary_category"] for pair in doc["questions"]],
        "sub_categories": [pair["sub_category"] for pair in doc["questions"]],
        "n_tokens": n_tokens,
        **({} if reason is None else {"con_reason": reason}),
    }


def tokenizer() -> tuple[TokenCounter | None, str | None]:
    """T5's counter, or why there is none."""
    try:
        return _tokenizer_at(data_settings().t5)
    except SettingsError as error:
        return None, str(error)


@cache
def _tokenizer_at(path: Path | None) -> tuple[TokenCounter | None, str | None]:
    # A failure is kept, too: the hub is asked once, not for every caption.
    try:
        return token_counter(path), None
    except DataError as error:
        return None, str(error)


def _no_tokens(records: Sequence[CaptionRecord]) -> str | None:
    """Why tokens cannot be counted, ``None`` where they can."""
    reasons = (record.fields.get("con_reason") for record in records)
    return next((str(reason) for reason in reasons if reason is not None), None)


def _tokens_of(records: Sequence[CaptionRecord]) -> list[float]:
    """T5 tokens of every video, the mean of its captions'; none where they cannot be counted."""
    if _no_tokens(records) is not None:
        return []
    return [fmean(counts) for counts in _tokens_by_video(records).values()]


def _tokens_by_video(records: Sequence[CaptionRecord]) -> dict[str, list[int]]:
    """T5 tokens of each caption of a video."""
    # Parity: the released script counts all captions of its file, asked about or not.
    videos: dict[str, list[int]] = {}
    for record in records:
        n_tokens = record.fields.get("n_tokens")
        if isinstance(n_tokens, int):
            videos.setdefault(record.video_id, []).append(n_tokens)
    return videos


_ACC: Final = of_verdicts(
    {
        "correct": NUMERATOR,
        "partial": DENOMINATOR,
        "neutral": DENOMINATOR,
        "wrong": DENOMINATOR,
    }
)
_PRE: Final = of_verdicts(
    {"correct": NUMERATOR, "partial": NUMERATOR, "neutral": NEITHER, "wrong": DENOMINATOR}
)
_COV: Final = of_verdicts(
    {"correct": NUMERATOR, "partial": NUMERATOR, "neutral": DENOMINATOR, "wrong": NUMERATOR}
)


def _con(videos: Videos, records: Sequence[CaptionRecord]) -> float:
    # Parity: of a dimension, too, con takes the tokens of whole captions, those of all videos.
    verdicts = list(chain.from_iterable(videos))
    return vidcapbench_con(verdicts, n_tokens=_tokens_of(records))


def _con_ratios(videos: Videos, records: Sequence[CaptionRecord]) -> list[Parts]:
    """Those of accuracy, and of one over the mean of the videos' tokens."""
    counts = _tokens_by_video(records)
    tokens = []
    for record in records:
        n_tokens = record.fields.get("n_tokens")
        if isinstance(n_tokens, int):
            n_captions = len(counts[record.video_id])
            tokens.append((1 / n_captions, n_tokens / n_captions))
        else:
            tokens.append(NEITHER)
    return [[*acc, pair] for acc, pair in zip(_ACC(videos, records), tokens, strict=True)]


def _summary(records: Sequence[CaptionRecord]) -> Mapping[str, object]:
    tokens = _tokens_of(records)
    return {"mean_tokens": fmean(tokens) if tokens else None}


VIDCAPBENCH: Final[Benchmark[Question, CorrectnessJudgement]] = Benchmark(
    name="vidcapbench",
    folder=Path(__file__).parent,
    source=SOURCE,
    probe_file=questions_file(SUBSETS[0]),
    tasks={
        "vidcapbench_ae": _task(
            "AE",
            "VidCapBench-AE holds the pairs that judges grade stably; it is meant to be judged "
            "automatically (section 3.4), as it is here",
            "INFO",
        ),
        "vidcapbench_he": _task(
            "HE",
            "VidCapBench-HE holds the pairs that judges grade unstably; it is meant to be judged "
            "by people (section 3.4). Here a judge model grades it: take its numbers with care",
            "WARNING",
        ),
    },
    read=_documents,
    name_fields=("video_id", "video_dir"),
    file_name=lambda video_dir: video_dir.replace("\\", "/"),
    question_file=QUESTION_FILE,
    questions=_questions,
    ask=asking(judge_question),
    silent=silence(silent_judgement),
    judge_check=JudgeCheck(
        tell=lambda question: tell_answer(question.question, question.answer),
        credit=lambda judgement: None if judgement.verdict is None else _CREDIT[judgement.verdict],
        said=lambda _question, judgement: judgement.verdict,
        silent=frozenset({"neutral", "wrong"}),
    ),
    verification=VERIFICATION,
    grading=_GRADING,
    metrics={
        "acc": Metric(
            score=over_questions(vidcapbench_acc), ratios=_ACC, labels=get_args(Correctness)
        ),
        "pre": Metric(score=over_questions(vidcapbench_pre), ratios=_PRE),
        "cov": Metric(score=over_questions(vidcapbench_cov), ratios=_COV),
        "con": Metric(
            score=_con,
            # A percentage of 1 over one token, times 100 as the paper prints it.
            scale=10_000.0,
            highest=10_000.0,
            ratios=_con_ratios,
            reads_fields=True,
            unavailable=_no_tokens,
            unavailable_here=lambda: tokenizer()[1],
        ),
    },
    pooled_group="vidcapbench",
    headline="acc",
    right=frozenset({"correct"}),
    missed=frozenset({"neutral"}),
    wrong=frozenset({"wrong"}),
    headline_means="% of questions that the caption alone answers fully and rightly",
    groups=lambda _doc, question, _judgement: {
        "dimensions": question.dimension,
        "sub_categories": question.sub_category,
    },
    sections={
        "dimensions": tuple(CATEGORIES),
        "sub_categories": tuple(chain.from_iterable(CATEGORIES.values())),
    },
    fields=_fields,
    # What counted the tokens of con.
    extras=lambda _judgements, fields: {"con": UNAVAILABLE if "con_reason" in fields else "t5"},
    summary=_summary,
    paper_table=PAPER_TABLE,
    output_tokens={"vidcapbench_answer": 12, "vidcapbench_judge": 60},
)
"""Two tasks; ``acc``, ``pre``, ``cov`` and ``con`` over all pairs, dimensions and categories."""
