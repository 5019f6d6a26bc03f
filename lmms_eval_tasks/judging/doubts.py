"""Doubts about the numbers of a task: a judge that does not judge, captions that are none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Final, Literal

from lmms_eval_captions.lmms_eval_tasks.judge_check import Evidence, Pair
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord

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
_MOST_THOUGHTS: Final = 0.2
_MOST_STARTS: Final = 0.5
"""Share of answers that are long and begin with the same words."""
_HELP: Final = "Do not use this number; name another judge (LMMS_CAPTIONS_JUDGE)."
_MOST_CHARS: Final = 400
"""A longer text is a caption, whatever it begins with."""
_SHOWN_CHARS: Final = 60
_FEWEST: Final = 5
"""Captions from which on it matters that most of them are the same."""
_ERROR: Final = re.compile(
    r"""(?xi)
    # "nan", "None", "[object Object]": a table or a program without a text
    \W* (?: nan | none | null | n/?a | undefined | \[object\ \w+\] ) \W* \Z
    # "Error: 429 Too Many Requests", "RuntimeError: CUDA out of memory"
    | \W* (?: traceback\ \( | [\w.]*(?:error|exception) \s* [:(] | (?:http|error)\ ?[45]\d\d\b )
    # "429 Too Many Requests"
    | \W* [45]\d\d \s+ (?: too\ many | internal\ | bad\ | service\ | unauthori | forbidden )
    | .* (?: too\ many\ requests | rate\ limit\ (?:exceeded|reached) | cuda\ out\ of\ memory
           | exceeded\ your\ current\ quota | internal\ server\ error | maximum\ context\ length )
    # "I'm sorry, but I can't assist with that."
    | \W* (?: (?:i['’]?m|i\ am)\ (?:so\ )?sorry | sorry, | i\ apologi[sz]e | as\ an\ ai\b
            | (?:unfortunately,\ )? i(?:['’]?m|\ am)\ (?:unable|not\ able)\ to
            | i\ (?:can\ ?not|can['’]?t)\ (?:help|assist|see|view|watch|describe|provide|process) )
    """
)


def doubts_of(records: Sequence[CaptionRecord]) -> dict[Doubt, str]:
    """Return the doubts about a task's judge, each in at most 300 characters."""
    return dict(_doubts(records))


def _doubts(records: Sequence[CaptionRecord]) -> Iterator[tuple[Doubt, str]]:
    evidence = Evidence()
    for record in records:
        evidence.add(record.evidence)
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
    n_unread = sum(record.kinds.get("unreadable", 0) for record in records)
    unread = n_unread / max(1, sum(record.n_questions for record in records))
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


def no_caption_at_all(caption: str) -> str:
    """Return the beginning of a text that cannot be a caption, else nothing."""
    is_meant = len(caption) <= _MOST_CHARS and _ERROR.match(caption) is not None
    return " ".join(caption[:_SHOWN_CHARS].split()) if is_meant else ""


def suspicious(records: Sequence[CaptionRecord]) -> tuple[int, str]:
    """Return how many captions of a task cannot be captions, and why in half a sentence."""
    digests = Counter(record.caption_digest for record in records if record.caption_digest)
    digest, n_same = digests.most_common(1)[0] if digests else ("", 0)
    is_one_text = len(records) >= _FEWEST and 2 * n_same > len(records)
    errors = [record for record in records if record.suspicious]
    doubted = [r for r in records if r.suspicious or (is_one_text and r.caption_digest == digest)]
    if not doubted:
        return 0, ""
    why = [f"such as {errors[0].suspicious!r}"] if errors else []
    why += [f"{n_same:,} are the same text"] if is_one_text else []
    return len(doubted), " and ".join(why)
