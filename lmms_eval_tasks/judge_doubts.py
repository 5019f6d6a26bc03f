"""Signs of a judge that repeats the prompt, gives one verdict, or does not read captions.

Each caption's record counts its judgements, the *evidence*. Over all captions of a task, it tells a
judge that does not judge from one that is asked about bad captions.
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
from lmms_eval_captions.lmms_eval_tasks.judge_check import JudgeCheck, Pair
from lmms_eval_captions.lmms_eval_tasks.reasons import kind_of
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord, Item

Doubt = Literal["echo", "constant", "blind", "unread", "reasoning"]
"""Replies are the prompt's example; nearly all questions get one verdict; captions are not read;
many replies cannot be read, most of the anchors' among them; answers of a first step are the
judge's reasoning."""

_LEAST_REPLIES: Final = 20
_MOST_ECHOES: Final = 0.9
"""Share of replies that are the prompt's example. Some honest judges spell each "yes" like the
example, so that good captions come near."""
_MOST_ECHOES_OF_THE_BLIND: Final = 0.5
"""The same if anchors show that captions are not read."""
_LEAST_SAID: Final = 50
_CONSTANT: Final = 0.98
"""Share of one verdict."""
_NEARLY_RIGHT: Final = 0.9
"""Mean credit above which a single verdict may be that of a judge of perfect captions."""
_LEAST_PAIRS: Final = 4
_LEAST_DIFFERENCE: Final = 0.3
"""Between the mean credits of captions that give the answer and of one that says nothing."""
_MOST_FOR_NOTHING: Final = 0.5
"""Mean credit of a caption that says nothing; yes-no questions may be guessed right."""
_MUCH_UNREAD: Final = 0.1
"""Share of unreadable questions from which on unreadable anchors are no accident."""
_THOUGHT: Final = re.compile(
    r"\W*(?:thoughts?\b|thinking\b|think\b|reasoning\b|analysis\b|let me (?:think|see|analy)"
    r"|(?:okay|alright|hmm)\b,|(?:we|i) need to\b|the user\b|first, i\b)",
    re.IGNORECASE,
)
"""Beginning of reasoning, with the marker of its model family or without."""
_LONG: Final = 300
"""Characters from which on an answer is no short sentence or phrase, as was asked for."""
_MOST_THOUGHTS: Final = 0.2
_MOST_STARTS: Final = 0.5
"""Share of answers that are long and begin with the same words."""
_HELP: Final = "Do not use this number; name another judge (LMMS_CAPTIONS_JUDGE)."
_EXAMPLE: Final = re.compile(r"\bfor example\b[^:\n]*:[ \t]*(\S[^\n]*)", re.IGNORECASE)
_IGNORED: Final = re.compile(r"[\s`'\"]+")
_LEAST_CHARS: Final = 8
"""Honest replies hold shorter examples, such as ``yes``."""


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

    def to_item(self) -> Item:
        """Return the counts as a caption's record holds them."""
        item: dict[str, object] = {
            "n_replies": self.n_replies,
            "n_echoes": self.n_echoes,
            "said": dict(self.said),
            "n_silent": self.n_silent,
            "credit": self.credit,
        }
        rare = {
            "anchors": {name: list(pair) for name, pair in self.pairs.items()},
            "n_thoughts": self.n_thoughts,
            "starts": dict(self.starts),
        }
        return item | {name: value for name, value in rare.items() if value}

    @classmethod
    def over(cls, records: Iterable[CaptionRecord]) -> Evidence:
        """Return the sum over captions."""
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
    """Count one caption's judgements.

    Args:
        check: The benchmark's, ``None`` if it has none.
        judged: Questions with their judgements.
        examples: Examples in the judge's prompts.
        pairs: Credits of the anchors that were asked with this caption.
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
    """Return the doubts about the judge of these captions, for the signature."""
    return tuple(name for name, _ in _doubts(records))


def doubts_of(records: Sequence[CaptionRecord]) -> list[str]:
    """Return the doubts about a task's judge, one or two sentences of at most 300 characters."""
    return [sentence for _, sentence in _doubts(records)]


def _doubts(records: Sequence[CaptionRecord]) -> Iterator[tuple[Doubt, str]]:
    evidence = Evidence.over(records)
    informed, blank = _credits(list(evidence.pairs.values()))
    reads = None
    if informed is not None and blank is not None:
        reads = informed - blank >= _LEAST_DIFFERENCE and blank < _MOST_FOR_NOTHING
    has_enough = evidence.n_replies >= _LEAST_REPLIES
    echoes = evidence.n_echoes / max(1, evidence.n_replies)
    most = _MOST_ECHOES if reads is None else _MOST_ECHOES_OF_THE_BLIND
    if has_enough and echoes >= most and not reads:
        yield (
            "echo",
            f"{echoes:.0%} of {evidence.n_replies:,} replies are the example in the prompt: the "
            f"judge repeats it and does not judge. {_HELP}",
        )
    start, n_same = max(evidence.starts.items(), key=lambda item: item[1], default=("", 0))
    thoughts = max(evidence.n_thoughts, n_same) / max(1, evidence.n_replies)
    if has_enough and thoughts >= (
        _MOST_THOUGHTS if evidence.n_thoughts >= n_same else _MOST_STARTS
    ):
        begin = f", {start!r:.40} at their beginning" if start else ""
        yield (
            "reasoning",
            f"{thoughts:.0%} of the judge's answers look like reasoning{begin}, which is taken for "
            "the answer. Serve the model with a parser of its reasoning, or turn that off "
            "(LMMS_CAPTIONS_JUDGE_EXTRA_BODY).",
        )
    n_said = evidence.said.total()
    if n_said >= _LEAST_SAID and not reads:
        ((verdict, n_times),) = evidence.said.most_common(1)
        # Without anchors, neither the verdict of bad captions nor that of perfect ones is a sign.
        is_sign = evidence.n_silent < n_times and evidence.credit < _NEARLY_RIGHT * n_said
        if n_times / n_said >= _CONSTANT and (reads is False or is_sign):
            yield (
                "constant",
                f"the judge says {verdict!r:.60} of {n_times / n_said:.1%} of {n_said:,} "
                f"questions, and nothing shows that it reads captions. {_HELP}",
            )
    if reads is False:
        yield (
            "blind",
            f"the judge's answers hardly depend on the caption: of {len(evidence.pairs)} questions "
            f"it credits {informed:.0%} where the caption gives the answer, {blank:.0%} where it "
            f"says nothing. {_HELP}",
        )
    unread = _share_unreadable(records)
    if evidence.pairs and reads is None and unread >= _MUCH_UNREAD:
        yield (
            "unread",
            f"{unread:.0%} of the judge's replies cannot be read, nor most of those that would "
            f"show whether it reads captions. {_HELP}",
        )


def _credits(pairs: Sequence[Pair]) -> tuple[float | None, float | None]:
    """Mean credits of both kinds of caption, over the pairs that have both."""
    read = [
        (informed, blank) for informed, blank in pairs if informed is not None and blank is not None
    ]
    if len(read) < max(_LEAST_PAIRS, len(pairs) / 2):
        return None, None
    informed, blank = zip(*read, strict=True)
    return fmean(informed), fmean(blank)


def _share_unreadable(records: Sequence[CaptionRecord]) -> float:
    """Share of questions with a reply that cannot be read."""
    n_unread = sum(
        n
        for record in records
        for reason, n in record.reasons.items()
        if kind_of(reason) == "unreadable"
    )
    return n_unread / max(1, sum(record.n_questions for record in records))
