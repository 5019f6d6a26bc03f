"""Record of a caption, made of its judgements."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from math import isnan, nan
from statistics import fmean
from typing import Any, Generic, Literal, TypeVar

from lmms_eval_captions.judges.endpoint.request import NO_USAGE, Usage
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Doc, Metric, Task
from lmms_eval_captions.lmms_eval_tasks.caption_doubts import no_caption_at_all
from lmms_eval_captions.lmms_eval_tasks.judge_check import AnchorJudgements
from lmms_eval_captions.lmms_eval_tasks.judge_doubts import evidence_of, examples_of
from lmms_eval_captions.lmms_eval_tasks.records import RECORD, CaptionRecord, Item, Names, Values
from lmms_eval_captions.lmms_eval_tasks.sampling.plans import name_of
from lmms_eval_captions.lmms_eval_tasks.sampling.weights import Sample
from lmms_eval_captions.lmms_eval_tasks.signature import (
    CAPTIONS,
    CHEAP,
    PRECISION,
    SERVED,
    questions_digest,
)
from lmms_eval_captions.model_wrappers.no_caption import GeneralCaption

Q = TypeVar("Q")
J = TypeVar("J", bound=Judgement)


@dataclass(frozen=True, slots=True)
class Judged(Generic[J]):
    """The judgements of one caption, or why there are none."""

    chains: Sequence[Sequence[J]]
    """Judgements of each chain; empty if nothing was judged."""
    config: JudgeConfig | None
    """``None`` if the settings could not be used."""
    reason: str | None
    """Why nothing was judged, else ``None``."""
    caption: Literal["there", "empty", "missing", "dropped"] = "there"
    """An empty one has no word: its judgements are those of a caption that says nothing. A missing
    one has no judgements, and the reason is the captioner's; a dropped one is left out, too."""
    sample: Sample | None = None
    """Which questions were asked, ``None`` for all; the chains of others are empty."""
    cheap_usage: Usage = NO_USAGE
    """Usage of the cheap judge on all questions."""
    late: str | None = None
    """Why the chains without judgements were not waited for, ``None`` if all were."""

    @property
    def judgements(self) -> list[J]:
        """Judgements of all chains."""
        return list(chain.from_iterable(self.chains))


@dataclass(frozen=True, slots=True)
class JudgedCaption(Generic[J]):
    """One judged caption with its judgements, as the process has it that judged."""

    record: CaptionRecord
    judgements: Sequence[J]

    def item(self, benchmark: Benchmark[Q, J], name: str) -> Item:
        """Return what lmms-eval gathers and saves of one of the benchmark's metrics."""
        metric, record = benchmark.metrics[name], self.record
        sample = Sample.of(record)
        score = caption_score(metric, record, record.values[name])
        is_headline = name == benchmark.headline
        return {
            **({} if isnan(score) else {"caption_score": score}),
            "metric": name,
            **record.head(),
            metric.field: record.values[name],
            **({} if sample is None else {"sample": sample.of_metric(name).to_item()}),
            **({"fields": dict(record.fields)} if metric.reads_fields else {}),
            **({RECORD: whole_record(benchmark, record)} if is_headline else {}),
            **({"judgements": list(map(_logged, self.judgements))} if is_headline else {}),
        }


def caption_digest(caption: str) -> bytes:
    """Return what tells a caption from others, in every process; 8 bytes."""
    return hashlib.blake2b(caption.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def whole_record(benchmark: Benchmark[Any, Any], record: CaptionRecord) -> Item:
    """Return what the headline's item holds of a record: all that metrics read, once."""
    return record.whole(dict.fromkeys(map(benchmark.source_of_values, benchmark.metrics)))


def read_whole(benchmark: Benchmark[Any, Any], item: Item) -> CaptionRecord:
    """Read the record of a headline's item, with what every metric reads."""
    record = CaptionRecord.read_whole(item)
    values = {name: record.values[benchmark.source_of_values(name)] for name in benchmark.metrics}
    return replace(record, values=values)


def caption_score(metric: Metric, record: CaptionRecord, runs: Values) -> float:
    """A caption's own score in the metric's unit, mean over judge runs; ``nan`` if it has none."""
    if not runs:
        return nan
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
    anchors: AnchorJudgements[Q, J] | None = None,
    settings: JudgeSettings | None = None,
) -> CaptionRecord:
    """The record of a caption whose judgements are there.

    Args:
        benchmark: Which one.
        task: The task that it is judged for.
        doc: The captioned document.
        caption: Candidate caption.
        questions: The document's.
        judged: The judgements, or why there are none.
        anchors: What else the judge was asked, to see whether it judges.
        settings: Of the run, where a sample of the questions is asked.
    """
    config = judged.config
    is_dropped = judged.caption == "dropped"
    runs = [] if is_dropped else list(_runs(questions, judged))
    judgements = judged.judgements
    n_all = sum(map(len, runs))
    is_whole = judged.reason is None and judged.late is None
    n_questions = len(judgements) if is_whole else n_all
    n_unscored = n_questions - sum(judgement.reason is None for judgement in judgements)
    reasons = Counter(j.reason for j in judgements if j.reason is not None)
    if judged.reason is not None and n_unscored:
        reasons[judged.reason] = n_unscored
    if judged.late is not None and n_all > len(judgements):
        reasons[judged.late] = n_all - len(judgements)
    is_missing = is_dropped or judged.caption == "missing"
    fields = benchmark.fields(doc, None if is_missing else caption)
    return CaptionRecord(
        task=task.name,
        video_id=benchmark.video_id(doc),
        judge=config.label if config else "none",
        runs=config.runs if config else 0,
        protocol=config.protocol if config else 0,
        extras={
            **{name: value.format_map(doc) for name, value in task.extras.items()},
            **_judging_extras(judged, task.prompts(doc), settings),
            **benchmark.extras(judgements, fields),
            **({} if task.aspect is None or is_missing else {CAPTIONS: _kind_of(caption)}),
        },
        n_questions=n_questions,
        n_unscored=n_unscored,
        n_empty=int(judged.caption == "empty"),
        n_dropped=int(is_dropped),
        reasons=reasons,
        no_caption=judged.reason if is_missing else None,
        evidence=_evidence(benchmark, task, runs, config, anchors or AnchorJudgements()),
        n_population=0 if judged.sample is None else n_all,
        sample={} if judged.sample is None or judged.sample.is_whole else judged.sample.to_item(),
        questions=questions_digest(benchmark.video_id(doc), questions) if n_all else "",
        values={name: _values(metric, runs) for name, metric in benchmark.metrics.items()},
        groups=_groups(benchmark, doc, runs),
        asked=_asked(benchmark, runs),
        unscored_because=_unscored_because(runs, judged) if n_unscored else (),
        tokens=_tokens(runs),
        n_words=None if is_missing else len(caption.split()),
        caption_digest="" if is_missing else caption_digest(caption).hex(),
        suspicious="" if is_missing else no_caption_at_all(caption),
        fields=fields,
    )


def _evidence(
    benchmark: Benchmark[Q, J],
    task: Task,
    runs: Sequence[Sequence[tuple[Q, J | None]]],
    config: JudgeConfig | None,
    anchors: AnchorJudgements[Q, J],
) -> Mapping[str, object]:
    """Return evidence about the judge from a caption's judgements, empty without a judge."""
    if config is None or not config.asks_endpoint:
        return {}
    check = benchmark.judge_check
    evidence = evidence_of(
        check,
        chain.from_iterable(runs),
        examples=examples_of(config.prompts, task.judge_prompts),
        pairs={} if check is None else anchors.pairs(check.credit),
    )
    return evidence.to_item() if evidence.n_replies or evidence.pairs else {}


def _kind_of(caption: str) -> str:
    """Return ``general`` for a caption that was written for all aspects, else ``aspect``."""
    return "general" if isinstance(caption, GeneralCaption) else "aspect"


def _runs(questions: Sequence[Q], judged: Judged[J]) -> Iterator[list[tuple[Q, J | None]]]:
    """Each run's questions with their judgements, several for a question that gave several."""
    n_runs = judged.config.runs if judged.config else 1
    has_gaps = judged.sample is not None or judged.late is not None
    unjudged: Sequence[Sequence[J | None]] = [(None,)] * len(questions) * n_runs
    chains: Sequence[Sequence[J | None]] = judged.chains if judged.reason is None else unjudged
    for run in range(n_runs):
        answered = chains[run * len(questions) : (run + 1) * len(questions)]
        yield [
            (question, judgement)
            for question, judgements in zip(questions, answered, strict=True)
            for judgement in (judgements or (None,) if has_gaps else judgements)
        ]


def _values(metric: Metric, runs: Sequence[Sequence[tuple[Q, J | None]]]) -> Values:
    nothing = (None,) * metric.n_values
    return [
        [
            value
            for _, judgement in run
            for value in (nothing if judgement is None else metric.values(judgement))
        ]
        for run in runs
    ]


def _groups(
    benchmark: Benchmark[Q, J], doc: Doc, runs: Sequence[Sequence[tuple[Q, J | None]]]
) -> dict[str, Names]:
    named = [
        [benchmark.groups(doc, question, judgement) for question, judgement in run] for run in runs
    ]
    sections = dict.fromkeys(section for run in named for names in run for section in names)
    return {
        section: [[names.get(section) for names in run] for run in named] for section in sections
    }


def _asked(benchmark: Benchmark[Q, J], runs: Sequence[Sequence[tuple[Q, J | None]]]) -> list[str]:
    """The text of each question, nothing where it is the judge that says what there is."""
    if not benchmark.counts_ahead:
        return []
    texts = [[benchmark.question_text(question) for question, _ in run] for run in runs]
    return texts[0] if texts and all(run == texts[0] for run in texts) else []


def _unscored_because(runs: Sequence[Sequence[tuple[Q, J | None]]], judged: Judged[J]) -> Names:
    # Questions that a sample leaves out are neither scored nor unscored.
    default = judged.reason or judged.late
    return [[default if one is None else one.reason for _, one in run] for run in runs]


def _tokens(
    runs: Sequence[Sequence[tuple[Q, J | None]]],
) -> list[list[list[int]]]:
    usages = [[NO_USAGE if one is None else one.usage for _, one in run] for run in runs]
    tokens = [[[usage.input_tokens, usage.output_tokens] for usage in run] for run in usages]
    return tokens if any(any(map(any, run)) for run in tokens) else []


def _judging_extras(
    judged: Judged[J], prompts: Sequence[str], settings: JudgeSettings | None
) -> dict[str, str]:
    """Fields of the signature that follow from how a caption was judged."""
    config = judged.config
    extras = {**config.signature_fields, **config.prompts.extras(prompts)} if config else {}
    if judged.sample is not None and settings is not None:
        extras[PRECISION] = f"{settings.precision:g}"
        if settings.cheap_judge:
            extras[CHEAP] = name_of(settings.cheap_judge)
    refused = {name for judgement in judged.judgements for name in judgement.usage.refused}
    served = {name for judgement in judged.judgements for name in judgement.usage.served}
    if served:
        extras[SERVED] = ",".join(sorted(served))
    # What was refused was not sent, whatever was set.
    return {**extras, **dict.fromkeys(sorted(refused), "refused")}


def _logged(judgement: Judgement) -> Item:
    """A judgement as it is written into the samples."""
    return {name: value for name, value in asdict(judgement).items() if name != "usage"}
