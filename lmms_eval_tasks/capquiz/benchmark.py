"""CapQuiz: its file, two tasks, questions, metrics, question types and domains.

The benchmark is announced and not released: the schema is ours, and is checked in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, get_args

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols import capquiz as protocol
from lmms_eval_captions.judges.protocols.capquiz import LETTERS, N_OPTIONS, UNKNOWN, Question
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.judges.verdict import QuizJudgement, QuizOutcome
from lmms_eval_captions.lmms_eval_tasks.benchmark import (
    Benchmark,
    Doc,
    Task,
    check_of_answers,
    pooled,
)
from lmms_eval_captions.lmms_eval_tasks.common.clip_protocol import Clip, ClipProtocol
from lmms_eval_captions.lmms_eval_tasks.data import files
from lmms_eval_captions.lmms_eval_tasks.data.files import Row
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source
from lmms_eval_captions.lmms_eval_tasks.ratios import DENOMINATOR, NEITHER, NUMERATOR
from lmms_eval_captions.metrics.capquiz import abstain, capf1, capp, capr

SOURCE: Final = Source(
    benchmark="capquiz",
    page="the paper's project page",
    license="not released",
    video_folder="capquiz/videos",
    note="CapQuiz is announced and not released; a local capquiz.jsonl of the schema in the task's "
    "README can be scored.",
)

FILE: Final = "capquiz.jsonl"

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "Descriptive": ("Entity", "Attribute", "Action", "Event", "Setting"),
    "Inferential": (
        "Relational Reasoning",
        "Causal Reasoning",
        "Interpretive Reasoning",
        "Intent & Emotion Reasoning",
        "Grounding Reasoning",
    ),
}
"""Groups and their ten question types (figures 2b and 6)."""

GROUP_OF: Final = {name: group for group, names in GROUPS.items() for name in names}

DOMAINS: Final[dict[str, tuple[str, ...]]] = {
    "Knowledge": ("Nature", "Science", "Health", "History", "Society"),
    "Everyday": ("Human Bonds", "Animal Companions", "Personal Life"),
    "Creativity": (
        "Movie & Show", "Dance & Performance", "Music & Singing", "Animation", "Comedy Sketch",
        "Game", "Sports",
    ),
    "Civics": ("News", "Social Issues", "Civic Action"),
    "Function": (
        "How-To", "Cooking", "Buyer's Guide", "Travel Planning", "Life Guide",
        "Functional Recordings",
    ),
}  # fmt: skip
"""Super-categories of videos and their 24 domains (figure 5)."""

SUPER_OF: Final = {name: group for group, names in DOMAINS.items() for name in names}

_TYPES: Final = {name.casefold(): name for name in GROUP_OF}


def read_videos(settings: DataSettings) -> list[Row]:
    """Return the rows of the file: ``video``, ``domain`` and ``questions``, checked, in its order.

    Raises:
        DataError: If the file is missing, or something in it is not of the schema; the message
            names the line and the field.
    """
    path = files.find_file(settings, SOURCE, FILE)
    lines: dict[str, str] = {}
    videos: list[Row] = []
    for line, row in files.read_located(path):
        where, questions = f"{line}, ", row.get("questions")
        video, domain = (files.text_of(row, name, where) for name in ("video", "domain"))
        if lines.setdefault(video, line) != line:
            first = lines[video].rpartition(", ")[2]
            raise DataError(f"{where}video: {video!r} is on {first} already")
        if not isinstance(questions, list) or not questions:
            raise DataError(
                f"{where}questions: expected a list with at least one question, got "
                f"{questions!r:.60}"
            )
        quiz = read_questions(questions, where=where)
        videos.append({"video": video, "domain": domain, "questions": quiz})
    types = (question["category"] for video in videos for question in video["questions"])
    files.check_categories(path, types, GROUP_OF)
    return videos


def read_questions(values: Sequence[object], *, where: str = "") -> list[Row]:
    """Return the questions of one video, with the paper's names of their types.

    Raises:
        DataError: If one is not of the schema; the message begins with ``where``.
    """
    return [_question(value, f"{where}questions[{index}]") for index, value in enumerate(values)]


def _question(value: object, where: str) -> Row:
    if not isinstance(value, dict):
        raise DataError(f"{where}: expected an object, got {value!r:.60}")
    category, asked = (files.text_of(value, name, f"{where}.") for name in ("category", "question"))
    options, answer = value.get("options"), value.get("answer")
    if (
        not isinstance(options, list)
        or len(options) != N_OPTIONS
        or not all(isinstance(option, str) and option.strip() for option in options)
    ):
        raise DataError(f"{where}.options: expected {N_OPTIONS} texts, got {options!r:.120}")
    plain = {" ".join(option.split()).casefold().rstrip(".") for option in [*options, UNKNOWN]}
    if len(plain) <= N_OPTIONS:
        raise DataError(
            f"{where}.options: expected different texts, none of them {UNKNOWN!r}, got "
            f"{options!r:.120}"
        )
    if answer not in options:
        raise DataError(f"{where}.answer: expected one of the options, got {answer!r:.60}")
    # Case does not matter, nor a missing "Reasoning"; a custom type is kept as it is spelled.
    spelled = " ".join(category.split())
    name = spelled.casefold()
    kind = _TYPES.get(name) or _TYPES.get(f"{name} reasoning") or spelled
    return {"category": kind, "question": asked, "options": options, "answer": answer}


def _select(rows: Sequence[Row], keep: files.Keep) -> Iterator[Row]:
    for row in rows:
        kept = [asked for asked in row["questions"] if keep(row["video"], asked["question"])]
        if kept:
            yield {**row, "questions": kept}


def _task(name: str, prompt: str, *, caption_chars: int) -> Task:
    return Task(
        name=name,
        fields={"caption_prompt": prompt},
        caption_prompt=f"capquiz_caption.{prompt}",
        judge_prompts=("capquiz_answer",),
        extras={"prompt": prompt},
        caption_chars=caption_chars,
    )


def _letter(question: Question, judgement: QuizJudgement) -> str | None:
    if judgement.choice is None:
        return None
    return LETTERS[(*question.options, UNKNOWN).index(judgement.choice)]


def _counts(*parts: tuple[float, float]) -> dict[QuizOutcome, tuple[float, float]]:
    """Return the parts of true and false positives and of false negatives, by verdict."""
    outcomes: tuple[QuizOutcome, ...] = ("true_positive", "false_positive", "false_negative")
    return dict(zip(outcomes, parts, strict=True))


class CapQuiz(Benchmark[Question, QuizJudgement]):
    """Precision, recall and F1 of a quiz; two tasks that differ in the caption prompt."""

    source = SOURCE
    probe_file = FILE
    question_file = files.of_json_lines(lambda _fields: FILE, _select)
    name_fields = ("video",)
    tasks = {
        "capquiz": _task("capquiz", "standard", caption_chars=600),
        "capquiz_detailed": _task("capquiz_detailed", "detailed", caption_chars=6000),
    }
    metrics = {
        # 2 TP / (TP + FP + N), where N is all three.
        "capf1": pooled(
            capf1, _counts((2.0, 2.0), (0.0, 2.0), DENOMINATOR), labels=get_args(QuizOutcome)
        ),
        "capp": pooled(capp, _counts(NUMERATOR, DENOMINATOR, NEITHER)),
        "capr": pooled(capr, _counts(NUMERATOR, DENOMINATOR, DENOMINATOR)),
        "abstain": pooled(
            abstain, _counts(DENOMINATOR, DENOMINATOR, NUMERATOR), higher_is_better=False
        ),
    }
    headline = "capf1"
    headline_means = "% of the quiz that the caption answers, and how rightly: their harmonic mean"
    right = frozenset({"true_positive"})
    missed = frozenset({"false_negative"})
    wrong = frozenset({"false_positive"})
    sections = {
        "groups": tuple(GROUPS),
        "types": tuple(GROUP_OF),
        "super_categories": tuple(DOMAINS),
        "domains": tuple(SUPER_OF),
    }
    judge = staticmethod(protocol.judge_question)
    silent = staticmethod(lambda question, run: [protocol.silent_judgement(question, run)])
    judge_check = check_of_answers(
        {"true_positive": 1.0}, silent=[LETTERS[N_OPTIONS]], said=_letter
    )
    output_tokens = {"capquiz_answer": 2}

    read = staticmethod(
        lambda settings, task: [{**row, **task.fields} for row in read_videos(settings)]
    )
    questions = staticmethod(
        lambda doc: [Question(**{**q, "options": tuple(q["options"])}) for q in doc["questions"]]
    )

    def groups(
        self, doc: Doc, question: Question, _judgement: QuizJudgement | None
    ) -> dict[str, str]:
        """Return the question's type and the video's domain, with the groups that have them."""
        domain, kind = doc["domain"], question.category
        group = {"groups": GROUP_OF[kind]} if kind in GROUP_OF else {}
        above = {"super_categories": SUPER_OF[domain]} if domain in SUPER_OF else {}
        return {**group, "types": kind, **above, "domains": domain}


CAPQUIZ: Final = CapQuiz()


def _clip_document(clip: Clip) -> Doc:
    questions = [
        {**value, "category": value.get("category") or "own"}
        if isinstance(value, Mapping)
        else value
        for value in clip.questions or ()
    ]
    return {"video": clip.clip_id, "domain": "own", "questions": read_questions(questions)}


PROTOCOLS: Final = (
    ClipProtocol(
        benchmark=CAPQUIZ,
        task=replace(CAPQUIZ.tasks["capquiz"], fields={}, extras={}),
        document=_clip_document,
    ),
)
"""Each question with five ``options`` and the ``answer``, one of them; a ``category`` if there is
one."""
