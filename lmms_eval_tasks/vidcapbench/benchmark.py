"""VidCapBench: its two subsets, questions, metrics, dimensions and categories."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, product
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Literal, get_args

from loguru import logger

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.protocols import vidcapbench as protocol
from lmms_eval_captions.judges.protocols.vidcapbench import Question
from lmms_eval_captions.judges.settings import DataSettings, data_settings
from lmms_eval_captions.judges.verdict import Correctness, CorrectnessJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import (
    Benchmark,
    Doc,
    Metric,
    Task,
    Videos,
    check_of_answers,
    over_questions,
    pooled,
)
from lmms_eval_captions.lmms_eval_tasks.common.clip_protocol import Clip, ClipProtocol
from lmms_eval_captions.lmms_eval_tasks.data import files
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source
from lmms_eval_captions.lmms_eval_tasks.ratios import (
    DENOMINATOR,
    NEITHER,
    NUMERATOR,
    Parts,
    of_verdicts,
)
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.signature import UNAVAILABLE
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.t5_tokens import TokenCounter, token_counter
from lmms_eval_captions.metrics import vidcapbench as numbers

SOURCE: Final = Source(
    benchmark="vidcapbench",
    page="https://huggingface.co/datasets/VidCapBench/VidCapBench",
    video_folder="vidcapbench/videos",
    hub_repo="VidCapBench/VidCapBench",
)
SUBSETS: Final = ("AE", "HE")
QUESTIONS: Final = "VidCapBench-{subset}_QA.jsonl"
"""File of a subset's questions."""
CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = {
    "video aesthetics": ("cinematography", "lighting", "style", "color", "composition"),
    "video content": ("subjects", "background", "events"),
    "video motion": (
        "body movements", "object motion", "attribute changes", "environmental motion",
        "spatiotemporal transformations",
    ),
    "physical laws": ("spatial relationships", "counter intuitive", "common sense"),
}  # fmt: skip
"""Subcategories of each dimension (primary category), in the paper's order of dimensions."""
_KNOWN: Final = {f"{group} / {name}" for group, names in CATEGORIES.items() for name in names}
Pair = dict[str, str]
"""``question``, its gold ``answer``, ``sub_category`` and ``primary_category``."""


def read_videos(settings: DataSettings, subset: str) -> list[dict[str, Any]]:
    """Return the videos of a subset, those with questions first, in the official order.

    Videos without a pair are asked nothing, and their captions' tokens count in ``con``: HE has
    questions about 543 of its 643 videos. They come last, so that with ``--limit`` documents have
    questions.

    Returns:
        ``video_id``, the base name of the file, as some copies of the data have a folder in front
        of it, ``video_dir``, the name as the data spells it, and ``questions``, the pairs.

    Raises:
        DataError: If the file is missing, a row is not of the official shape, or none has a pair.
    """
    path = files.find_file(settings, SOURCE, QUESTIONS.format(subset=subset))
    videos: dict[str, dict[str, Any]] = {}
    rows = files.read_located(path)
    for where, row in rows:
        video_dir = files.text_of(row, "video_dir", f"{where}, ")
        name, pairs = _base_name(video_dir), read_pairs(row.get("QA_pairs"), where=where)
        video = {"video_id": name, "video_dir": video_dir, "questions": []}
        # The released script scores every row of a video, too.
        videos.setdefault(name, video)["questions"].extend(pairs)
    names = [_category(pair) for video in videos.values() for pair in video["questions"]]
    files.check_categories(path, names, _KNOWN)
    n_asked = sum(bool(video["questions"]) for video in videos.values())
    logger.info(
        f"VidCapBench-{subset}: {len(names)} pairs of {n_asked} videos; "
        f"{len(videos) - n_asked} videos without a pair are asked nothing, their captions' tokens "
        f"count in con; {len(rows) - len(videos)} rows repeat a video"
    )
    return sorted(videos.values(), key=lambda video: not video["questions"])


def _category(pair: Pair) -> str:
    return f"{pair['primary_category']} / {pair['sub_category']}"


def _base_name(video_dir: str) -> str:
    return re.split(r"[/\\]", video_dir)[-1]


def read_pairs(value: object, *, where: str) -> list[Pair]:
    """Return the questions of one video, checked.

    Raises:
        DataError: If they are not of the official form; the message begins with ``where``.
    """
    categories = ("sub_category", "primary_category")
    form = "a list under 'QA_pairs'"
    value = [] if value is None else value
    pairs = files.read_pairs(value, *categories, where=where, form=form)
    for pair, name in product(pairs, categories):
        pair[name] = " ".join(pair[name].lower().replace("_", " ").split()) or "none"
    return pairs


def _select(rows: Sequence[files.Row], keep: files.Keep) -> Iterator[files.Row]:
    for row in rows:
        video_id = _base_name(row["video_dir"])
        kept = [pair for pair in row.get("QA_pairs") or () if keep(video_id, pair["question"])]
        if kept:
            yield {**row, "QA_pairs": kept}


def tokenizer() -> tuple[TokenCounter | None, str | None]:
    """Return T5's counter, or why there is none."""
    try:
        return _tokenizer_at(data_settings().t5)
    except SettingsError as error:
        return None, str(error)


@cache
def _tokenizer_at(path: Path | None) -> tuple[TokenCounter | None, str | None]:
    # A failure is cached, too: the hub is asked once, not for every caption.
    try:
        return token_counter(path), None
    except DataError as error:
        return None, str(error)


def _no_tokens(records: Sequence[CaptionRecord]) -> str | None:
    """Return why tokens cannot be counted, ``None`` if they can."""
    reasons = (record.fields.get("con_reason") for record in records)
    return next((str(reason) for reason in reasons if reason is not None), None)


def _tokens_by_video(records: Sequence[CaptionRecord]) -> dict[str, list[int]]:
    # Parity: the released script counts all captions of its file, asked about or not.
    videos: dict[str, list[int]] = {}
    for record in records:
        n_tokens = record.fields.get("n_tokens")
        if isinstance(n_tokens, int):
            videos.setdefault(record.video_id, []).append(n_tokens)
    return videos


def _tokens_of(records: Sequence[CaptionRecord]) -> list[float]:
    """Return the mean T5 tokens of each video's captions, none if they cannot be counted."""
    videos = _tokens_by_video(records) if _no_tokens(records) is None else {}
    return [*map(fmean, videos.values())]


_ACC: Final = of_verdicts(
    {"correct": NUMERATOR, "partial": DENOMINATOR, "neutral": DENOMINATOR, "wrong": DENOMINATOR}
)


def _con(videos: Videos, records: Sequence[CaptionRecord]) -> float:
    # Parity: con of a dimension, too, takes the tokens of whole captions, those of all videos.
    return numbers.vidcapbench_con(chain.from_iterable(videos), n_tokens=_tokens_of(records))


def _con_ratios(videos: Videos, records: Sequence[CaptionRecord]) -> list[Parts]:
    """Return those of accuracy, and of one over the mean of the videos' tokens."""
    counts = _tokens_by_video(records)

    def tokens(record: CaptionRecord) -> tuple[float, float]:
        n_tokens = record.fields.get("n_tokens")
        if not isinstance(n_tokens, int):
            return NEITHER
        n_captions = len(counts[record.video_id])
        return 1 / n_captions, n_tokens / n_captions

    pairs = map(tokens, records)
    return [[*acc, pair] for acc, pair in zip(_ACC(videos, records), pairs, strict=True)]


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


class VidCapBench(Benchmark[Question, CorrectnessJudgement]):
    """``acc``, ``pre``, ``cov`` and ``con`` over all pairs, dimensions and categories."""

    source = SOURCE
    probe_file = QUESTIONS.format(subset=SUBSETS[0])
    # Videos without questions, whose captions' tokens count in ``con``, are left out too.
    question_file = files.of_json_lines(QUESTIONS.format_map, _select)
    name_fields = ("video_id", "video_dir")
    tasks = {
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
    }
    pooled_group = "vidcapbench"
    metrics = {
        "acc": Metric(
            score=over_questions(numbers.vidcapbench_acc),
            ratios=_ACC,
            labels=get_args(Correctness),
        ),
        "pre": pooled(
            numbers.vidcapbench_pre,
            {"correct": NUMERATOR, "partial": NUMERATOR, "neutral": NEITHER, "wrong": DENOMINATOR},
        ),
        "cov": pooled(
            numbers.vidcapbench_cov,
            dict.fromkeys(get_args(Correctness), NUMERATOR) | {"neutral": DENOMINATOR},
        ),
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
    }
    headline = "acc"
    headline_means = "% of questions that the caption alone answers fully and rightly"
    right, missed, wrong = frozenset({"correct"}), frozenset({"neutral"}), frozenset({"wrong"})
    sections = {
        "dimensions": tuple(CATEGORIES),
        "sub_categories": tuple(chain.from_iterable(CATEGORIES.values())),
    }
    judge = staticmethod(protocol.judge_question)
    silent = staticmethod(lambda question, run: [protocol.silent_judgement(question, run)])
    judge_check = check_of_answers({"correct": 1.0, "partial": 0.5}, silent=["neutral", "wrong"])
    output_tokens = {"vidcapbench_answer": 12, "vidcapbench_judge": 60}
    questions = staticmethod(
        lambda doc: [
            Question(
                pair["question"],
                pair["answer"],
                dimension=pair["primary_category"],
                sub_category=pair["sub_category"],
            )
            for pair in doc["questions"]
        ]
    )
    groups = staticmethod(
        lambda _doc, question, _judgement: {
            "dimensions": question.dimension,
            "sub_categories": question.sub_category,
        }
    )
    file_name = staticmethod(lambda name: name.replace("\\", "/"))

    def read(self, settings: DataSettings, task: Task) -> list[dict[str, object]]:
        """Return all videos, also those without questions: their captions' tokens count."""
        fields = {**task.fields, "caption_format": settings.vidcapbench_format}
        return [{**video, **fields} for video in read_videos(settings, task.fields["subset"])]

    extras = staticmethod(
        lambda _judgements, fields: {"con": UNAVAILABLE if "con_reason" in fields else "t5"}
    )

    def fields(self, _doc: Doc, caption: str | None) -> dict[str, object]:
        """Return the caption's number of T5 tokens, or why it is not known."""
        counter, reason = tokenizer()
        return {
            "n_tokens": None if counter is None or caption is None else counter(caption),
            **({} if reason is None else {"con_reason": reason}),
        }

    def summary(self, records: Sequence[CaptionRecord]) -> dict[str, object]:
        """Return the mean number of tokens."""
        tokens = _tokens_of(records)
        return {"mean_tokens": fmean(tokens) if tokens else None}


VIDCAPBENCH: Final = VidCapBench()


def _clip_document(clip: Clip) -> Doc:
    questions = read_pairs(list(clip.questions or ()), where="questions")
    return {"video_id": clip.clip_id, "video_dir": clip.clip_id, "questions": questions}


PROTOCOLS: Final = (
    ClipProtocol(
        benchmark=VIDCAPBENCH,
        task=replace(
            VIDCAPBENCH.tasks["vidcapbench_ae"],
            name="vidcapbench",
            fields={},
            caption_prompt="vidcapbench_caption.free",
            extras={},
            note="",
        ),
        document=_clip_document,
    ),
)
"""Each question with its ``answer``; ``primary_category`` and ``sub_category`` if there are any."""
