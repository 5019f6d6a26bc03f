"""What a judge's replies look like: length, thoughts before the answer, refusals, what is cut."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from lmms_eval_captions.judges.endpoint.answers.reasoning import strip_reasoning
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.asking import HeardReply
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.findings import Finding, unknown

_REFUSAL: Final = re.compile(
    r"^\W*(?:i(?:'|\u2019)?m sorry|i am sorry|i cannot|i can(?:'|\u2019)t|i am unable|as an ai)\b",
    re.IGNORECASE,
)
_MUCH: Final = 0.1
"""Share of replies that makes a difference."""
_LEAST_REPLIES: Final = 30
"""By fewer replies nothing is known of a share of them."""
_LENGTHS: Final = (0.5, 2.0)
"""Mean length beside the record's, between which it is the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepForm:
    """What the first replies to one prompt look like; shares are in [0, 1]."""

    n: int
    readable: float
    chars: float
    """Mean length in characters."""
    reasoning: float
    """Share that holds thoughts before the answer."""
    refused: float
    cut: float
    """Share that ended at the limit of tokens."""


def forms_of(heard: Iterable[HeardReply]) -> dict[str, StepForm]:
    """What replies look like, by prompt; fresh samples after unreadable ones do not count."""
    by_step: dict[str, list[HeardReply]] = {}
    for each in heard:
        if each.attempt == 0:
            by_step.setdefault(each.step, []).append(each)
    return {step: _form(replies) for step, replies in by_step.items()}


def _form(replies: list[HeardReply]) -> StepForm:
    texts = [each.reply.text for each in replies]
    return StepForm(
        n=len(replies),
        readable=fmean(each.is_readable for each in replies),
        chars=fmean(map(len, texts)),
        reasoning=fmean(strip_reasoning(text) != text.strip() for text in texts),
        refused=fmean(bool(_REFUSAL.match(text)) for text in texts),
        cut=fmean(each.reply.finish_reason == "length" for each in replies),
    )


def form_findings(
    now: Mapping[str, StepForm], before: Mapping[str, StepForm] | None
) -> list[Finding]:
    """What the look of replies says of a judge.

    Args:
        now: By prompt.
        before: The same of the judge that is trusted, ``None`` without one.
    """
    few = {step for step, form in now.items() if form.n < _LEAST_REPLIES}
    few |= {step for step, form in (before or {}).items() if form.n < _LEAST_REPLIES}
    cut = {step: form.cut for step, form in now.items() if form.cut > _MUCH}
    found = []
    for step, share in cut.items():
        found.append(
            Finding(
                name="output cut",
                state="unknown" if now[step].n < _LEAST_REPLIES else "differs",
                evidence=f"{share:.0%} of {now[step].n} replies to {step} end at the limit",
                advice="look for a limit of output tokens at the server, or in a proxy before it; "
                "a judge that reasons needs more than the benchmark allows",
            )
        )
    by_step = {
        step: _differences(step, form, before[step])
        for step, form in now.items()
        if before is not None and step in before
    }
    differences = [words for step, each in by_step.items() if step not in few for words in each]
    doubtful = [words for step, each in by_step.items() if step in few for words in each]
    if doubtful and not differences:
        words = f"by fewer than {_LEAST_REPLIES} replies: {'; '.join(doubtful)}"
        return [*found, unknown("form of replies", words)]
    if differences:
        return [
            *found,
            Finding(
                name="form of replies",
                state="differs",
                evidence="; ".join(differences),
                advice="another model, chat template or system prompt answers: compare what the "
                "two servers have loaded",
            ),
        ]
    shown = ", ".join(
        f"{step}: {form.readable:.0%} readable, {form.chars:.0f} characters"
        for step, form in now.items()
    )
    return [*found, Finding(name="form of replies", state="ok", evidence=shown)] if shown else found


def _differences(step: str, now: StepForm, before: StepForm) -> list[str]:
    shares = {
        "can be read": (now.readable, before.readable),
        "hold thoughts": (now.reasoning, before.reasoning),
        "are refusals": (now.refused, before.refused),
        "are cut": (now.cut, before.cut),
    }
    words = [
        f"{new:.0%} of the replies to {step} {what} (were {old:.0%})"
        for what, (new, old) in shares.items()
        if abs(new - old) > _MUCH
    ]
    ratio = now.chars / before.chars if before.chars else 1.0
    if not _LENGTHS[0] <= ratio <= _LENGTHS[1]:
        words.append(f"replies to {step} have {now.chars:.0f} characters (had {before.chars:.0f})")
    return words
