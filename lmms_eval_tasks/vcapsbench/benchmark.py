"""VCapsBench: its task, questions, metrics, groups and categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, get_args

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols.vcapsbench import (
    N_ASKS,
    Question,
    judge_question,
    silent_judgement,
)
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
from lmms_eval_captions.lmms_eval_tasks.ratios import DENOMINATOR, NEITHER, NUMERATOR
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.data import (
    FILE,
    GROUP_OF,
    GROUPS,
    QUESTION_FILE,
    SOURCE,
    make_question,
    parse_question,
    read_videos,
)
from lmms_eval_captions.metrics.vcapsbench import vcapsbench_ar, vcapsbench_cr, vcapsbench_ir


class VCapsBench(Benchmark[Question, AgreementJudgement]):
    """``ar``, ``ir`` and ``cr`` over all questions, the 4 groups and the 21 categories."""

    name = "vcapsbench"
    folder = Path(__file__).parent
    source = SOURCE
    probe_file = FILE
    question_file = QUESTION_FILE
    tasks = {
        "vcapsbench": Task(
            name="vcapsbench",
            caption_prompt="vcapsbench_caption.caption",
            judge_prompts=("vcapsbench_answer",),
            extras={"asks": str(N_ASKS)},
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
    judge = staticmethod(judge_question)
    silent = staticmethod(lambda question, run: [silent_judgement(question, run)])
    judge_check = check_of_answers(
        {"positive": 1.0},
        silent=["unanswerable"],
        said=lambda _question, judgement: judgement.predicted_answer,
    )
    output_tokens = {"vcapsbench_answer": 25}

    def read(self, settings: DataSettings, task: Task) -> list[dict[str, object]]:  # noqa: ARG002
        """Return the videos that have questions."""
        return read_videos(settings)

    def questions(self, doc: Doc) -> list[Question]:
        """Return the questions of the official file."""
        return [Question(**question) for question in doc["questions"]]

    def groups(
        self, _doc: Doc, question: Question, _judgement: AgreementJudgement | None
    ) -> dict[str, str]:
        """Return the category, and its group if the paper names it."""
        category = question.category
        group = {"groups": GROUP_OF[category]} if category in GROUP_OF else {}
        return {**group, "categories": category}

    def fields(self, doc: Doc, _caption: str | None) -> dict[str, object]:
        """Return the file's number of malformed questions."""
        return {"n_malformed_in_file": doc["n_malformed_in_file"]}

    def summary(self, records: Sequence[CaptionRecord]) -> dict[str, object]:
        """Return the file's number of malformed questions, which every record has."""
        return {"n_malformed": records[0].fields["n_malformed_in_file"]}


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
        name="vcapsbench",
        benchmark=VCAPSBENCH,
        task=VCAPSBENCH.tasks["vcapsbench"],
        needs=frozenset({"questions"}),
        document=_clip_document,
    ),
)
"""Each question with its ``answer``, yes or no, and a ``category`` if there is one; or the official
text ``category*question*answer``."""
