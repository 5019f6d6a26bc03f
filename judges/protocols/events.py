"""AutoDQ (Tarsier, section 4, arXiv 2407.00634): events of a caption and of a reference.

Events are extracted from the caption; the reference's events are looked for in the caption, and the
caption's in the reference text. Prompts are ours; the authors' are in their repository.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from lmms_eval_captions.judges.endpoint.request import Ask, Asked, Chain, Reply, Request
from lmms_eval_captions.judges.protocols.asking import JudgeConfig, recall, request_of
from lmms_eval_captions.judges.protocols.json_reading import read_json
from lmms_eval_captions.judges.verdict import Judgement

Relation = Literal["entailment", "neutral", "contradiction"]
"""Relation of a text to an event."""
Side = Literal["reference", "caption"]
"""Text that an event is from."""

_LABELS: Final[Mapping[str, Relation]] = {
    "entailment": "entailment", "entailed": "entailment", "entails": "entailment",
    "neutral": "neutral",
    "contradiction": "contradiction", "contradicts": "contradiction",
    "contradicted": "contradiction", "contradictory": "contradiction",
}  # fmt: skip
_KEYS: Final = ("relations", "events", "relation", "relationship", "label")
_MOST_EVENTS: Final = 40
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, slots=True)
class Reference:
    """Question about a caption: the reference's events and its text."""

    events: tuple[str, ...]
    text: str
    kind: str = "events"
    """``events`` or ``objects``, the latter in CaReBench; prompts are named after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventJudgement(Judgement):
    """Relation of one text to an event of the other."""

    kind: str
    """Kind of the :class:`Reference`."""
    event: str
    side: Side
    verdict: Relation | None
    """``None`` is unscored."""


def judge_events(
    question: Reference, caption: str, *, config: JudgeConfig, run: int
) -> Chain[Sequence[EventJudgement]]:
    """Return the chain of one caption: a judgement per event of the reference and of the caption.

    If the caption's events cannot be read, one unscored judgement stands for them.
    """
    caption, text = plain(caption), plain(question.text)

    async def look(ask: Ask, events: Sequence[str], source: str) -> Asked[tuple[Relation, ...]]:
        request = _relation_request(question.kind, events, source, config=config, run=run)
        return await ask(request, lambda reply: read_relations(reply, len(events)))

    async def of_reference(ask: Ask) -> list[EventJudgement]:
        if not question.events:
            return []
        found = await look(ask, question.events, caption)
        return _judgements(question.kind, question.events, "reference", found, run)

    async def of_caption(ask: Ask) -> list[EventJudgement]:
        extracted = await ask(_extract_request(question.kind, caption, config, run), read_events)
        if extracted.value is None:
            outcome = extracted.outcome()
            return [
                EventJudgement(
                    run=run, kind=question.kind, event="", side="caption", verdict=None, **outcome
                )
            ]
        if not extracted.value:
            return []
        found = await look(ask, extracted.value, text)
        return _judgements(question.kind, extracted.value, "caption", found, run, extracted)

    async def chain(ask: Ask) -> Sequence[EventJudgement]:
        recalled, precise = await asyncio.gather(of_reference(ask), of_caption(ask))
        return [*recalled, *precise]

    return chain


def silent_events(question: Reference, run: int) -> list[EventJudgement]:
    """Return the judgements of an empty caption: it entails no event and has none itself."""
    return [
        EventJudgement(
            run=run, kind=question.kind, event=event, side="reference", verdict="neutral"
        )
        for event in question.events
    ]


def plain(text: str) -> str:
    """Return a text in lower case with single quotes, as the authors' script compares texts.

    >>> plain('A "Hero" appears')
    "a 'hero' appears"
    """
    return text.lower().replace('"', "'")


def read_events(reply: Reply) -> tuple[str, ...] | None:
    """Return the events in a reply, ``None`` if it cannot be read.

    >>> read_events(Reply('{"events": ["a man runs", "he falls"]}', "stop"))
    ('a man runs', 'he falls')
    """

    def convert(value: object) -> tuple[str, ...] | None:
        items = _listed(value)
        if items is None or len(items) > _MOST_EVENTS:
            return None
        texts = tuple(item.strip() for item in items if isinstance(item, str))
        return texts if len(texts) == len(items) and all(texts) else None

    return read_json(reply, convert)


def read_relations(reply: Reply, n_events: int) -> tuple[Relation, ...] | None:
    """Return the relation to each event in a reply, ``None`` if it is not one per event.

    >>> read_relations(Reply('["entailment", "Neutral"]', "stop"), 2)
    ('entailment', 'neutral')
    >>> read_relations(Reply('["entailment"]', "stop"), 2) is None
    True
    """

    def convert(value: object) -> tuple[Relation, ...] | None:
        labels = [_label(item) for item in _listed(value) or ()]
        known = tuple(label for label in labels if label is not None)
        return known if len(known) == len(labels) == n_events else None

    return read_json(reply, convert)


def _listed(value: object) -> list[object] | None:
    """Return a list, or the list that is an object's only value under a known key."""
    if isinstance(value, dict):
        lists = [value[key] for key in _KEYS if isinstance(value.get(key), list)]
        return lists[0] if len(lists) == 1 else None
    return value if isinstance(value, list) else None


def _label(item: object) -> Relation | None:
    if isinstance(item, dict):
        named = {item[key] for key in _KEYS if isinstance(item.get(key), str)}
        item = named.pop() if len(named) == 1 else None
    return _LABELS.get(item.strip().strip(".").lower()) if isinstance(item, str) else None


def _judgements(
    kind: str,
    events: Sequence[str],
    side: Side,
    asked: Asked[tuple[Relation, ...]],
    run: int,
    *earlier: Asked[tuple[str, ...]],
) -> list[EventJudgement]:
    """Return a judgement per event; the first one carries the requests' usage."""
    outcome = asked.outcome(*earlier)
    labels = asked.value or (None,) * len(events)
    judged = []
    for index, (event, label) in enumerate(zip(events, labels, strict=True)):
        own = outcome if index == 0 else {**outcome, "usage": type(outcome["usage"])()}
        judged.append(
            EventJudgement(run=run, kind=kind, event=event, side=side, verdict=label, **own)
        )
    return judged


def _extract_request(kind: str, caption: str, config: JudgeConfig, run: int) -> Request:
    prompt = f"{kind}_extract"
    sentences = [sentence for sentence in _SENTENCE.split(caption) if sentence.strip()][:10]
    return request_of(
        prompt,
        config.prompts.load(prompt).render(caption=caption),
        config=config,
        seed=run,
        stand_in=lambda: json.dumps(sentences),
    )


def _relation_request(
    kind: str, events: Sequence[str], text: str, *, config: JudgeConfig, run: int
) -> Request:
    prompt = f"{kind}_relation"
    listed = "\n".join(f"{number}. {event}" for number, event in enumerate(events, 1))

    def stand_in() -> str:
        found = (recall(event, text) >= 0.5 for event in events)
        return json.dumps(["entailment" if is_found else "neutral" for is_found in found])

    return request_of(
        f"{prompt}:{len(events)}",
        config.prompts.load(prompt).render(text=text, events=listed, n=str(len(events))),
        config=config,
        seed=run,
        stand_in=stand_in,
    )
