"""What of the probes is compared with an earlier verification's, and what differs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.findings import Finding, unknown

Seed = Literal["honoured", "ignored", "refused", "unknown"]
"""What an endpoint does with a request's seed."""


@dataclass(frozen=True, slots=True)
class ProbeFacts:
    """What of the probes is compared with an earlier verification's."""

    tokens: dict[str, int] = field(default_factory=dict)
    """Text to the tokens that the endpoint counts; without those that it does not count."""
    seed: Seed = "unknown"
    has_logprobs: bool | None = None
    """``None`` where nobody knows."""


def compared_facts(now: ProbeFacts, before: ProbeFacts) -> list[Finding]:
    """What differs from an earlier verification.

    Args:
        now: Of this one.
        before: Of the one that is trusted.
    """
    return [_tokenizer(now.tokens, before.tokens), *_changes(now, before)]


def _tokenizer(now: dict[str, int], before: dict[str, int]) -> Finding:
    common = [name for name in before if name in now]
    if len(common) < 2:
        return unknown("tokenizer", "one of the endpoints does not count tokens")
    more = {name: now[name] - before[name] for name in common}
    if not any(more.values()):
        return Finding(
            name="tokenizer",
            state="ok",
            evidence=f"{len(common)} texts take exactly as many tokens as in the record",
        )
    if len(set(more.values())) == 1:
        n_more = more[common[0]]
        return Finding(
            name="tokenizer",
            state="note",
            evidence=f"every request takes {n_more:+} tokens beside those of the record: another "
            "chat template, or a system prompt that someone adds",
            advice="compare the chat templates of the two servers",
        )
    shown = ", ".join(f"{name} {now[name]} (was {before[name]})" for name in common)
    return Finding(
        name="tokenizer",
        state="differs",
        evidence=f"texts take another number of tokens than in the record: {shown}",
        advice="another tokenizer is another model: look at what the server has loaded",
    )


def _changes(now: ProbeFacts, before: ProbeFacts) -> list[Finding]:
    found = []
    if before.has_logprobs and now.has_logprobs is False:
        found.append(
            Finding(
                name="logprobs",
                state="differs",
                evidence="the record has log-probabilities, this endpoint gives none",
                advice="scores of G-VEval would be plain numbers: ask an endpoint that gives them",
            )
        )
    if before.seed == "honoured" and now.seed == "ignored":
        found.append(
            Finding(
                name="seed",
                state="note",
                evidence="the record's endpoint honoured the seed, this one does not",
            )
        )
    return found
