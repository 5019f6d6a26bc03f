"""Captions that wait until all are there; then as many questions are asked as the headline needs.

Each question has a random number that follows from task, video and text, and the smallest are
asked: a larger sample contains the smaller one, a rerun asks the same, and captioners are compared
on the same questions.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain
from math import isfinite, sqrt
from typing import Any, Final, Generic, TypeVar

import numpy as np
import pandas as pd
from loguru import logger

from lmms_eval_captions.judges.endpoint.request import Chain
from lmms_eval_captions.judges.errors import JudgeStoppedError, SettingsError
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import Sample, Values
from lmms_eval_captions.lmms_eval_tasks.sampling.named_models import (
    Model,
    parse_models,
    split_address,
)
from lmms_eval_captions.lmms_eval_tasks.sampling.weights import (
    Estimate,
    can_be_weighted,
    estimate,
    weighted_run,
)

J = TypeVar("J", bound=Judgement)

FEW: Final = 400
"""Questions up to which all are asked, and which are asked first."""
_FIRST: Final = 0.01
"""Share of the questions that is asked first if that is more."""
_AIM: Final = 0.95
"""Share of the allowed variance that the next questions aim at."""
_NEARLY_ALL: Final = 0.9
"""Share of the questions from which on all are asked."""
_MOST_UNSCORED: Final = 0.2
"""Largest share of unscored questions with which sampling goes on."""
_VARIABLE: Final = "LMMS_CAPTIONS_CHEAP_JUDGE"


def cheap_judge(settings: JudgeSettings, judge: str) -> Model | None:
    """Return the judge that answers every question, ``None`` without one.

    Raises:
        SettingsError: If it cannot be asked, or is the judge itself, by its name.
    """
    if settings.cheap_judge is None:
        return None
    model, *others = parse_models(_VARIABLE, settings.cheap_judge, settings.endpoint)
    if others:
        raise SettingsError(f"{_VARIABLE}: expected one model, got {len(others) + 1}")
    if model.name == judge:
        raise SettingsError(
            f"{_VARIABLE}: expected another model than the judge, got {judge!r} for both"
        )
    return model


def sample_words(settings: JudgeSettings) -> str:
    """Return how many of the questions are asked, empty for all."""
    if settings.precision is None:
        return ""
    cheap = settings.cheap_judge
    asked = f", all of them asked of {split_address(cheap)[0]}" if cheap else ""
    return f"as many questions as give the headline within {settings.precision:g} points{asked}"


def can_be_sampled(benchmark: Benchmark[Any, Any]) -> bool:
    """Return whether a sample of the questions gives a benchmark's headline."""
    headline = benchmark.metrics[benchmark.headline]
    is_ratio = can_be_weighted(headline) and not headline.reads_fields
    return is_ratio and benchmark.counts_ahead and benchmark.measure is None


@dataclass(slots=True, eq=False)
class PendingCaption(Generic[J]):
    """A caption whose questions are not chosen yet."""

    task: str
    video_id: str
    names: Sequence[str]
    """Texts of the questions."""
    n_runs: int
    chains: Sequence[Chain[Sequence[J]]]
    """Requests to the judge, those of the first run first."""
    submit: Callable[[Sequence[Chain[Sequence[J]]]], Future[list[Sequence[J]]]]
    """Hands some of the chains to the judge; never waits."""
    cheap: Future[list[Sequence[J]]] | None
    """Judgements of the cheap judge, if there is one, on all questions in one judge run."""
    answered: dict[int, Sequence[J]] = field(default_factory=dict)
    """Index of a chain to its judgements."""
    sample: Sample | None = None
    """The asked questions, ``None`` until they are answered."""

    def draws(self) -> list[float]:
        """Return a random number in [0, 1) for each question, always the same."""
        keys, seen = [], Counter[str]()
        for name in self.names:
            # Two questions with the same text have different numbers.
            seen[name] += 1
            text = f"{self.task}\0{self.video_id}\0{name}\0{seen[name]}"
            digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            keys.append(int.from_bytes(digest[:7], "big") / 2.0**56)
        return keys


class SamplingPlans:
    """Captions of a run, by benchmark; all are sampled once the first is waited for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By the identity of its benchmark, as variants share a name.
        self._open: dict[int, _Plan] = {}

    def hold(
        self, benchmark: Benchmark[Any, J], caption: PendingCaption[J], settings: JudgeSettings
    ) -> Callable[[], None]:
        """Take a caption; return what waits for its ``sample`` and raises what ended judging."""
        with self._lock:
            plan = self._open.setdefault(id(benchmark), _Plan(benchmark, settings))
            plan.captions.append(caption)

        def wait() -> None:
            with self._lock:
                plans, self._open = list(self._open.values()), {}
            for of_benchmark in plans:
                # A daemon, so that Ctrl-C does not wait for it.
                threading.Thread(target=of_benchmark.run, daemon=True).start()
            plan.done.result()

        return wait


class _Plan:
    """Captions of a benchmark's tasks in one process, whose questions are asked in part."""

    def __init__(self, benchmark: Benchmark[Any, Any], settings: JudgeSettings) -> None:
        self.captions: list[PendingCaption[Any]] = []
        self.done: Future[None] = Future()
        self._benchmark = benchmark
        self._settings = settings

    def run(self) -> None:
        """Ask questions until the headline is known closely enough, then set ``done``."""
        try:
            # A rerun asks the same, whatever the order in which threads hand captions in.
            self.captions.sort(key=lambda c: (c.task, c.video_id, *c.names))
            self._sample(self._cheap_values())
            self.done.set_result(None)
        except BaseException as error:  # noqa: BLE001 - raised at every caption that waits
            self.done.set_exception(error)

    def _cheap_values(self) -> list[dict[str, Values]]:
        """Wait for the cheap judge, and return the values that metrics read of each caption.

        Raises:
            JudgeStoppedError: If it gave hardly any verdict: a larger sample would be paid for.
        """
        judged = [[*chain.from_iterable(c.cheap.result())] for c in self.captions if c.cheap]
        reasons = Counter(j.reason for judgements in judged for j in judgements if j.reason)
        n = sum(map(len, judged))
        if reasons.total() > _MOST_UNSCORED * n:
            raise JudgeStoppedError(
                f"the cheap judge ({_VARIABLE}) gave no verdict on {reasons.total():,} of {n:,} "
                "questions, and the judge was asked none: correct that or unset it; all replies "
                f"are kept. The most frequent reason: {reasons.most_common(1)[0][0]}"
            )
        return [
            {
                name: [[*chain.from_iterable(map(metric.values, caption))]]
                for name, metric in self._benchmark.metrics.items()
            }
            for caption in judged
        ]

    def _sample(self, cheap: Sequence[Mapping[str, Values]]) -> None:
        # Each process judges captions of its own: the mean over all has a narrower interval.
        half_width = (self._settings.precision or 0.0) * sqrt(self._settings.world_size)
        table = pd.DataFrame(
            [(caption.task, key) for caption in self.captions for key in caption.draws()],
            columns=["task", "key"],
        )
        by_task = table.groupby("task").key
        rank, size = by_task.rank(method="first"), by_task.transform("size")
        ends, n = np.cumsum([len(caption.names) for caption in self.captions]), len(table)
        n_wanted: float = max(FEW, _FIRST * n)
        while True:
            share = 1.0 if n_wanted >= _NEARLY_ALL * n else n_wanted / n
            n_of_task = np.minimum(size, np.maximum(2, np.ceil(share * size)))
            weight = np.where(rank <= n_of_task, size / n_of_task, 0.0)
            n_asked = int(np.count_nonzero(weight))
            weights = [of_caption.tolist() for of_caption in np.split(weight, ends[:-1])]
            self._ask(weights)
            samples = [
                Sample(weights=of_caption, cheap=cheap[index] if cheap and share < 1 else {})
                for index, of_caption in enumerate(weights)
            ]
            estimated = self._estimate(samples)
            if estimated.trust:
                samples = [replace(sample, lam=estimated.trust) for sample in samples]
                estimated = self._estimate(samples)
            is_enough = estimated.half_width <= half_width
            if n_asked == n or is_enough or self._has_too_few_verdicts():
                break
            n_wanted = 2 * n_asked
            if isfinite(estimated.half_width):
                goal = _AIM * (half_width / estimated.half_width) ** 2
                n_wanted = max(n_asked + 1, 1 / (goal * (1 / n_asked - 1 / n) + 1 / n))
        for caption, sample in zip(self.captions, samples, strict=True):
            caption.sample = sample
        logger.info(
            "{}: {:,} of {:,} questions were asked, which gives {} within {:.3f} points of what "
            "all of this process's would give (95%){}",
            ", ".join(table.task.unique()),
            n_asked,
            n,
            self._benchmark.headline,
            estimated.half_width,
            f"; trust in the cheap judge {samples[0].lam:.2f} of 1" if cheap else "",
        )

    def _ask(self, weights: Sequence[Sequence[float]]) -> None:
        """Have the chosen questions answered, and those alone that were not before."""
        asked = []
        for caption, of_caption in zip(self.captions, weights, strict=True):
            indices = [
                index
                for index, weight in enumerate([*of_caption] * caption.n_runs)
                if weight > 0 and index not in caption.answered
            ]
            if indices:
                future = caption.submit([caption.chains[index] for index in indices])
                asked.append((caption, indices, future))
        for caption, indices, future in asked:
            caption.answered.update(zip(indices, future.result(), strict=True))

    def _has_too_few_verdicts(self) -> bool:
        """Return whether there will be no score, so that no more is paid for."""
        answers = (caption.answered.values() for caption in self.captions)
        judged = [j for answered in answers for judgements in answered for j in judgements]
        n_unscored = sum(judgement.reason is not None for judgement in judged)
        return n_unscored > max(_MOST_UNSCORED, self._settings.max_unscored) * len(judged)

    def _estimate(self, samples: Sequence[Sample]) -> Estimate:
        """Return the headline by what is answered so far."""
        benchmark = self._benchmark
        metric = benchmark.metrics[benchmark.headline]
        tasks = list(dict.fromkeys(caption.task for caption in self.captions))
        is_pooled = bool(benchmark.pooled_group) and {*tasks} == {*benchmark.tasks}
        nothing = (None,) * metric.n_values
        captions = []
        for caption, sample in zip(self.captions, samples, strict=True):
            n = len(caption.names)
            answers = [caption.answered.get(index) for index in range(caption.n_runs * n)]
            values = [metric.values(answer[0]) if answer else nothing for answer in answers]
            runs = [
                weighted_run(metric, benchmark.headline, [*chain.from_iterable(of_run)], sample)
                for of_run in (values[at : at + n] for at in range(0, len(values), n))
            ]
            stratum = tasks.index(caption.task)
            captions.append((0 if is_pooled else stratum, stratum, runs))
        return estimate(metric, captions)
