"""Checks that a benchmark's judge reads captions: honest replies, and anchors.

A bad captioner makes an honest judge give one verdict all the time, as a good one may. So the judge
is asked a few of the questions with two captions of our own, *anchors*: one that gives the answer
and one that says nothing. A judge that reads captions credits only the first.
"""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from statistics import fmean
from typing import Any, Final, Generic, TypeVar

from lmms_eval_captions.judges.protocols.prompt import Prompts
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.signature import questions_digest
from lmms_eval_captions.model_wrappers.captions import launcher_number

Q = TypeVar("Q")
J = TypeVar("J", bound=Judgement)

SAYS_NOTHING: Final = "This is a video."
"""A caption with words, from which no question can be answered."""
LEAST_CAPTIONS: Final = 20
"""Captions of a task, over all processes, from which on anchors are asked: not in a trial run."""

Pair = tuple[float | None, float | None]
"""Credits in [0, 1] for the caption that answers a question and for the one that says nothing;
``None`` is unscored."""
_THOUGHT: Final = re.compile(
    r"\W*(?:thoughts?\b|thinking\b|think\b|reasoning\b|analysis\b|let me (?:think|see|analy)"
    r"|(?:okay|alright|hmm)\b,|(?:we|i) need to\b|the user\b|first, i\b)",
    re.IGNORECASE,
)
"""Beginning of reasoning, with or without the marker of its model family."""
_LONG: Final = 300
"""Characters from which on an answer is no short sentence or phrase, as was asked for."""
_EXAMPLE: Final = re.compile(r"\bfor example\b[^:\n]*:[ \t]*(\S[^\n]*)", re.IGNORECASE)
_IGNORED: Final = re.compile(r"[\s`'\"]+")
_LEAST_CHARS: Final = 8
"""Honest replies hold shorter examples, such as ``yes``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCheck(Generic[Q, J]):
    """A benchmark's description of honest replies."""

    tell: Callable[[Q], str]
    """A caption that gives the answer to a question; empty if there is none."""
    credit: Callable[[J], float | None]
    """Credit of a judgement for the caption, in [0, 1]; ``None`` is unscored."""
    said: Callable[[Q, J], str | None]
    """The judge's verdict, one of few different words; ``None`` is unscored."""
    silent: frozenset[str] = frozenset()
    """Verdicts that bad captions earn, so that an honest judge may give them all the time."""
    n_anchors: int = 16
    """Questions that are asked with both captions: 95% of judges that credit at random are found,
    and 2% of those that credit 80% of captions with the answer and 20% without."""


def tell_answer(question: str, answer: str) -> str:
    """Return a caption that answers one question; empty if there is no question or answer."""
    if not question.strip() or not answer.strip():
        return ""
    return f'To the question "{question.strip()}" the answer is: {answer.strip()}'


def choose_questions(check: JudgeCheck[Q, Any], documents: Iterable[Sequence[Q]]) -> list[Q]:
    """Return the first different questions that can be answered, one of each document."""
    chosen: dict[str, Q] = {}
    for number, questions in enumerate(documents):
        usable = {text: question for question in questions if (text := check.tell(question))}
        others = [text for text in usable if text not in chosen]
        if others:
            text = others[number % len(others)]
            chosen[text] = usable[text]
        if len(chosen) == check.n_anchors:
            break
    return list(chosen.values())


def anchors_of(check: JudgeCheck[Q, Any], questions: Iterable[Q]) -> list[tuple[Q, str]]:
    """Return each question with a caption that answers it, and with one that says nothing."""
    return [(q, caption) for q in questions for caption in (check.tell(q), SAYS_NOTHING)]


class AnchorQuestions:
    """Each task's questions for anchors, and the moment to ask them.

    They are those of the file's first documents, so that a rerun finds all replies in the store.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._questions: dict[str, list[Any]] = {}
        self._n_captions: Counter[str] = Counter()

    def prepare(self, task: str, questions: list[Any]) -> None:
        """Set a task's questions; may be repeated."""
        with self._lock:
            self._questions[task] = questions

    def forget(self, task: str) -> None:
        """Start again: lmms-eval may run a task several times in one process."""
        with self._lock:
            self._questions.pop(task, None)
            self._n_captions.pop(task, None)

    def due(self, task: str) -> list[Any]:
        """Count one more caption, and return the questions to ask now, mostly none."""
        rank = launcher_number(os.environ, "RANK", 0)
        world_size = launcher_number(os.environ, "WORLD_SIZE", 1)
        with self._lock:
            self._n_captions[task] += 1
            # Processes have captions in turn: before the n-th of one the others have had n - 1.
            n_total = (self._n_captions[task] - 1) * world_size + rank + 1
            is_due = n_total - world_size < LEAST_CAPTIONS <= n_total
            return self._questions.get(task, []) if is_due else []


def anchor_credits(
    check: JudgeCheck[Q, J], questions: Sequence[Q], chains: Sequence[Sequence[J]]
) -> dict[str, Pair]:
    """Return the credits of each question's two captions, by a digest of the question."""
    if not chains:  # nothing was judged
        return {}
    values = [[v for v in map(check.credit, judgements) if v is not None] for judgements in chains]
    means = [fmean(credits_) if credits_ else None for credits_ in values]
    names = (questions_digest("", [question]) for question in questions)
    return dict(zip(names, zip(means[::2], means[1::2], strict=True), strict=True))


@dataclass(slots=True)
class Evidence:
    """Counts of a judge's replies, over one or more captions."""

    n_replies: int = 0
    """Readable replies."""
    n_echoes: int = 0
    """Readable replies that are the prompt's example."""
    said: Counter[str] = field(default_factory=Counter)
    """Number of each verdict."""
    n_silent: int = 0
    """Verdicts that bad captions earn."""
    credit: float = 0.0
    """Sum of the verdicts' credits, in [0, 1] each."""
    pairs: dict[str, Pair] = field(default_factory=dict)
    """Credits of anchors."""
    n_thoughts: int = 0
    """Answers of a first step that begin as reasoning does."""
    starts: Counter[str] = field(default_factory=Counter)
    """First words of long answers."""

    def add(self, other: Evidence) -> None:
        """Add the counts of other captions."""
        for name in ("n_replies", "n_echoes", "n_silent", "credit", "n_thoughts"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.said.update(other.said)
        self.starts.update(other.starts)
        self.pairs |= other.pairs


def evidence_of(
    check: JudgeCheck[Any, Any] | None,
    judged: Iterable[tuple[object, Judgement | None]],
    *,
    examples: Sequence[str],
    pairs: Mapping[str, Pair],
) -> Evidence:
    """Count one caption's judgements, with the credits of anchors that were asked with it."""
    evidence = Evidence(pairs=dict(pairs))
    for question, judgement in judged:
        if judgement is None or judgement.reason is not None or not judgement.reply:
            continue
        evidence.n_replies += 1
        evidence.n_echoes += is_example(judgement.reply, examples)
        answer = getattr(judgement, "predicted_answer", None) or ""
        evidence.n_thoughts += _THOUGHT.match(answer) is not None
        if len(answer) >= _LONG:
            evidence.starts[" ".join(answer.split()[:3])] += 1
        said = None if check is None else check.said(question, judgement)
        if check is not None and said is not None:
            evidence.said[said] += 1
            evidence.n_silent += said in check.silent
            evidence.credit += check.credit(judgement) or 0.0
    return evidence


@cache
def examples_of(prompts: Prompts, names: Sequence[str]) -> tuple[str, ...]:
    """Return the examples after "for example:" in prompts, in the form of :func:`is_example`.

    >>> examples_of(Prompts(), ("vdc_answer", "vdc_match"))
    ('{pred:yes,score:4.8}',)
    """
    texts = (part["content"] for name in names for part in prompts.messages(name))
    shown = (_bare(match.rstrip(" .")) for text in texts for match in _EXAMPLE.findall(text))
    return tuple(dict.fromkeys(x for x in shown if len(x) >= _LEAST_CHARS and "{{" not in x))


def is_example(reply: str, examples: Sequence[str]) -> bool:
    """Return whether a reply holds one of the examples, whatever is around it."""
    return bool(examples) and any(map(_bare(reply).__contains__, examples))


def _bare(text: str) -> str:
    return _IGNORED.sub("", text).lower()
