"""From a captioned document to its record: its questions are submitted, and waited for later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, reduce
from itertools import chain, product
from math import isnan, nan
from operator import add
from statistics import fmean
from typing import Final, Generic, TypeVar

from loguru import logger

from lmms_eval_captions.judges.endpoint.outcome import Usage
from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig
from lmms_eval_captions.judges.protocols.prompt_examples import examples_of
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.anchors import AnchorJudgements, captions_of
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Doc, Metric, Task
from lmms_eval_captions.lmms_eval_tasks.judge_doubts import evidence_of
from lmms_eval_captions.lmms_eval_tasks.judge_run import (
    JUDGE_RUN,
    Judged,
    caption_digest,
    judge_anchors,
    judge_caption,
    measure_caption,
)
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord, Item, Names, Values
from lmms_eval_captions.lmms_eval_tasks.sampling.in_part import InPart, name_of
from lmms_eval_captions.lmms_eval_tasks.sampling.plans import can_be_sampled
from lmms_eval_captions.lmms_eval_tasks.sampling.sample_of_caption import Sample
from lmms_eval_captions.lmms_eval_tasks.signature import (
    CAPTIONS,
    CHEAP,
    JUDGE_FP,
    PRECISION,
    SERVED,
    questions_digest,
)
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.usage import report_usage
from lmms_eval_captions.model_wrappers.general_caption import GeneralCaption
from lmms_eval_captions.model_wrappers.no_caption import says_nothing

Q = TypeVar("Q")
J = TypeVar("J", bound=Judgement)

_OF_OTHERS: Final = (
    "stored replies were used that are not known to be of this endpoint (of another one, or stored "
    "by a version that did not write down of which), so that the signature has no judge-fp; "
    "LMMS_CAPTIONS_STORE_BY=endpoint asks anew"
)
"""Said of a judge that was verified, where not all verdicts are known to be its own."""


@dataclass(frozen=True, slots=True)
class JudgedCaption(Generic[J]):
    """One judged caption with its judgements, as the process has it that judged."""

    record: CaptionRecord
    judgements: Sequence[J]

    def item(self, benchmark: Benchmark[Q, J], name: str) -> Item:
        """What lmms-eval gathers and saves of one of the benchmark's metrics."""
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
            **(record.fields if is_headline or metric.reads_fields else {}),
            **({"judgements": list(map(_logged, self.judgements))} if is_headline else {}),
        }


def submit(
    benchmark: Benchmark[Q, J],
    doc: Doc,
    caption: str,
    *,
    task: Task | None = None,
    why_not: str | None = None,
) -> Callable[[], JudgedCaption[J]]:
    """Save a caption and submit its questions, each once for every judge run; never waits.

    Args:
        benchmark: Which one.
        doc: The captioned document.
        caption: Candidate caption, unchanged.
        task: The task that it is judged for, by default the document's.
        why_not: Why the judge is not to be asked, else ``None``.

    Returns:
        A function that waits for the judgements; the same result at every call.
    """
    task = task or benchmark.task_of(doc)
    questions = benchmark.questions(doc)
    wait = _submitted(benchmark, task, doc, caption, questions, why_not)
    wait_for_anchors = (
        _ask_anchors(benchmark, task, caption) if why_not is None else AnchorJudgements
    )

    @cache
    def judged_caption() -> JudgedCaption[J]:
        judged, anchors = wait(), wait_for_anchors()
        if judged.config is not None:
            spent = chain(judged.judgements, chain.from_iterable(anchors.chains))
            usage = reduce(add, (judgement.usage for judgement in spent), Usage())
            report_usage(task.name, judged.config.model, usage)
            if judged.cheap_usage.n_calls:
                cheap = name_of(JUDGE_RUN.settings().cheap_judge or "")
                report_usage(task.name, cheap, judged.cheap_usage)
        record = _record(benchmark, task, doc, caption, questions, judged, anchors)
        return JudgedCaption(record, judged.judgements)

    return judged_caption


def _submitted(
    benchmark: Benchmark[Q, J],
    task: Task,
    doc: Doc,
    caption: str,
    questions: Sequence[Q],
    why_not: str | None,
) -> Callable[[], Judged[J]]:
    """Hand a caption to the judge, or to what measures it; a function that waits for either."""
    silent, measure = benchmark.silent, benchmark.measure
    about = {"task": task.name, "video_id": benchmark.video_id(doc)}
    if measure is not None:

        def hand_in() -> Callable[[], Sequence[Sequence[J]]]:
            waits = [measure(question, caption) for question in questions]
            return lambda: [(wait(),) for wait in waits]

        return measure_caption(
            caption, **about, aspect=task.aspect, measure=hand_in, why_not=why_not
        )
    return judge_caption(
        caption,
        **about,
        aspect=task.aspect,
        defaults=benchmark.judge_defaults,
        chains=lambda config: [
            benchmark.ask(question, caption, config=config, run=run)
            for run, question in product(range(config.runs), questions)
        ],
        silent=lambda config: (
            None
            if silent is None
            else [silent(question, run) for run, question in product(range(config.runs), questions)]
        ),
        why_not=why_not,
        in_part=_in_part(benchmark, task, doc, caption, questions),
    )


def _in_part(
    benchmark: Benchmark[Q, J], task: Task, doc: Doc, caption: str, questions: Sequence[Q]
) -> InPart[J] | None:
    """What has the caption judged in part, ``None`` where a sample would tell nothing."""
    if not questions or not can_be_sampled(benchmark):
        return None
    return InPart(
        benchmark=benchmark,
        task=task.name,
        video_id=benchmark.video_id(doc),
        names=[benchmark.question_text(question) for question in questions],
        groups=[
            next(iter(benchmark.groups(doc, question, None).values()), "") for question in questions
        ],
        cheap_chains=lambda name: [
            benchmark.ask(question, caption, config=config, run=0)
            for config in [_cheap_config(benchmark, name)]
            for question in questions
        ],
    )


def _cheap_config(benchmark: Benchmark[Q, J], name: str) -> JudgeConfig:
    """The benchmark's judge with another model, asked once."""
    config = benchmark.judge_config(replace(JUDGE_RUN.settings(), judge=name, alias=None))
    return replace(config, runs=1)


def caption_score(metric: Metric, record: CaptionRecord, runs: Values) -> float:
    """A caption's own score in the metric's unit, mean over judge runs; ``nan`` if it has none."""
    if not runs:
        return nan
    scores = (metric.score([values], [record]) for values in runs)
    scored = [score for score in scores if not isnan(score)]
    return fmean(scored) if scored else nan


def _ask_anchors(
    benchmark: Benchmark[Q, J], task: Task, caption: str
) -> Callable[[], AnchorJudgements[Q, J]]:
    """Submit the task's anchors with the caption that makes its captions enough.

    Returns:
        A function that waits for their judgements; mostly there are none.
    """
    check = benchmark.judge_check
    due = [] if says_nothing(caption) else JUDGE_RUN.anchors.due(task.name)
    if check is None or not due:
        return AnchorJudgements
    anchors = [(question, text) for question in due for text in captions_of(check, question)]
    wait = judge_anchors(
        benchmark.judge_defaults,
        lambda config: [
            benchmark.ask(question, text, config=config, run=0) for question, text in anchors
        ],
        about=[caption_digest(text) for _, text in anchors],
    )
    return lambda: AnchorJudgements(due, wait().chains)


def _evidence(
    benchmark: Benchmark[Q, J],
    task: Task,
    runs: Sequence[Sequence[tuple[Q, J | None]]],
    config: JudgeConfig | None,
    anchors: AnchorJudgements[Q, J],
) -> Mapping[str, object]:
    """What a caption's judgements say of the judge, nothing where none was asked."""
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


def _record(
    benchmark: Benchmark[Q, J],
    task: Task,
    doc: Doc,
    caption: str,
    questions: Sequence[Q],
    judged: Judged[J],
    anchors: AnchorJudgements[Q, J],
) -> CaptionRecord:
    config = judged.config
    is_dropped = judged.caption == "dropped"
    runs = [] if is_dropped else list(_runs(questions, judged))
    judgements = judged.judgements
    n_questions = len(judgements) if judged.reason is None else sum(map(len, runs))
    n_all = sum(map(len, runs))
    n_unscored = n_questions - sum(judgement.reason is None for judgement in judgements)
    reasons = Counter(j.reason for j in judgements if j.reason is not None)
    if judged.reason is not None and n_unscored:
        reasons[judged.reason] = n_unscored
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
            **_judging_extras(judged, task.prompts(doc)),
            **_verified_extras(benchmark, judged),
            **benchmark.extras(judgements, fields),
            **({} if task.aspect is None or is_missing else {CAPTIONS: _kind_of(caption)}),
        },
        n_questions=n_questions,
        n_unscored=n_unscored,
        n_empty=int(judged.caption == "empty"),
        n_dropped=int(is_dropped),
        reasons=reasons,
        no_caption=judged.reason if is_missing else None,
        evidence=_evidence(benchmark, task, runs, config, anchors),
        n_population=0 if judged.sample is None else n_all,
        sample={} if judged.sample is None or judged.sample.is_whole else judged.sample.to_item(),
        questions=questions_digest(benchmark.video_id(doc), questions) if n_all else "",
        values={name: _values(metric, runs) for name, metric in benchmark.metrics.items()},
        groups=_groups(benchmark, doc, runs),
        asked=_asked(benchmark, runs),
        n_words=None if is_missing else len(caption.split()),
        caption_digest="" if is_missing else caption_digest(caption).hex(),
        fields=fields,
    )


def _kind_of(caption: str) -> str:
    """What the captions of a task with an aspect were written for."""
    return "general" if isinstance(caption, GeneralCaption) else "aspect"


def _runs(questions: Sequence[Q], judged: Judged[J]) -> Iterator[list[tuple[Q, J | None]]]:
    """Each run's questions with their judgements, several for a question that gave several."""
    n_runs = judged.config.runs if judged.config else 1
    unjudged: Sequence[Sequence[J | None]] = [(None,)] * len(questions) * n_runs
    chains: Sequence[Sequence[J | None]] = judged.chains if judged.reason is None else unjudged
    for run in range(n_runs):
        answered = chains[run * len(questions) : (run + 1) * len(questions)]
        yield [
            (question, judgement)
            for question, judgements in zip(questions, answered, strict=True)
            for judgement in (judgements if judged.sample is None else judgements or (None,))
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


def _judging_extras(judged: Judged[J], prompts: Sequence[str]) -> dict[str, str]:
    """Fields of the signature that follow from how a caption was judged."""
    config = judged.config
    extras = {**config.extras, **config.prompts.extras(prompts)} if config else {}
    if judged.sample is not None:
        settings = JUDGE_RUN.settings()
        extras[PRECISION] = f"{settings.precision:g}"
        if settings.cheap_judge:
            extras[CHEAP] = name_of(settings.cheap_judge)
    refused = {name for judgement in judged.judgements for name in judgement.usage.refused}
    served = {name for judgement in judged.judgements for name in judgement.usage.served}
    if served:
        extras[SERVED] = ",".join(sorted(served))
    # What was refused was not sent, whatever was set.
    return {**extras, **dict.fromkeys(sorted(refused), "refused")}


def _verified_extras(benchmark: Benchmark[Q, J], judged: Judged[J]) -> dict[str, str]:
    """The field of the signature of a judge that was verified; a run of another one says so.

    It is empty where a verdict may be another judge's, so that the task's signature has none.
    """
    if judged.config is None or not judged.chains:
        return {}
    standing = JUDGE_RUN.verified.standing(benchmark, judged.config, JUDGE_RUN.settings())
    fingerprint, warning = standing.fingerprint, standing.warning
    if fingerprint and any(judgement.usage.is_of_others for judgement in judged.judgements):
        fingerprint, warning = "", _OF_OTHERS
    if warning:
        if THIS_RUN.is_new(warning):
            logger.warning("{}: {}", benchmark.name, warning)
        THIS_RUN.warn(warning)
    return {JUDGE_FP: fingerprint} if standing.fingerprint else {}


def _logged(judgement: Judgement) -> Item:
    """A judgement as it is written into the samples."""
    return {name: value for name, value in asdict(judgement).items() if name != "usage"}
