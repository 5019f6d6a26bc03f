"""Record of a caption, made of its judgements."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from math import isnan, nan
from statistics import fmean
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

from lmms_eval_captions.judges.endpoint.request import NO_USAGE, Usage
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Doc, Metric, Task
from lmms_eval_captions.lmms_eval_tasks.judge_check import Evidence, Pair, evidence_of, examples_of
from lmms_eval_captions.lmms_eval_tasks.judging.doubts import no_caption_at_all
from lmms_eval_captions.lmms_eval_tasks.records import (
    CaptionRecord,
    Item,
    Kind,
    Names,
    Sample,
    Values,
)
from lmms_eval_captions.lmms_eval_tasks.signature import CAPTIONS, SERVED, questions_digest
from lmms_eval_captions.model_wrappers.no_caption import GeneralCaption

Q = TypeVar("Q")
J = TypeVar("J", bound=Judgement)
Runs = Sequence[Sequence[tuple[Q, J | None]]]
"""Each judge run's questions with their judgements, several for a question that gave several."""
_NOT_LOGGED: Final = ("usage", "failure")


@dataclass(frozen=True, slots=True)
class Judged(Generic[J]):
    """The judgements of one caption, or why there are none."""

    chains: Sequence[Sequence[J]]
    """Judgements of each chain; empty if nothing was judged."""
    config: JudgeConfig | None
    """``None`` if the settings could not be used."""
    reason: str | None
    """Why nothing was judged, else ``None``."""
    kind: Kind = "stopped"
    """Kind of that reason."""
    caption: Literal["there", "empty", "missing", "dropped"] = "there"
    """An empty one has no word: its judgements are those of a caption that says nothing. A missing
    one has no judgements, and the reason is the captioner's; a dropped one is left out, too."""
    sample: Sample | None = None
    """Which questions were asked, ``None`` for all; the chains of others are empty."""
    extras: Mapping[str, str] = field(default_factory=dict)
    """Fields of the signature that tell of the sample."""
    cheap_usage: Usage = NO_USAGE
    """Usage of the cheap judge on all questions."""
    late: str | None = None
    """Why the chains without judgements were not waited for, ``None`` if all were."""

    @property
    def judgements(self) -> list[J]:
        """Judgements of all chains."""
        return list(chain.from_iterable(self.chains))


class JudgedCaption(NamedTuple):
    """One judged caption with its judgements, as the process has it that judged."""

    record: CaptionRecord
    judgements: Sequence[Judgement]

    def item(self, benchmark: Benchmark[Any, Any], name: str) -> tuple[CaptionRecord, Item]:
        """Return the record, and what lmms-eval gathers and saves of a metric of the benchmark."""
        metric, record = benchmark.metrics[name], self.record
        score = caption_score(metric, record, record.values[name])
        logged = [
            {key: value for key, value in asdict(judgement).items() if key not in _NOT_LOGGED}
            for judgement in (self.judgements if name == benchmark.headline else ())
        ]
        return record, {
            **({} if isnan(score) else {"caption_score": score}),
            "metric": name,
            **record.head(),
            metric.field: record.values[name],
            **({"fields": dict(record.fields)} if metric.reads_fields else {}),
            **({"judgements": logged} if name == benchmark.headline else {}),
        }


def caption_digest(caption: str) -> bytes:
    """Return what tells a caption from others, in every process; 8 bytes."""
    return hashlib.blake2b(caption.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def caption_score(metric: Metric, record: CaptionRecord, runs: Values) -> float:
    """A caption's own score in the metric's unit, mean over judge runs; ``nan`` if it has none."""
    scores = (metric.score([values], [record]) for values in runs)
    scored = [score for score in scores if not isnan(score)]
    return fmean(scored) if scored else nan


def record_of(
    benchmark: Benchmark[Q, J],
    task: Task,
    doc: Doc,
    caption: str,
    questions: Sequence[Q],
    judged: Judged[J],
    *,
    pairs: Mapping[str, Pair] | None = None,
) -> CaptionRecord:
    """Return the record of a judged caption; ``pairs`` are the credits of anchors asked with it."""
    config, judgements, sample = judged.config, judged.judgements, judged.sample
    is_dropped = judged.caption == "dropped"
    is_missing = is_dropped or judged.caption == "missing"
    runs = [] if is_dropped else _runs(questions, judged)
    n_all = sum(map(len, runs))
    reason = judged.reason or judged.late
    kind = "unavailable" if judged.reason is None else judged.kind
    # Questions that a sample leaves out are neither scored nor unscored.
    asked = [one for run in runs for _, one in run if one is not None or reason is not None]
    unscored: list[tuple[str | None, Kind]] = [
        (reason, kind) if one is None else (one.reason, one.failure or "stopped")
        for one in asked
        if one is None or one.reason is not None
    ]
    fields = benchmark.fields(doc, None if is_missing else caption)
    kind_of_caption = "general" if isinstance(caption, GeneralCaption) else "aspect"
    evidence = Evidence()
    if config is not None and config.asks_endpoint:
        examples = examples_of(config.prompts, task.judge_prompts)
        evidence = evidence_of(
            benchmark.judge_check, chain.from_iterable(runs), examples=examples, pairs=pairs or {}
        )
    return CaptionRecord(
        task=task.name,
        video_id=benchmark.video_id(doc),
        judge=config.label if config else "none",
        runs=config.runs if config else 0,
        protocol=config.protocol if config else 0,
        extras={
            **{name: value.format_map(doc) for name, value in task.extras.items()},
            **_judging_extras(judged, task.prompts(doc)),
            **benchmark.extras(judgements, fields),
            **({} if task.aspect is None or is_missing else {CAPTIONS: kind_of_caption}),
        },
        n_questions=len(asked),
        n_unscored=len(unscored),
        n_empty=int(judged.caption == "empty"),
        n_dropped=int(is_dropped),
        reasons=Counter(str(reason) for reason, _ in unscored),
        kinds=Counter(kind for _, kind in unscored),
        no_caption=judged.reason if is_missing else None,
        evidence=evidence,
        n_population=0 if sample is None else n_all,
        sample=None if sample is None or sample.is_whole else sample,
        questions=questions_digest(benchmark.video_id(doc), questions) if n_all else "",
        values=_values(benchmark, runs),
        groups=_groups(benchmark, doc, runs),
        asked=_asked(benchmark, runs),
        unscored_because=(
            [[reason if one is None else one.reason for _, one in run] for run in runs]
            if unscored
            else ()
        ),
        tokens=_tokens(runs),
        n_words=None if is_missing else len(caption.split()),
        caption_digest="" if is_missing else caption_digest(caption).hex(),
        suspicious="" if is_missing else no_caption_at_all(caption),
        fields=fields,
    )


def _runs(questions: Sequence[Q], judged: Judged[J]) -> Runs[Q, J]:
    """Return each run's questions with their judgements; one without any is kept in a gap."""
    n_runs = judged.config.runs if judged.config else 1
    chains: Sequence[Sequence[J | None]] = judged.chains
    gap: tuple[None, ...] = () if judged.sample is None and judged.late is None else (None,)
    if judged.reason is not None:
        chains, gap = [()] * len(questions) * n_runs, (None,)
    return [
        [
            (question, judgement)
            for index, question in enumerate(questions, start=run * len(questions))
            for judgement in (chains[index] or gap)
        ]
        for run in range(n_runs)
    ]


def _values(benchmark: Benchmark[Q, J], runs: Runs[Q, J]) -> dict[str, Values]:
    """Return what each metric reads; metrics that read the same share it."""
    values: dict[str, Values] = {}
    for name, metric in benchmark.metrics.items():
        source, nothing = benchmark.source_of_values(name), (None,) * metric.n_values
        values[name] = values.get(source) or [
            [v for _, one in run for v in (nothing if one is None else metric.values(one))]
            for run in runs
        ]
    return values


def _groups(benchmark: Benchmark[Q, J], doc: Doc, runs: Runs[Q, J]) -> dict[str, Names]:
    named = [
        [benchmark.groups(doc, question, judgement) for question, judgement in run] for run in runs
    ]
    sections = dict.fromkeys(section for run in named for names in run for section in names)
    return {
        section: [[names.get(section) for names in run] for run in named] for section in sections
    }


def _asked(benchmark: Benchmark[Q, J], runs: Runs[Q, J]) -> list[str]:
    """Return the text of each question, nothing if only the judge's replies say what is asked."""
    if not benchmark.counts_ahead:
        return []
    texts = [[benchmark.question_text(question) for question, _ in run] for run in runs]
    return texts[0] if texts and all(run == texts[0] for run in texts) else []


def _tokens(runs: Runs[Q, J]) -> list[list[list[int]]]:
    usages = [[NO_USAGE if one is None else one.usage for _, one in run] for run in runs]
    tokens = [[[usage.input_tokens, usage.output_tokens] for usage in run] for run in usages]
    return tokens if any(any(map(any, run)) for run in tokens) else []


def _judging_extras(judged: Judged[J], prompts: Sequence[str]) -> dict[str, str]:
    """Return the fields of the signature that follow from how a caption was judged."""
    config = judged.config
    extras = {**config.signature_fields, **config.prompts.extras(prompts)} if config else {}
    extras |= judged.extras
    refused = {name for judgement in judged.judgements for name in judgement.usage.refused}
    served = {name for judgement in judged.judgements for name in judgement.usage.served}
    if served:
        extras[SERVED] = ",".join(sorted(served))
    # What was refused was not sent, whatever was set.
    return {**extras, **dict.fromkeys(sorted(refused), "refused")}
