"""Anchors: questions about captions with planted facts, whose right verdicts are known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.request import Chain
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.planted_facts import PlantedFact, Verification
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks, our_benchmarks, tasks_of

_FILE: Final = "anchors.jsonl"


@cache
def planted_facts() -> tuple[PlantedFact, ...]:
    """The 60 facts of ``anchors.jsonl``; half of the captions state theirs."""
    lines = resources.files(__package__).joinpath(_FILE).read_text(encoding="utf-8").splitlines()
    rows = map(json.loads, lines)
    lists = ("options", "references")
    return tuple(PlantedFact(**{**row, **{key: tuple(row[key]) for key in lists}}) for row in rows)


@dataclass(frozen=True, slots=True)
class Subject:
    """A benchmark whose judge is verified."""

    name: str
    benchmark: Benchmark[Any, Any]
    config: JudgeConfig
    """At temperature 0, in one judge run: differences are the judge's and not chance."""
    verification: Verification[Any, Any]

    @property
    def prompts(self) -> str:
        """Protocol version and digests of custom prompts; verdicts of others do not compare."""
        names = {name for task in self.benchmark.tasks.values() for name in task.judge_prompts}
        custom = self.config.prompts.extras(dict.fromkeys(sorted(names)))
        return ",".join([str(self.config.protocol), *custom.values()])

    def chain(self, fact: PlantedFact) -> Chain[Sequence[Any]]:
        """The benchmark's own requests about a fact."""
        anchor = self.verification.anchor(fact)
        return self.benchmark.ask(anchor.question, anchor.caption, config=self.config, run=0)

    def right_verdict(self, fact: PlantedFact) -> str:
        """The verdict that follows from how the caption was written."""
        return self.verification.anchor(fact).verdict


def subjects_of(names: str | None, settings: JudgeSettings) -> list[Subject]:
    """Return the benchmarks to verify, all of one judge.

    Args:
        names: Benchmarks, tasks and groups, separated by commas; ``None`` for all that ask the
            judge of the settings, or that of the first benchmark.
        settings: The judge's settings.

    Raises:
        SettingsError: If a name is unknown or has no anchors, if the benchmarks ask several
            judges, or if the judge is the offline stand-in.
    """
    subjects = [
        _subject(name, benchmark, settings) for name, benchmark in _benchmarks(names).items()
    ]
    model = subjects[0].config.model
    others = {each.name: each.config.model for each in subjects if each.config.model != model}
    if names and others:
        shown = ", ".join(f"{name} by {other}" for name, other in others.items())
        raise SettingsError(
            f"--tasks: expected benchmarks of one judge, got {subjects[0].name} by {model}, "
            f"{shown}; verify each judge separately, or name one with LMMS_CAPTIONS_JUDGE"
        )
    if not subjects[0].config.asks_endpoint:
        raise SettingsError(
            f"LMMS_CAPTIONS_JUDGE: expected a judge behind an endpoint, got {model!r}, the "
            "offline stand-in: there is nothing to verify"
        )
    return [each for each in subjects if each.config.model == model]


def _subject(name: str, benchmark: Benchmark[Any, Any], settings: JudgeSettings) -> Subject:
    config = replace(benchmark.judge_config(settings), temperature=0.0, runs=1)
    verification = benchmark.verification
    if verification is None:
        raise SettingsError(f"judge verify: {name} has no anchors")
    return Subject(name, benchmark, config, verification)


def _benchmarks(names: str | None) -> dict[str, Benchmark[Any, Any]]:
    known = {name: each for name, each in all_benchmarks().items() if each.verification is not None}
    if names is None:
        return known
    chosen: dict[str, Benchmark[Any, Any]] = {}
    for text in filter(None, (part.strip() for part in names.split(","))):
        benchmarks = (
            [known[text]] if text in known else [our_benchmarks()[task] for task in tasks_of(text)]
        )
        for benchmark in benchmarks:
            name = next((name for name, each in known.items() if each is benchmark), None)
            if name is None:
                raise SettingsError(
                    f"--tasks: {text} has no anchors; expected any of {', '.join(known)}, or one "
                    "of their tasks"
                )
            chosen[name] = benchmark
    if not chosen:
        raise SettingsError(f"--tasks: expected any of {', '.join(known)}, got {names!r:.80}")
    return chosen
