"""CapQuiz: its two tasks, questions, metrics, question types and domains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, get_args

from lmms_eval_captions.judges.protocols.capquiz import (
    LETTERS,
    N_OPTIONS,
    UNKNOWN,
    Question,
    judge_question,
    silent_judgement,
)
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.judges.verdict import QuizJudgement, QuizOutcome
from lmms_eval_captions.lmms_eval_tasks.benchmark import (
    Benchmark,
    Doc,
    Task,
    check_of_answers,
    pooled,
)
from lmms_eval_captions.lmms_eval_tasks.capquiz.data import (
    DOMAINS,
    FILE,
    GROUP_OF,
    GROUPS,
    QUESTION_FILE,
    SOURCE,
    SUPER_OF,
    read_questions,
    read_videos,
)
from lmms_eval_captions.lmms_eval_tasks.common.clip_protocol import Clip, ClipProtocol
from lmms_eval_captions.lmms_eval_tasks.ratios import DENOMINATOR, NEITHER, NUMERATOR
from lmms_eval_captions.metrics.capquiz import abstain, capf1, capp, capr


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
    """Return the letter of the option that the judge chose."""
    if judgement.choice is None:
        return None
    return LETTERS[(*question.options, UNKNOWN).index(judgement.choice)]


def _counts(
    true_positive: tuple[float, float],
    false_positive: tuple[float, float],
    false_negative: tuple[float, float],
) -> dict[QuizOutcome, tuple[float, float]]:
    return {
        "true_positive": true_positive,
        "false_positive": false_positive,
        "false_negative": false_negative,
    }


class CapQuiz(Benchmark[Question, QuizJudgement]):
    """Precision, recall and F1 of a quiz; two tasks that differ in the caption prompt."""

    name = "capquiz"
    folder = Path(__file__).parent
    source = SOURCE
    probe_file = FILE
    question_file = QUESTION_FILE
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
    judge = staticmethod(judge_question)
    silent = staticmethod(lambda question, run: [silent_judgement(question, run)])
    judge_check = check_of_answers(
        {"true_positive": 1.0}, silent=[LETTERS[N_OPTIONS]], said=_letter
    )
    output_tokens = {"capquiz_answer": 2}

    def read(self, settings: DataSettings, task: Task) -> list[dict[str, object]]:
        """Return the rows of the file."""
        return [{**row, **task.fields} for row in read_videos(settings)]

    def questions(self, doc: Doc) -> list[Question]:
        """Return the quiz."""
        return [Question(**{**row, "options": tuple(row["options"])}) for row in doc["questions"]]

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
        name="capquiz",
        benchmark=CAPQUIZ,
        task=replace(CAPQUIZ.tasks["capquiz"], fields={}, extras={}),
        needs=frozenset({"questions"}),
        document=_clip_document,
    ),
)
"""Each question with five ``options`` and the ``answer``, one of them; a ``category`` if there is
one."""
