"""VCapsBench: its task, questions, metrics, groups and categories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, get_args

from loguru import logger

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols import vcapsbench as protocol
from lmms_eval_captions.judges.protocols.vcapsbench import Question
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.judges.verdict import Agreement, AgreementJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import (
    Benchmark,
    Doc,
    Task,
    check_of_answers,
    pooled,
)
from lmms_eval_captions.lmms_eval_tasks.common.clip_protocol import Clip, ClipProtocol, shown
from lmms_eval_captions.lmms_eval_tasks.data import files
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source
from lmms_eval_captions.lmms_eval_tasks.ratios import DENOMINATOR, NEITHER, NUMERATOR
from lmms_eval_captions.metrics.vcapsbench import vcapsbench_ar, vcapsbench_cr, vcapsbench_ir

SOURCE: Final = Source(
    benchmark="vcapsbench",
    page="https://huggingface.co/datasets/somos99/VCapsBench",
    video_folder="vcapsbench/videos5k",
    hub_repo="somos99/VCapsBench",
    # The repository also holds archives of captions and results.
    archives=("*video*.zip", "*video*.tar", "*video*.tar.gz", "**/*video*.zip"),
)

FILE: Final = "VCapsBench_100KQA.jsonl"

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "Content & Entity": (
        "proper noun", "action", "relation", "count", "entity", "entity size", "entity shape",
    ),
    "Color & Lighting": ("lighting", "color palette", "color grading", "color"),
    "Visuals & Composition": ("position", "relative position", "background", "text", "blur"),
    "Cinematography & Atmosphere": (
        "style", "camera movement", "shot type", "emotion", "atmosphere",
    ),
}  # fmt: skip
"""The four groups and their 21 categories, in the order of the paper's tables."""

GROUP_OF: Final = {name: group for group, names in GROUPS.items() for name in names}

_N_SHOWN: Final = 3


def read_videos(settings: DataSettings) -> list[dict[str, Any]]:
    """Return the videos that have questions, in the official order; log what is left out.

    Rows of the same video are joined. A string that is not ``category*question*answer`` is left
    out. A question of a category that the paper does not name is kept, and counts in no group.

    Returns:
        ``video_id``, ``questions``, each with ``category``, ``question`` and ``answer`` (yes or
        no), and ``n_malformed_in_file``, the number of strings of all videos that are left out.

    Raises:
        DataError: If the file is missing or a row is not of the official shape.
    """
    path = files.find_file(settings, SOURCE, FILE)
    questions: dict[str, list[dict[str, str]]] = {}
    malformed: list[str] = []
    for where, row in files.read_located(path):
        video_id, texts = files.text_of(row, "video_id", f"{where}, "), row.get("qa")
        if not isinstance(texts, list):
            raise DataError(f"{where}, qa: expected a list, got {texts!r:.80}")
        asked = questions.setdefault(video_id, [])
        for text in texts:
            question = parse_question(text)
            if question is None:
                malformed.append(f"{video_id}: {text!r:.80}")
            else:
                asked.append(question)
    categories = [asked["category"] for of_video in questions.values() for asked in of_video]
    files.check_categories(path, categories, GROUP_OF)
    n_malformed, n_strings = len(malformed), len(malformed) + len(categories)
    empty = [video_id for video_id, asked in questions.items() if not asked]
    for left_out, why in (
        (malformed, f"of {n_strings:,} strings are not category*question*answer with yes or no"),
        (empty, "videos have no question"),
    ):
        if left_out:
            shown_ones = ", ".join(left_out[:_N_SHOWN])
            logger.warning(
                f"{path}: {len(left_out):,} {why} and are left out, such as {shown_ones}"
            )
    return [
        {"video_id": video_id, "questions": asked, "n_malformed_in_file": n_malformed}
        for video_id, asked in questions.items()
        if asked
    ]


def parse_question(text: object) -> dict[str, str] | None:
    """Return ``category``, ``question`` and ``answer`` of an official string, or ``None``.

    The first star ends the category and the last one begins the answer, so that a question may hold
    stars.

    >>> parse_question("text * Is there a sign saying 5*? * Yes")
    {'category': 'text', 'question': 'Is there a sign saying 5*?', 'answer': 'yes'}
    >>> parse_question("Is there a sign?*yes") is None
    True
    """
    if not isinstance(text, str):
        return None
    head, _, rest = text.partition("*")
    question, _, tail = rest.rpartition("*")
    return make_question(head, question, tail)


def make_question(category: str, question: str, answer: str) -> dict[str, str] | None:
    """Return a question in the spelling of the paper's tables, ``None`` if it is not one.

    >>> make_question(" Camera_movement", "Is it?", "No.")
    {'category': 'camera movement', 'question': 'Is it?', 'answer': 'no'}
    """
    category = " ".join(category.replace("_", " ").replace("-", " ").lower().split())
    answer = answer.strip(" \t\r\n.\"'").lower()
    if not category or not question.strip() or answer not in ("yes", "no"):
        return None
    return {"category": category, "question": question.strip(), "answer": answer}


def _select(rows: Sequence[files.Row], keep: files.Keep) -> Iterator[files.Row]:
    # Malformed strings are left out.
    for row in rows:
        read = ((text, parse_question(text)) for text in row["qa"])
        kept = [text for text, asked in read if asked and keep(row["video_id"], asked["question"])]
        if kept:
            yield {**row, "qa": kept}


class VCapsBench(Benchmark[Question, AgreementJudgement]):
    """``ar``, ``ir`` and ``cr`` over all questions, the 4 groups and the 21 categories."""

    source = SOURCE
    probe_file = FILE
    question_file = files.of_json_lines(lambda _fields: FILE, _select)
    tasks = {
        "vcapsbench": Task(
            name="vcapsbench",
            caption_prompt="vcapsbench_caption.caption",
            judge_prompts=("vcapsbench_answer",),
            extras={"asks": str(protocol.N_ASKS)},
            caption_chars=1400,
        )
    }
    metrics = {
        "ar": pooled(
            vcapsbench_ar,
            {"positive": NUMERATOR, "negative": DENOMINATOR, "unanswerable": DENOMINATOR},
            labels=get_args(Agreement),
        ),
        "ir": pooled(
            vcapsbench_ir,
            {"positive": DENOMINATOR, "negative": NUMERATOR, "unanswerable": NEITHER},
            higher_is_better=False,
        ),
        "cr": pooled(
            vcapsbench_cr,
            {"positive": NUMERATOR, "negative": NUMERATOR, "unanswerable": DENOMINATOR},
        ),
    }
    headline = "ar"
    headline_means = "% of yes-no questions that the caption alone answers rightly"
    right = frozenset({"positive"})
    missed = frozenset({"unanswerable"})
    wrong = frozenset({"negative"})
    sections = {
        "groups": tuple(GROUPS),
        "categories": tuple(GROUP_OF),
    }
    judge = staticmethod(protocol.judge_question)
    silent = staticmethod(lambda question, run: [protocol.silent_judgement(question, run)])
    judge_check = check_of_answers(
        {"positive": 1.0},
        silent=["unanswerable"],
        said=lambda _question, judgement: judgement.predicted_answer,
    )
    output_tokens = {"vcapsbench_answer": 25}

    read = staticmethod(lambda settings, _task: read_videos(settings))
    questions = staticmethod(lambda doc: [Question(**asked) for asked in doc["questions"]])

    def groups(
        self, _doc: Doc, question: Question, _judgement: AgreementJudgement | None
    ) -> dict[str, str]:
        """Return the category, and its group if the paper names it."""
        category = question.category
        group = {"groups": GROUP_OF[category]} if category in GROUP_OF else {}
        return {**group, "categories": category}

    fields = staticmethod(lambda doc, _caption: {"n_malformed_in_file": doc["n_malformed_in_file"]})
    summary = staticmethod(
        lambda records: {"n_malformed": records[0].fields["n_malformed_in_file"]}
    )


VCAPSBENCH: Final = VCapsBench()


def _clip_document(clip: Clip) -> Doc:
    questions = [_question(value, number) for number, value in enumerate(clip.questions or (), 1)]
    return {"video_id": clip.clip_id, "questions": questions, "n_malformed_in_file": 0}


def _question(value: object, number: int) -> dict[str, str]:
    # A malformed one is an error: a clip's score must not be one of fewer questions.
    question = parse_question(value)
    if isinstance(value, Mapping):
        asked, answer = value.get("question"), value.get("answer")
        if isinstance(asked, str) and isinstance(answer, str):
            question = make_question(str(value.get("category") or "none"), asked, answer)
    if question is None:
        raise DataError(
            f"questions, question {number}: expected a 'question' with the 'answer' yes or no, or "
            f"the text category*question*answer, got {shown(value)}"
        )
    return question


PROTOCOLS: Final = (
    ClipProtocol(
        benchmark=VCAPSBENCH,
        task=VCAPSBENCH.tasks["vcapsbench"],
        document=_clip_document,
    ),
)
"""Each question with its ``answer``, yes or no, and a ``category`` if there is one; or the official
text ``category*question*answer``."""
