"""What a verification takes at most, counted before anything is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lmms_eval_captions.judges.endpoint.answers.tokens import CHARS_PER_TOKEN
from lmms_eval_captions.judges.endpoint.prices import Prices
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.counting import (
    CaptionedDocument,
    RequestCounter,
    TaskEstimate,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.probes import Probe
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.recorded import RecordedItem
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.subjects import Subject

_PROBE_OUTPUT_TOKENS = 50
"""Of a reply to a probe, on average."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Requests and tokens, and what they cost."""

    n_calls: int
    input_tokens: float
    output_tokens: float
    usd: float | None
    """``None`` where the model's price is not known."""
    as_of: str
    """Of which day the prices are."""

    @property
    def words(self) -> str:
        """In one sentence."""
        taken = (
            f"at most {self.n_calls:,} requests if every reply can be read (up to 4 times for "
            f"those that cannot), some {self.input_tokens:,.0f} tokens in and "
            f"{self.output_tokens:,.0f} out"
        )
        if self.usd is None:
            return f"{taken}; the price of this judge is not known"
        return f"{taken}: ${self.usd:.2f} by prices of {self.as_of}"


def bounds_of(
    subjects: Sequence[Subject],
    recorded: Iterable[tuple[Subject, Sequence[RecordedItem]]],
    probes: Sequence[Probe],
    *,
    n_heads: int,
    settings: JudgeSettings,
    prices: Prices,
) -> Bounds:
    """What a verification takes where every item is asked.

    Args:
        subjects: Benchmarks with their anchors.
        recorded: Benchmarks with the items of a recorded run.
        probes: Further requests.
        n_heads: Requests for the head of a completion.
        settings: Whose.
        prices: What tokens cost.
    """
    model = subjects[0].config.model
    counter = RequestCounter(prices, settings.cache / "replies")
    counts = [_of_anchors(counter, subject) for subject in subjects]
    counts += [_of_items(counter, subject, items) for subject, items in recorded]
    counter.close()
    n_probes = len(probes) + n_heads
    n_input = sum(each.input_tokens for each in counts)
    n_input += sum(probe.n_chars for probe in probes) / CHARS_PER_TOKEN
    n_output = sum(each.output_tokens for each in counts) + _PROBE_OUTPUT_TOKENS * n_probes
    usd = prices.cost_usd(model, input_tokens=n_input, output_tokens=n_output)
    n_calls = sum(each.n_calls for each in counts) + n_probes
    return Bounds(n_calls, n_input, n_output, usd, prices.as_of)


def _of_anchors(counter: RequestCounter, subject: Subject) -> TaskEstimate:
    anchors = {fact.name: subject.verification.anchor(fact) for fact in subject.facts}
    documents = [
        CaptionedDocument(
            f"{subject.name} {name}", each.caption, [each.question], subject.benchmark.ask
        )
        for name, each in anchors.items()
    ]
    return _counted(counter, subject, documents)


def _of_items(
    counter: RequestCounter, subject: Subject, items: Sequence[RecordedItem]
) -> TaskEstimate:
    unseen = subject.benchmark.unseen
    documents = [
        CaptionedDocument(item.name, item.caption, [unseen(item.question)], subject.benchmark.ask)
        for item in items
    ]
    return _counted(counter, subject, documents)


def _counted(
    counter: RequestCounter, subject: Subject, documents: Sequence[CaptionedDocument]
) -> TaskEstimate:
    counts = TaskEstimate(
        subject.name, subject.config.model, 1, typical_tokens=subject.benchmark.output_tokens
    )
    asyncio.run(counter.count(counts, documents, subject.config, is_real=False))
    return counts
