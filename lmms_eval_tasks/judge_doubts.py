"""What speaks against a judge: it repeats the prompt, says one thing, or does not read captions.

Of each caption's judgements its record keeps counts, the *evidence*; over all captions of a task
they tell a judge that does not judge from one that has bad captions before it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from statistics import fmean
from typing import Any, Final, Literal, cast

from lmms_eval_captions.judges.protocols.prompt import Prompts
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.anchors import Pair
from lmms_eval_captions.lmms_eval_tasks.judge_check import JudgeCheck
from lmms_eval_captions.lmms_eval_tasks.reasons import kind_of
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord, Item

Doubt = Literal["echo", "constant", "blind", "unread", "reasoning"]
"""Replies are the prompt's example; nearly all questions get one verdict; captions are not read;
replies mostly cannot be read, those that would show whether captions are read among them; answers
of a first step are the judge's reasoning."""

_LEAST_REPLIES: Final = 20
_MOST_ECHOES: Final = 0.9
"""Share of replies that are the prompt's example, from which on it is a doubt. Some honest judges
spell each of their "yes" like the example, so that good captions come near."""
_MOST_ECHOES_OF_THE_BLIND: Final = 0.5
"""The same where anchors show that captions are not read."""
_LEAST_SAID: Final = 50
_CONSTANT: Final = 0.98
"""Share of replies that say the same."""
_NEARLY_RIGHT: Final = 0.9
"""Mean credit above which one and the same word may be that of a judge of perfect captions."""
_LEAST_PAIRS: Final = 4
_LEAST_DIFFERENCE: Final = 0.3
"""Between the mean credit of captions that give the answer and of one that says nothing."""
_MOST_FOR_NOTHING: Final = 0.5
"""Mean credit of a caption that says nothing; yes-no questions may be guessed right."""
_MUCH_UNREAD: Final = 0.1
"""Share of unreadable questions from which on unreadable anchors are no accident."""
_THOUGHT: Final = re.compile(
    r"\W*(?:thoughts?\b|thinking\b|think\b|reasoning\b|analysis\b|let me (?:think|see|analy)"
    r"|(?:okay|alright|hmm)\b,|(?:we|i) need to\b|the user\b|first, i\b)",
    re.IGNORECASE,
)
"""How reasoning begins, with the marker of its family or without."""
_LONG: Final = 300
"""Characters from which on an answer is no short sentence or phrase, as was asked for."""
_MOST_THOUGHTS: Final = 0.2
_MOST_STARTS: Final = 0.5
"""Share of answers that are long and begin with the same words."""
_HELP: Final = "Do not use this number; name another judge (LMMS_CAPTIONS_JUDGE)."


_EXAMPLE: Final = re.compile(r"\bfor example\b[^:\n]*:[ \t]*(\S[^\n]*)", re.IGNORECASE)
_IGNORED: Final = re.compile(r"[\s`'\"]+")
_LEAST_CHARS: Final = 8
"""Shorter examples are what honest replies hold, too: ``yes``."""


@cache
def examples_of(prompts: Prompts, names: Sequence[str]) -> tuple[str, ...]:
    """Return the examples after "for example:" in prompts, as :func:`is_example` has them.

    >>> examples_of(Prompts(), ("vdc_answer", "vdc_match"))
    ('{pred:yes,score:4.8}',)
    """
    texts = (part["content"] for name in names for part in prompts.messages(name))
    shown = (_bare(match.rstrip(" .")) for text in texts for match in _EXAMPLE.findall(text))
    return tuple(dict.fromkeys(x for x in shown if len(x) >= _LEAST_CHARS and "{{" not in x))


def is_example(reply: str, examples: Sequence[str]) -> bool:
    """Return whether a reply holds one of the examples, whatever is around it.

    >>> is_example("`{'pred': 'yes', 'score': 4.8}`.", ("{pred:yes,score:4.8}",))
    True
    >>> is_example("{'pred': 'yes', 'score': 5}", ("{pred:yes,score:4.8}",))
    False
    """
    return bool(examples) and any(map(_bare(reply).__contains__, examples))


def _bare(text: str) -> str:
    return _IGNORED.sub("", text).lower()


@dataclass(slots=True)
class Evidence:
    """Counts over captions."""

    n_replies: int = 0
    """Replies that were read."""
    n_echoes: int = 0
    """Those that are the prompt's example."""
    said: Counter[str] = field(default_factory=Counter)
    """What the judge said, to how often."""
    n_silent: int = 0
    """How often it said what bad captions earn."""
    credit: float = 0.0
    """Sum over what was said of what it gave the caption, in [0, 1] each."""
    pairs: dict[str, Pair] = field(default_factory=dict)
    """What anchors were given."""
    n_thoughts: int = 0
    """Answers of a first step that begin as reasoning does."""
    starts: Counter[str] = field(default_factory=Counter)
    """First words of long answers, to how often."""

    def to_item(self) -> Item:
        """As a caption's items hold it."""
        return {
            "n_replies": self.n_replies,
            "n_echoes": self.n_echoes,
            "said": dict(self.said),
            "n_silent": self.n_silent,
            "credit": self.credit,
            **(
                {"anchors": {name: list(pair) for name, pair in self.pairs.items()}}
                if self.pairs
                else {}
            ),
            **({"n_thoughts": self.n_thoughts} if self.n_thoughts else {}),
            **({"starts": dict(self.starts)} if self.starts else {}),
        }

    @classmethod
    def over(cls, records: Iterable[CaptionRecord]) -> Evidence:
        """That of all captions together."""
        total = cls()
        for record in records:
            item = cast("Mapping[str, Any]", record.evidence)
            if item:
                total.n_replies += item["n_replies"]
                total.n_echoes += item["n_echoes"]
                total.said.update(item["said"])
                total.n_silent += item["n_silent"]
                total.credit += item["credit"]
                total.n_thoughts += item.get("n_thoughts", 0)
                total.starts.update(item.get("starts", {}))
                total.pairs |= {name: tuple(pair) for name, pair in item.get("anchors", {}).items()}
        return total


def evidence_of(
    check: JudgeCheck[Any, Any] | None,
    judged: Iterable[tuple[object, Judgement | None]],
    *,
    examples: Sequence[str],
    pairs: Mapping[str, Pair],
) -> Evidence:
    """What one caption's judgements say of the judge.

    Args:
        check: The benchmark's, ``None`` where it has none.
        judged: Questions with their judgements.
        examples: Those of the judge's prompts.
        pairs: What the anchors that were asked with this caption were given.
    """
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


def doubt_names(records: Sequence[CaptionRecord]) -> tuple[Doubt, ...]:
    """What speaks against the judge of these captions, for the signature."""
    return tuple(name for name, _ in _doubts(records))


def doubts_of(records: Sequence[CaptionRecord]) -> list[str]:
    """What speaks against the judge of a task, a sentence or two of at most 300 characters each."""
    return [sentence for _, sentence in _doubts(records)]


def _doubts(records: Sequence[CaptionRecord]) -> Iterator[tuple[Doubt, str]]:
    evidence = Evidence.over(records)
    told, nothing = _credits(list(evidence.pairs.values()))
    reads = None if told is None or nothing is None else _tells_apart(told, nothing)
    echoes = evidence.n_echoes / max(1, evidence.n_replies)
    most = _MOST_ECHOES if reads is None else _MOST_ECHOES_OF_THE_BLIND
    if evidence.n_replies >= _LEAST_REPLIES and echoes >= most and not reads:
        yield (
            "echo",
            f"{echoes:.0%} of {evidence.n_replies:,} replies are the example in the prompt: the "
            f"judge repeats it and does not judge. {_HELP}",
        )
    start, n_same = max(evidence.starts.items(), key=lambda item: item[1], default=("", 0))
    thoughts = max(evidence.n_thoughts, n_same) / max(1, evidence.n_replies)
    most_thoughts = _MOST_THOUGHTS if evidence.n_thoughts >= n_same else _MOST_STARTS
    if evidence.n_replies >= _LEAST_REPLIES and thoughts >= most_thoughts:
        begin = f", {start!r:.40} at their beginning" if start else ""
        yield (
            "reasoning",
            f"{thoughts:.0%} of the judge's answers look like reasoning{begin}, which is taken for "
            "the answer. Serve the model with a parser of its reasoning, or turn that off "
            "(LMMS_CAPTIONS_JUDGE_EXTRA_BODY).",
        )
    word, share = _usual(evidence.said)
    if share >= _CONSTANT and not reads and (reads is False or _is_suspect(evidence, word)):
        yield (
            "constant",
            f"the judge says {word!r:.60} of {share:.1%} of {evidence.said.total():,} questions, "
            f"and nothing shows that it reads captions. {_HELP}",
        )
    if reads is False:
        yield (
            "blind",
            f"the judge's answers hardly depend on the caption: of {len(evidence.pairs)} questions "
            f"it credits {told:.0%} where the caption gives the answer, {nothing:.0%} where it "
            f"says nothing. {_HELP}",
        )
    unread = _share_unreadable(records)
    if evidence.pairs and reads is None and unread >= _MUCH_UNREAD:
        yield (
            "unread",
            f"{unread:.0%} of the judge's replies cannot be read, nor most of those that would "
            f"show whether it reads captions. {_HELP}",
        )


def _share_unreadable(records: Sequence[CaptionRecord]) -> float:
    """Share of questions whose reply came and could not be read."""
    n_unread = sum(
        n
        for record in records
        for reason, n in record.reasons.items()
        if kind_of(reason) == "unreadable"
    )
    return n_unread / max(1, sum(record.n_questions for record in records))


def _credits(pairs: Sequence[Pair]) -> tuple[float | None, float | None]:
    """Mean credit of both kinds of caption, over the pairs that have both."""
    read = [(told, nothing) for told, nothing in pairs if told is not None and nothing is not None]
    if len(read) < max(_LEAST_PAIRS, len(pairs) / 2):
        return None, None
    return fmean(told for told, _ in read), fmean(nothing for _, nothing in read)


def _tells_apart(told: float, nothing: float) -> bool:
    return told - nothing >= _LEAST_DIFFERENCE and nothing < _MOST_FOR_NOTHING


def _usual(said: Counter[str]) -> tuple[str, float]:
    """What was said most often, and its share; of too few replies none."""
    n_said = said.total()
    if n_said < _LEAST_SAID:
        return "", 0.0
    ((word, n_times),) = said.most_common(1)
    return word, n_times / n_said


def _is_suspect(evidence: Evidence, word: str) -> bool:
    """Whether saying one word speaks against the judge without anchors.

    Neither what bad captions earn does, nor what perfect ones do.
    """
    n_said = evidence.said.total()
    is_silent = evidence.n_silent >= evidence.said[word]
    return not is_silent and evidence.credit < _NEARLY_RIGHT * n_said
