"""Per-caption records: what lmms-eval aggregates and writes into its samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, reduce
from operator import add
from typing import Any, Generic, TypeVar

from lmms_eval_captions.judges.endpoint.engine import Chain
from lmms_eval_captions.judges.judge_config import JudgeConfig
from lmms_eval_captions.judges.verdict import Judgement, Usage
from lmms_eval_captions.lmms_eval_tasks.judge_run import (
    Judged,
    PendingRecord,
    Record,
    judge_caption,
)
from lmms_eval_captions.lmms_eval_tasks.scoring import head_of, report_usage, signature_of
from lmms_eval_captions.lmms_eval_tasks.signature import SERVED

J = TypeVar("J", bound=Judgement)
C = TypeVar("C", bound="CaptionRecords[Any]")


@dataclass(frozen=True, slots=True)
class CaptionRecords(Generic[J]):
    """One judged caption; a benchmark's subclass adds an item for each of its metrics."""

    task: str
    video_id: str
    n_questions: int
    """Questions of the video, in one run."""
    judged: Judged[J]
    extras: Mapping[str, str]
    """Further fields of the signature."""

    def unscored(self) -> Record:
        """Item of ``unscored``, and the head of every other item."""
        judgements = self.judged.judgements
        head = head_of(
            self.judged,
            task=self.task,
            video_id=self.video_id,
            n_questions=self.n_questions * self.n_runs,
            n_scored=sum(judgement.reason is None for judgement in judgements),
            **self.extras,
        )
        if judgements:
            head["reasons"] = dict(Counter(j.reason for j in judgements if j.reason is not None))
        return head

    def signature(self) -> Record:
        """Item of ``signature``."""
        head = self.unscored()
        return {"signature": signature_of([head]), **head}

    @property
    def n_runs(self) -> int:
        """Judge runs, >= 1."""
        return self.judged.config.runs if self.judged.config else 1

    def by_run(self) -> list[list[J]]:
        """The judgements of each run, in the order of the questions."""
        runs: list[list[J]] = [[] for _ in range(self.n_runs)]
        for judgement in self.judged.judgements:
            runs[judgement.run].append(judgement)
        return runs

    def judgements(self) -> list[Record]:
        """Every judgement as it is written into the samples."""
        return [
            {name: value for name, value in asdict(judgement).items() if name != "usage"}
            for judgement in self.judged.judgements
        ]

    def report_usage(self) -> None:
        """Report the tokens that judging this caption took to lmms-eval."""
        if self.judged.config is not None:
            usage = reduce(add, (j.usage for j in self.judged.judgements), Usage())
            report_usage(self.task, self.judged.config.model, usage)


@dataclass(frozen=True, slots=True)
class Inquiry(Generic[J]):
    """What is asked about a caption for one question."""

    chain: Callable[[JudgeConfig, int], Chain[J]]
    """Makes the chain of one run from the judge and the run's number."""
    silent: Callable[[int], J] | None
    """Makes the judgement of one run where the caption says nothing; ``None`` where the benchmark
    has no such verdict."""


def submit_caption(
    make: Callable[[str, str, int, Judged[J], Mapping[str, str]], C],
    caption: str,
    *,
    task: str,
    video_id: str,
    defaults: Mapping[str, object],
    inquiries: Sequence[Inquiry[J]],
    prompts: Sequence[str],
    aspect: str | None = None,
    **extras: str,
) -> Callable[[], C]:
    """Submit one caption's questions, each once for every judge run.

    Args:
        make: The benchmark's :class:`CaptionRecords`.
        caption: Candidate caption, unchanged.
        task: Name of the lmms-eval task.
        video_id: The video.
        defaults: The benchmark's ``metadata.judge``.
        inquiries: One for each question.
        prompts: What captioner and judge are asked with, as :meth:`Prompts.extras` takes it.
        aspect: Aspect of the caption where a benchmark has several.
        extras: Further fields of the signature.

    Returns:
        A function that waits for the judgements and gives the caption's records, always the same.
    """
    wait = judge_caption(
        caption,
        task=task,
        video_id=video_id,
        aspect=aspect,
        defaults=defaults,
        chains=lambda config: [
            one.chain(config, run) for run in range(config.runs) for one in inquiries
        ],
        silent=lambda config: [
            one.silent(run) for run in range(config.runs) for one in inquiries if one.silent
        ],
    )

    @cache
    def records() -> C:
        judged = wait()
        made = make(
            task, video_id, len(inquiries), judged, {**extras, **judging_extras(judged, prompts)}
        )
        made.report_usage()
        return made

    return records


def judging_extras(judged: Judged[J], prompts: Iterable[str]) -> dict[str, str]:
    """Fields of the signature that follow from how a caption was judged.

    Args:
        judged: The caption's judgements.
        prompts: What was asked with, as :meth:`Prompts.extras` takes it.
    """
    config = judged.config
    extras = {**config.extras, **config.prompts.extras(prompts)} if config else {}
    refused = {name for judgement in judged.judgements for name in judgement.usage.refused}
    served = {name for judgement in judged.judgements for name in judgement.usage.served}
    if served:
        extras[SERVED] = ",".join(sorted(served))
    # What was refused was not sent, whatever was set.
    return {**extras, **dict.fromkeys(sorted(refused), "refused")}


def pending(
    records: Callable[[], C], items: Mapping[str, Callable[[C], Record]]
) -> dict[str, PendingRecord]:
    """What ``process_results`` returns: an item for each metric, and the two that all tasks have.

    Args:
        records: What :func:`submit_caption` returned.
        items: Metric to the item's maker.
    """
    all_items: dict[str, Callable[[C], Record]] = {
        **items,
        "unscored": lambda made: made.unscored(),
        "signature": lambda made: made.signature(),
    }
    return {
        metric: PendingRecord(lambda item=item: item(records()))  # type: ignore[misc]
        for metric, item in all_items.items()
    }
