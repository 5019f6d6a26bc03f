"""Anchors: questions about captions with planted facts, whose right verdicts are known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from statistics import fmean
from typing import Any, Final, Literal

from lmms_eval_captions.judges.endpoint.request import Chain
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.protocols import capquiz, vcapsbench, vdc, vidcapbench
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.protocols.gveval import GVeval
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.judges.verdict import ScoresJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.common.gveval_tasks import Comparison
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks, our_benchmarks, tasks_of
from lmms_eval_captions.metrics.gveval import gveval_expectation

Relation = Literal["states", "contradicts", "silent"]
"""The caption states the truth, states something else, or does not mention it."""
_FILE: Final = "anchors.jsonl"
_TELLING: Final = ("accuracy", "completeness", "relevance")
"""G-VEval's dimensions along which a caption of another video is bad; it may well be concise."""
_MIDDLE: Final = 50.0
"""Middle of G-VEval's scale: captions of the video rate far above it, others far below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedFact:
    """A fact of a made-up video, and a caption that states, contradicts or omits it."""

    name: str
    kind: str
    """Topic, such as ``colour``."""
    relation: Relation
    caption: str
    """Several sentences, 110 to 180 words."""
    question: str
    """Open question about the fact."""
    truth: str
    said: str
    """The caption's answer, in the words of the options; empty if it has none."""
    claim: str
    """Yes-no question about the fact."""
    claim_is_true: bool
    options: tuple[str, ...]
    """Five answers, the truth and the caption's among them."""
    references: tuple[str, ...]
    """Short true sentences about the video."""
    short_caption: str
    """A short sentence: about the video if the relation is ``states``, else about another one."""


def _verdict(judgement: Any) -> str | None:  # noqa: ANN401 - whatever has a verdict
    verdict: str | None = judgement.verdict
    return verdict


def _rating(judgement: ScoresJudgement) -> str | None:
    if not judgement.distributions:
        return None
    scores = (gveval_expectation(judgement.distributions[name]) for name in _TELLING)
    return "high" if fmean(scores) >= _MIDDLE else "low"


@dataclass(frozen=True, slots=True)
class Anchors:
    """A benchmark's questions about planted facts."""

    question: Callable[[PlantedFact], Any]
    verdicts: Mapping[Relation, str]
    """Right verdicts."""
    caption: Callable[[PlantedFact], str] = lambda fact: fact.caption
    verdict: Callable[[Any], str | None] = _verdict
    """Verdict of a judgement; ``None`` if unscored."""


ANCHORS: Final[Mapping[str, Anchors]] = {
    # An answer that is not the gold one, or none, is no match (appendix R).
    "vdc": Anchors(
        lambda fact: vdc.Question(fact.question, fact.truth),
        {"states": "yes", "contradicts": "no", "silent": "no"},
    ),
    # The classes of section 3.2; "partial" is never right.
    "vidcapbench": Anchors(
        lambda fact: vidcapbench.Question(
            fact.question, fact.truth, dimension="video content", sub_category="subjects"
        ),
        {"states": "correct", "contradicts": "wrong", "silent": "neutral"},
    ),
    # The labels of section 3.4.
    "vcapsbench": Anchors(
        lambda fact: vcapsbench.Question(
            "entity", fact.claim, "yes" if fact.claim_is_true else "no"
        ),
        {"states": "positive", "contradicts": "negative", "silent": "unanswerable"},
    ),
    # Section 3.4; "Cannot be determined" if the caption does not mention the fact.
    "capquiz": Anchors(
        lambda fact: capquiz.Question("Entity", fact.question, fact.options, fact.truth),
        {"states": "true_positive", "contradicts": "false_positive", "silent": "false_negative"},
    ),
    # Without frames, so that a judge that sees nothing can be verified.
    "msvd_eval": Anchors(
        lambda fact: Comparison(GVeval("ref_only"), fact.references, None),
        {"states": "high", "contradicts": "low", "silent": "low"},
        caption=lambda fact: fact.short_caption,
        verdict=_rating,
    ),
}
"""Benchmark's name to its anchors. Benchmarks that are not here cannot be verified."""


@cache
def planted_facts() -> tuple[PlantedFact, ...]:
    """Return the 60 facts of ``anchors.jsonl``; half of the captions state theirs."""
    lists = ("options", "references")
    rows = map(json.loads, _text().splitlines())
    return tuple(PlantedFact(**{**row, **{key: tuple(row[key]) for key in lists}}) for row in rows)


@cache
def _text() -> str:
    return resources.files(__package__).joinpath(_FILE).read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Subject:
    """A benchmark whose judge is verified."""

    name: str
    benchmark: Benchmark[Any, Any]
    config: JudgeConfig
    """At temperature 0, in one judge run: differences are the judge's and not chance."""
    anchors: Anchors

    @property
    def prompts(self) -> str:
        """Protocol version, digests of the anchors and of custom prompts: all affect verdicts."""
        names = {name for task in self.benchmark.tasks.values() for name in task.judge_prompts}
        custom = self.config.prompts.extras(dict.fromkeys(sorted(names)))
        anchors = hashlib.sha256(_text().encode("utf-8")).hexdigest()[:6]
        return ",".join([str(self.config.protocol), f"anchors:{anchors}", *custom.values()])

    def chain(self, fact: PlantedFact, seed: int) -> Chain[Sequence[Any]]:
        """Return the benchmark's own requests about a fact."""
        question, caption = self.anchors.question(fact), self.anchors.caption(fact)
        return self.benchmark.ask(question, caption, config=self.config, run=seed)

    def right_verdicts(self) -> dict[str, str]:
        """Return the verdicts that follow from how the captions were written."""
        return {fact.name: self.anchors.verdicts[fact.relation] for fact in planted_facts()}


def subjects_of(names: str | None, settings: JudgeSettings) -> list[Subject]:
    """Return the benchmarks to verify, all of one judge behind an endpoint.

    They are named by benchmarks, tasks and groups, separated by commas; ``None`` is for all that
    ask the judge of the settings, or that of the first benchmark.
    """
    benchmarks = all_benchmarks()
    subjects = []
    for name in ANCHORS if names is None else _chosen(names):
        config = replace(benchmarks[name].judge_config(settings), temperature=0.0, runs=1)
        subjects.append(Subject(name, benchmarks[name], config, ANCHORS[name]))
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


def _chosen(names: str) -> list[str]:
    """Names of the benchmarks that a user named, each once."""
    known = {id(each): name for name, each in all_benchmarks().items()}
    chosen: dict[str, None] = {}
    for text in filter(None, (part.strip() for part in names.split(","))):
        tasks = () if text in ANCHORS else tasks_of(text)
        for name in (known[id(our_benchmarks()[task])] for task in tasks) if tasks else (text,):
            if name not in ANCHORS:
                raise SettingsError(
                    f"--tasks: {text} has no anchors, so its judge cannot be verified with it; "
                    f"expected any of {', '.join(ANCHORS)}, or one of their tasks"
                )
            chosen[name] = None
    if not chosen:
        raise SettingsError(f"--tasks: expected any of {', '.join(ANCHORS)}, got {names!r:.80}")
    return list(chosen)
