"""The toy benchmark: a caption's own facts against the reference, the reference's against it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from lmms_eval_captions.judges.endpoint.request import Asked, Reply, Usage
from lmms_eval_captions.judges.protocols.asking import recall, request_of
from lmms_eval_captions.judges.verdict import Judgement

if TYPE_CHECKING:
    from lmms_eval_captions.judges.endpoint.request import Ask, Chain
    from lmms_eval_captions.judges.protocols.asking import JudgeConfig

FactVerdict = Literal["supported", "contradicted", "absent", "covered", "missed"]
"""A caption's fact is supported by the reference, contradicted or absent; a reference's fact is
covered by the caption, or missed."""

_OF_CAPTION: Final[dict[str, FactVerdict]] = {
    "yes": "supported", "contradicted": "contradicted", "no": "absent",
}  # fmt: skip
_OF_REFERENCE: Final[dict[str, FactVerdict]] = {
    "yes": "covered", "contradicted": "missed", "no": "missed",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reference:
    """All facts of a video, which are the question about it."""

    facts: tuple[tuple[str, str], ...]
    """Kind and fact of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactJudgement(Judgement):
    """One fact, looked for in the other text."""

    fact: str
    kind: str
    """The reference's, or ``extracted``."""
    verdict: FactVerdict | None
    """``None`` is unscored."""


def judge_facts(
    question: Reference, caption: str, *, config: JudgeConfig, run: int
) -> Chain[Sequence[FactJudgement]]:
    """Return both directions for one caption; a reply tells how many judgements there are."""

    async def chain(ask: Ask) -> Sequence[FactJudgement]:
        text = " ".join(fact for _, fact in question.facts)
        request = request_of(
            "toy.facts",
            config.prompts.load("toy.facts").render(caption=caption),
            config=config,
            seed=run,
            stand_in=lambda: caption.replace(". ", ".\n"),
        )
        extracted = await ask(request, _read_facts)
        look = partial(_look, ask, config=config, run=run)
        return await asyncio.gather(
            *(look(text, fact, "extracted", _OF_CAPTION) for fact in extracted.value or ()),
            *(look(caption, fact, kind, _OF_REFERENCE) for kind, fact in question.facts),
            *([_unread(extracted, run)] if extracted.value is None else []),
        )

    return chain


def silent_facts(question: Reference, run: int) -> list[FactJudgement]:
    """Judge an empty caption: it has no fact, and misses every one of the reference."""
    return [
        FactJudgement(run=run, fact=fact, kind=kind, verdict="missed")
        for kind, fact in question.facts
    ]


async def _look(
    ask: Ask,
    text: str,
    fact: str,
    kind: str,
    labels: dict[str, FactVerdict],
    *,
    config: JudgeConfig,
    run: int,
) -> FactJudgement:
    request = request_of(
        "toy.verdict",
        config.prompts.load("toy.verdict").render(text=text, fact=fact),
        config=config,
        seed=run,
        stand_in=lambda: "yes" if recall(fact, text) > 0.5 else "no",
    )
    asked: Asked[FactVerdict] = await ask(request, lambda reply: labels.get(reply.text.strip()))
    return FactJudgement(
        run=run,
        reply=asked.reply,
        reason=asked.reason,
        cached=asked.cached,
        usage=asked.usage,
        fact=fact,
        kind=kind,
        verdict=asked.value,
    )


async def _unread(asked: Asked[list[str]], run: int) -> FactJudgement:
    return FactJudgement(
        run=run,
        reply=asked.reply,
        reason=asked.reason,
        cached=asked.cached,
        usage=Usage(),
        fact="",
        kind="extracted",
        verdict=None,
    )


def _read_facts(reply: Reply) -> list[str] | None:
    return [line.strip() for line in reply.text.splitlines() if line.strip()] or None
