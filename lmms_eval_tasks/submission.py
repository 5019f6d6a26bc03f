"""From a captioned document to its record: its questions are submitted, and waited for later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, reduce
from itertools import chain
from operator import add
from typing import TypeVar

from lmms_eval_captions.judges.endpoint.request import Usage
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.anchors import AnchorJudgements, captions_of
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Doc, Task
from lmms_eval_captions.lmms_eval_tasks.judge_run import (
    JUDGE_RUN,
    judge_anchors,
    judge_caption,
    measure_caption,
)
from lmms_eval_captions.lmms_eval_tasks.judged import Judged, caption_digest
from lmms_eval_captions.lmms_eval_tasks.judged_caption import JudgedCaption, record_of
from lmms_eval_captions.lmms_eval_tasks.sampling.plans import InPart, can_be_sampled, name_of
from lmms_eval_captions.lmms_eval_tasks.usage import report_usage
from lmms_eval_captions.model_wrappers.no_caption import says_nothing

Q = TypeVar("Q")
J = TypeVar("J", bound=Judgement)


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
        if judged.config is not None and judged.config.asks_endpoint:
            spent = chain(judged.judgements, chain.from_iterable(anchors.chains))
            usage = reduce(add, (judgement.usage for judgement in spent), Usage())
            report_usage(task.name, judged.config.model, usage)
            if judged.cheap_usage.n_calls:
                cheap = name_of(JUDGE_RUN.settings().cheap_judge or "")
                report_usage(task.name, cheap, judged.cheap_usage)
        record = record_of(
            benchmark,
            task,
            doc,
            caption,
            questions,
            judged,
            anchors=anchors,
            settings=None if judged.sample is None else JUDGE_RUN.settings(),
        )
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
    measure = benchmark.measure
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
        chains=lambda config: benchmark.chains(questions, caption, config),
        silent=lambda config: benchmark.silences(questions, config),
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
