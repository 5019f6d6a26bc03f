"""The judges' tasks as people are given them, and how an answer is read as a judgement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from lmms_eval_captions.judges.protocols.capquiz import LETTERS, UNKNOWN
from lmms_eval_captions.judges.protocols.gveval import ACCR
from lmms_eval_captions.judges.protocols.video_rating import DIMENSIONS, HIGHEST, LOWEST
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.capquiz.benchmark import CapQuiz
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.benchmark import MsvdEval
from lmms_eval_captions.lmms_eval_tasks.own.benchmark import OwnGVeval, OwnRating
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.benchmark import VCapsBench
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import Vdc
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.benchmark import VidCapBench

Logged = Mapping[str, Any]
"""A judgement as sample logs hold it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the answers that a person chooses from."""

    key: str
    """Key on the keyboard."""
    name: str
    """Value in the label."""
    text: str
    """Text on the page, with the meaning."""


@dataclass(frozen=True, slots=True)
class Rating:
    """A number that a person gives."""

    name: str
    low: float
    high: float
    text: str
    """Text on the page, with the meaning."""
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Label:
    """A person's answer about one question and caption, or the judge's in the same terms."""

    choice: str | None = None
    ratings: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """A judge's task, as a person is given it."""

    asks: str
    """Instruction, a sentence or two."""
    choices: tuple[Choice, ...] = ()
    """Empty if there are none, or if each question has its own."""
    ratings: tuple[Rating, ...] = ()
    shows_answer: bool = True
    """True if the gold answer is shown; ``False`` if the question is to be answered from the
    caption alone: answer and frames are hidden until then."""
    choices_of: Callable[[Mapping[str, Any], int], tuple[Choice, ...]] | None = None
    """Own choices of a question, from the document and the question's index in it."""
    references: Callable[[Mapping[str, Any]], Sequence[str]] = lambda _doc: ()
    """Reference captions of a document that are shown."""
    needs_data: bool = False
    """True if a question cannot be shown without the benchmark's own files."""
    of_judge: Callable[[Logged], Label | None] = lambda _logged: None
    """The judge's answer; ``None`` if it is unscored."""
    judgement: Callable[[Logged, Label], Mapping[str, object]] = lambda _logged, _label: {}
    """Fields of the judgement that hold the person's answer, in place of the judge's."""


def grading_of(benchmark: Benchmark[Any, Any]) -> Grading | None:
    """Return what people are asked in place of a benchmark's judge, ``None`` if they are not."""
    return _GRADINGS.get(type(benchmark))


def _chosen(name: str) -> Callable[[Logged], Label | None]:
    """Return a reader of the judge's choice from a field; ``None`` without a verdict."""
    return lambda logged: None if logged["verdict"] is None else Label(str(logged[name]))


def _match(logged: Logged) -> Label | None:
    label, score = _chosen("verdict")(logged), logged["score"]
    return label and Label(label.choice, {} if score is None else {"score": float(score)})


def _answered(
    field: str, unknown: str, right: str, wrong: str, silent: str
) -> Callable[[Logged, Label], Mapping[str, object]]:
    """Return the judgement of an answer in a field: a verdict if it is right, wrong or unknown."""

    def judgement(logged: Logged, label: Label) -> Mapping[str, object]:
        verdict = right if label.choice == logged["answer"] else wrong
        return {field: label.choice, "verdict": silent if label.choice == unknown else verdict}

    return judgement


def _options(doc: Mapping[str, Any], index: int) -> tuple[Choice, ...]:
    options = zip(LETTERS, (*doc["questions"][index]["options"], UNKNOWN), strict=False)
    return tuple(Choice(letter.lower(), text, f"{letter}: {text}") for letter, text in options)


def _numbers(logged: Logged) -> Label | None:
    """Return the numbers that the judge wrote."""
    numbers = logged["numbers"]
    return Label(ratings={name: float(numbers[name]) for name in numbers}) if numbers else None


def _scores(_logged: Logged, label: Label) -> dict[str, object]:
    distributions = {name: ((number, 1.0),) for name, number in label.ratings.items()}
    return {"numbers": dict(label.ratings), "distributions": distributions}


_MEANINGS: Final = {
    "accuracy": "what the caption says is right",
    "completeness": "nothing that matters is missing",
    "conciseness": "nothing is said that need not be",
    "relevance": "it speaks of what matters in the video",
    "trustworthiness": "does the caption contain false information? 5 is no factual error, 1 is a "
    "main action or object that is not in the video",
    "coverage": "does the caption miss important information? 5 is nothing important left out, "
    "1 misses the main story",
    "overall": "how useful is this caption to a blind user? 5 is excellent, 1 is not useful",
}
"""Dimensions of G-VEval, and of VLLM-as-a-Judge: figure 8's rubrics, shortened."""


def _ratings(names: Sequence[str], low: float, high: float) -> tuple[Rating, ...]:
    return tuple(
        Rating(name, low, high, f"{name.capitalize()}: {_MEANINGS[name]}") for name in names
    )


_GVEVAL: Final = Grading(
    asks="Rate the caption along each dimension, 0 to 100.",
    ratings=_ratings(ACCR, 0, 100),
    needs_data=True,
    references=lambda doc: () if doc.get("setting") == "ref_free" else doc.get("references", ()),
    of_judge=_numbers,
    judgement=_scores,
)
_GRADINGS: Final[Mapping[type[Benchmark[Any, Any]], Grading]] = MappingProxyType(
    {
        # The judge's second step (appendix R); the first (appendix Q) is done by the same person.
        Vdc: Grading(
            asks="Answer the question from the caption alone. Does that answer match the correct "
            "one?",
            choices=(
                Choice("y", "yes", "Yes, it matches"),
                Choice("n", "no", "No, or the caption does not say"),
            ),
            ratings=(
                Rating(
                    "score", 0, 5, "How well it matches, 0 to 5 (5 = the same meaning)",
                    is_optional=True,
                ),
            ),
            of_judge=_match,
            judgement=lambda _logged, label: {
                "verdict": label.choice, "score": label.ratings.get("score"),
            },
        ),
        # The four classes of section 3.2.
        VidCapBench: Grading(
            asks="Answer the question from the caption alone, then grade that answer beside the "
            "correct one.",
            choices=(
                Choice("2", "correct", "2: correct, it fully agrees with the answer"),
                Choice("1", "partial", "1: partially correct, right but incomplete"),
                Choice("0", "neutral", "0: neutral, the caption does not mention it"),
                Choice("-", "wrong", "-1: wrong, the caption speaks of it with an error"),
            ),
            of_judge=_chosen("verdict"),
            judgement=lambda _logged, label: {"verdict": label.choice},
        ),
        VCapsBench: Grading(
            asks="Answer the question from the caption alone, whatever the video shows.",
            choices=(
                Choice("y", "yes", "Yes"),
                Choice("n", "no", "No"),
                Choice("u", "unanswerable", "Unanswerable: the caption does not say"),
            ),
            shows_answer=False,
            of_judge=_chosen("predicted_answer"),
            judgement=_answered(
                "predicted_answer", "unanswerable", "positive", "negative", "unanswerable"
            ),
        ),
        CapQuiz: Grading(
            asks="Choose the option that the caption alone supports, whatever the video shows.",
            shows_answer=False,
            choices_of=_options,
            needs_data=True,
            of_judge=_chosen("choice"),
            judgement=_answered(
                "choice", UNKNOWN, "true_positive", "false_positive", "false_negative"
            ),
        ),
        MsvdEval: _GVEVAL,
        OwnGVeval: _GVEVAL,
        OwnRating: Grading(
            asks="Watch the video and rate the caption along each dimension, 1 to 5.",
            ratings=_ratings(DIMENSIONS, LOWEST, HIGHEST),
            needs_data=True,
            of_judge=_numbers,
            judgement=lambda _logged, label: {"numbers": dict(label.ratings)},
        ),
    }
)  # fmt: skip
