"""What is verified: the benchmarks that ask the same judge, each with its anchors."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.chain import Chain
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.facts import (
    facts_digest,
    planted_facts,
)
from lmms_eval_captions.lmms_eval_tasks.planted_facts import PlantedFact, Verification
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks, our_benchmarks, tasks_of
from lmms_eval_captions.lmms_eval_tasks.verified_judges import prompt_fields, prompts_digest

TEMPERATURE: Final = 0.0
"""At which anchors are asked, whatever the benchmark's own: differences are to be the judge's, and
not chance."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One benchmark whose judge is verified."""

    name: str
    benchmark: Benchmark[Any, Any]
    config: JudgeConfig
    """At temperature 0, in one judge run."""
    facts: tuple[PlantedFact, ...]

    @property
    def verification(self) -> Verification[Any, Any]:
        """How it asks about planted facts."""
        found = self.benchmark.verification
        if found is None:
            raise SettingsError(f"judge verify: {self.name} has no anchors")
        return found

    @property
    def anchors(self) -> str:
        """Digest of the planted facts."""
        return facts_digest(self.facts)

    @property
    def prompts(self) -> str:
        """What tells the judge's prompts from others, empty for those of the papers."""
        return prompts_digest(self.benchmark, self.config)

    @property
    def prompt_fields(self) -> dict[str, str]:
        """The same as fields of a signature."""
        return prompt_fields(self.benchmark, self.config)

    def in_order(self, nonce: int) -> list[PlantedFact]:
        """The facts in the order in which they are asked, another one for another nonce."""
        facts = list(self.facts)
        random.Random(f"{nonce} {self.name}").shuffle(facts)  # noqa: S311 - no secret # nosec B311
        return facts

    def chain(self, fact: PlantedFact, nonce: int) -> Chain[Sequence[Any]]:
        """What asks about a fact, by the benchmark's own protocol."""
        anchor = self.verification.anchor(fact)
        return self.benchmark.ask(anchor.question, anchor.caption, config=self.config, run=nonce)

    def expected(self, fact: PlantedFact) -> str:
        """The verdict that is right."""
        return self.verification.anchor(fact).verdict

    def said(self, judgements: Sequence[Any]) -> str | None:
        """The judge's verdict, ``None`` where there is none."""
        (judgement,) = judgements
        return self.verification.said(judgement)

    def number(self, judgements: Sequence[Any]) -> float | None:
        """A finer reading of it, where the benchmark has one."""
        (judgement,) = judgements
        return self.verification.numbers(judgement)


def subjects_of(names: str | None, settings: JudgeSettings) -> list[Subject]:
    """The benchmarks that are verified.

    Args:
        names: Benchmarks, tasks and groups, separated by commas; without, all whose judge is the
            one that the settings name, or that of the first of them.
        settings: Whom to ask.

    Raises:
        SettingsError: If a name is not known, or has no anchors, or they ask several judges.
    """
    chosen = _named(names) if names else _all()
    subjects = [_subject(name, benchmark, settings) for name, benchmark in chosen.items()]
    model = subjects[0].config.model
    others = {each.name: each.config.model for each in subjects if each.config.model != model}
    if names and others:
        shown = ", ".join(f"{name} by {other}" for name, other in others.items())
        raise SettingsError(
            f"--tasks: expected benchmarks of one judge, got {subjects[0].name} by {model}, "
            f"{shown}; verify each judge by itself, or name one with LMMS_CAPTIONS_JUDGE"
        )
    if not subjects[0].config.asks_endpoint:
        raise SettingsError(
            f"LMMS_CAPTIONS_JUDGE: expected a judge behind an endpoint, got {model!r}, which is "
            "the offline stand-in: there is nothing to verify"
        )
    return [each for each in subjects if each.config.model == model]


def _subject(name: str, benchmark: Benchmark[Any, Any], settings: JudgeSettings) -> Subject:
    config = replace(benchmark.judge_config(settings), temperature=TEMPERATURE, runs=1)
    return Subject(name, benchmark, config, planted_facts())


def _all() -> dict[str, Benchmark[Any, Any]]:
    return {
        name: benchmark
        for name, benchmark in all_benchmarks().items()
        if benchmark.verification is not None
    }


def _named(names: str) -> dict[str, Benchmark[Any, Any]]:
    """Benchmarks by their own names, or those of their tasks and groups."""
    known = _all()
    chosen: dict[str, Benchmark[Any, Any]] = {}
    for text in filter(None, (part.strip() for part in names.split(","))):
        if text in known:
            chosen[text] = known[text]
            continue
        for task in tasks_of(text):
            benchmark = our_benchmarks()[task]
            name = next((name for name, each in known.items() if each is benchmark), None)
            if name is None:
                raise SettingsError(
                    f"--tasks: {task} has no anchors; expected any of {', '.join(known)}, or a "
                    "task of one of them"
                )
            chosen[name] = benchmark
    if not chosen:
        raise SettingsError(f"--tasks: expected any of {', '.join(known)}, got {names!r:.80}")
    return chosen
