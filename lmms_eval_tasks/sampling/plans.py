"""Captions held back until all are there, then asked in part: one plan for each benchmark."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from math import sqrt
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import numpy as np
from loguru import logger

from lmms_eval_captions.judges.endpoint.request import Chain
from lmms_eval_captions.judges.errors import JudgeStoppedError, SettingsError
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.named_models import Model, parse_models, split_address
from lmms_eval_captions.lmms_eval_tasks.records import Values
from lmms_eval_captions.lmms_eval_tasks.sampling.draw import Population, Sampled, sample
from lmms_eval_captions.lmms_eval_tasks.sampling.weights import (
    Sample,
    contributions,
    examples_of,
    is_mean,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]


J = TypeVar("J", bound=Judgement)


@dataclass(slots=True, eq=False)
class HeldCaption(Generic[J]):
    """One caption, and in time what was said of those of its questions that were chosen."""

    task: str
    video_id: str
    names: Sequence[str]
    """Shape (n_questions,): what tells each question from the others of its video."""
    n_runs: int
    chains: Sequence[Chain[Sequence[J]]]
    """Shape (n_runs * n_questions,): those of the first judge run first."""
    submit: Callable[[Sequence[Chain[Sequence[J]]]], Future[list[Sequence[J]]]]
    """Hands some of the chains to the judge; never waits."""
    cheap: Callable[[], Sequence[Sequence[J]]] | None
    """Waits for the cheap judge's judgements of all questions, in one judge run; ``None`` without
    one."""
    answered: dict[int, Sequence[J]] = field(default_factory=dict)
    """Place of a chain to its judgements."""
    asked: list[tuple[Sequence[int], Future[list[Sequence[J]]]]] = field(default_factory=list)
    """Places of chains that were handed to the judge, and what will settle them."""
    sample: Sample | None = None
    """What was chosen, ``None`` until it is."""

    @property
    def n_questions(self) -> int:
        """Questions about it."""
        return len(self.names)

    def ask(self, questions: Sequence[int]) -> None:
        """Hand questions to the judge, in every judge run; never waits.

        Args:
            questions: Their places.
        """
        places = [run * self.n_questions + at for run in range(self.n_runs) for at in questions]
        self.asked.append((places, self.submit([self.chains[place] for place in places])))

    def wait(self) -> None:
        """Wait for all that was asked.

        Raises:
            Exception: What ended judging.
        """
        while self.asked:
            places, future = self.asked[0]
            self.answered.update(zip(places, future.result(), strict=True))
            self.asked.pop(0)

    def judgements(self, question: int) -> list[Sequence[J]]:
        """What was said of a question, of each judge run that has an answer."""
        places = (run * self.n_questions + question for run in range(self.n_runs))
        return [self.answered[place] for place in places if place in self.answered]


def keys_of(captions: Sequence[HeldCaption[Any]]) -> NDArray[np.float64]:
    """A number in [0, 1) for each question of each caption: as if drawn, and always the same.

    It depends on the video and the question alone, so that samples of several captioners, and a
    larger one of the same, ask mostly the same questions.
    """
    numbers = []
    for caption in captions:
        start = blake2b(_encoded(f"{caption.task}\0{caption.video_id}"), digest_size=8)
        seen: dict[str, int] = {}
        for name in caption.names:
            # Two questions in the same words have numbers of their own.
            seen[name] = seen.get(name, 0) + 1
            digest = start.copy()
            digest.update(_encoded(f"\0{name}\0{seen[name]}"))
            numbers.append(int.from_bytes(digest.digest()[:7], "big") / 2.0**56)
    return np.array(numbers, dtype=np.float64)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_VARIABLE: Final = "LMMS_CAPTIONS_CHEAP_JUDGE"


def cheap_judge(settings: JudgeSettings, judge: str) -> Model | None:
    """The judge that answers every question, ``None`` where there is none.

    Args:
        settings: Those of the run.
        judge: Name of the judge that is asked a sample.

    Raises:
        SettingsError: If it cannot be asked, or is the judge itself.
    """
    text = settings.cheap_judge
    if text is None:
        return None
    models = parse_models(_VARIABLE, text, settings.endpoint)
    if len(models) > 1:
        raise SettingsError(f"{_VARIABLE}: expected one model, got {len(models)}")
    if models[0].name == judge:
        raise SettingsError(
            f"{_VARIABLE}: expected another model than the judge, got {models[0].name!r} for both"
        )
    return models[0]


def name_of(cheap: str) -> str:
    """The model's name in the setting, without its address.

    >>> name_of("small@http://me:secret@127.0.0.1:8000/v1#KEY"), name_of("small@2024")
    ('small', 'small@2024')
    """
    return split_address(cheap)[0]


def sample_words(settings: JudgeSettings) -> str:
    """How many of the questions are asked, empty where all are."""
    if settings.precision is None:
        return ""
    cheap = settings.cheap_judge
    return (
        f"as many questions as give the headline within {settings.precision:g} points"
        f"{f', all of them asked of {name_of(cheap)}' if cheap else ''}"
    )


_MOST_UNSCORED: Final = 0.2
"""Part of the questions on which a cheap judge may have no verdict."""


class HeldQuestions:
    """Those of all captions, and what the cheap judge said of each.

    Args:
        benchmark: The captions' own.
        captions: At least one.

    Raises:
        Exception: What ended the cheap judge's judging.
    """

    def __init__(
        self, benchmark: Benchmark[Any, Any], captions: Sequence[HeldCaption[Any]]
    ) -> None:
        self._benchmark = benchmark
        self._metric = benchmark.metrics[benchmark.headline]
        self._held = captions
        sizes = [caption.n_questions for caption in captions]
        self.starts: list[int] = [0, *np.cumsum(sizes).tolist()]
        """Place of each caption's first question."""
        self.captions: Places = np.repeat(np.arange(len(captions)), sizes)
        """Shape (n_questions,): the caption of each."""
        self.cheap: list[Mapping[str, Values]] | None = None
        """For each caption, what metrics read of the cheap judge's verdicts, in one judge run."""
        if all(caption.cheap is not None for caption in captions):
            judged = [
                list(chain.from_iterable(caption.cheap())) for caption in captions if caption.cheap
            ]
            _require_verdicts(list(chain.from_iterable(judged)))
            self.cheap = [_read(benchmark, judgements) for judgements in judged]

    def population(self) -> Population:
        """All of them, as a sample is drawn."""
        return Population(
            terms=self._terms(),
            tasks=self._tasks(),
            captions=self.captions,
            weights=self._weights(),
            has_means=self._has_means,
            control=self._control(),
            keys=keys_of(self._held),
            scale=self._metric.scale,
            reach=self._metric.span / self._metric.scale,
        )

    def by_caption(self, places: Places) -> dict[int, list[int]]:
        """Caption to the places among its questions of those that are here."""
        found: dict[int, list[int]] = {}
        for place in places.tolist():
            caption = int(self.captions[place])
            found.setdefault(caption, []).append(place - self.starts[caption])
        return found

    def pairs(self, places: Places) -> Floats:
        """What the judge's verdicts on these add, ``nan`` for none; (n_places, n_runs, 2)."""
        pairs = np.full((len(places), max(caption.n_runs for caption in self._held), 2), np.nan)
        for row, place in enumerate(places.tolist()):
            caption = int(self.captions[place])
            of_runs = self._held[caption].judgements(place - self.starts[caption])
            for run, judgements in enumerate(of_runs):
                values = [value for one in judgements for value in self._metric.values(one)]
                if any(value is not None for value in values):
                    pairs[row, run] = contributions(self._metric, values)[0]
        return pairs

    def _tasks(self) -> Places:
        names = dict.fromkeys(caption.task for caption in self._held)
        numbers = {task: number for number, task in enumerate(names)}
        return np.array([numbers[caption.task] for caption in self._held])[self.captions]

    def _terms(self) -> Places:
        """Tasks; one for all where the benchmark pools its tasks' questions, and all are here."""
        here = {caption.task for caption in self._held}
        is_pooled = bool(self._benchmark.pooled_group) and here == {*self._benchmark.tasks}
        tasks = self._tasks()
        return np.zeros_like(tasks) if is_pooled else tasks

    @property
    def _has_means(self) -> bool:
        return is_mean(self._metric, examples_of(self._metric))

    def _weights(self) -> Floats:
        """One over the number of a caption's questions where the metric is a mean of means."""
        if self._has_means:
            return np.asarray(1.0 / np.bincount(self.captions)[self.captions])
        return np.ones(len(self.captions))

    def _control(self) -> Floats | None:
        if self.cheap is None:
            return None
        runs = [of_metrics[self._benchmark.headline][0] for of_metrics in self.cheap]
        pairs = [pair for values in runs for pair in contributions(self._metric, values)]
        return np.array(pairs, dtype=np.float64)


def _require_verdicts(judgements: Sequence[Judgement]) -> None:
    """Raise where the cheap judge gave hardly any verdict: a larger sample would be paid for."""
    reasons = Counter(one.reason for one in judgements if one.reason is not None)
    n_unscored = reasons.total()
    if n_unscored > _MOST_UNSCORED * len(judgements):
        raise JudgeStoppedError(
            f"the cheap judge (LMMS_CAPTIONS_CHEAP_JUDGE) gave no verdict on {n_unscored:,} of "
            f"{len(judgements):,} questions, and the judge was asked none: mend that or unset it; "
            f"what was answered is kept. The most frequent reason: {reasons.most_common(1)[0][0]}"
        )


def _read(benchmark: Benchmark[Any, Any], judgements: Sequence[Judgement]) -> Mapping[str, Values]:
    """What each metric reads of a caption's judgements in one judge run."""
    return {
        name: [[value for one in judgements for value in metric.values(one)]]
        for name, metric in benchmark.metrics.items()
    }


class SamplingPlan(Generic[J]):
    """Captions of a benchmark's tasks, of whose questions a sample is judged.

    Args:
        benchmark: Whose tasks.
        half_width: How far the interval of the headline may reach to either side of what all
            questions would give, in points.
        most_unscored: Part of the questions that may have no verdict for there to be a score.
        rank: This process.
        world_size: Processes, each of which judges captions of its own: the interval of the mean
            over all is narrower than that of each by the root of their number.
    """

    def __init__(
        self,
        benchmark: Benchmark[Any, J],
        half_width: float,
        *,
        most_unscored: float,
        rank: int,
        world_size: int,
    ) -> None:
        self._most_unscored = most_unscored
        self._benchmark = benchmark
        self._half_width = half_width * sqrt(world_size)
        self._rank = rank
        self._captions: list[HeldCaption[J]] = []
        self._lock = threading.Lock()
        self._is_closed = False
        self._error: BaseException | None = None

    def add(self, caption: HeldCaption[J]) -> bool:
        """Take a caption; whether it came in time: once questions are chosen none is taken."""
        with self._lock:
            if not self._is_closed:
                self._captions.append(caption)
            return not self._is_closed

    def run(self) -> None:
        """Choose questions, ask them and wait, once; a later call waits for the first.

        Raises:
            Exception: What ended judging, at every call.
        """
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                try:
                    self._run()
                except BaseException as error:
                    self._error = error
                    raise
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        # Several threads hand captions in: a rerun, which is to ask the same, has another order.
        captions = sorted(self._captions, key=lambda one: (one.task, one.video_id, *one.names))
        if not captions:
            return
        questions = HeldQuestions(self._benchmark, captions)

        def ask(places: NDArray[np.intp]) -> NDArray[np.float64]:
            chosen = questions.by_caption(places)
            for caption, of_caption in chosen.items():
                captions[caption].ask(of_caption)
            for caption in chosen:
                captions[caption].wait()
            return questions.pairs(places)

        found = sample(
            questions.population(),
            ask,
            half_width=self._half_width,
            most_unscored=self._most_unscored,
        )
        self._note(captions, questions, found)

    def _note(
        self, captions: Sequence[HeldCaption[J]], questions: HeldQuestions, found: Sampled
    ) -> None:
        """Tell each caption what of it was asked."""
        drawn, cheap = found.drawn, questions.cheap
        for number, caption in enumerate(captions):
            places = slice(questions.starts[number], questions.starts[number + 1])
            caption.sample = Sample(
                weights=drawn.weights[places].tolist(),
                strata=drawn.strata[places].tolist(),
                rank=self._rank,
                lam=float(drawn.lam),
                # Where all were asked, the numbers are those of a run without a sample.
                cheap={} if cheap is None or drawn.n_asked == len(drawn.weights) else cheap[number],
            )
        logger.info(
            "{}: {:,} of {:,} questions were asked, which gives {} within {:.3f} points of what "
            "all of this process's would give (95%){}",
            ", ".join(dict.fromkeys(caption.task for caption in captions)),
            drawn.n_asked,
            len(drawn.weights),
            self._benchmark.headline,
            found.error.half_width(),
            "" if cheap is None else f"; trust in the cheap judge {drawn.lam:.2f} of 1",
        )


def can_be_sampled(benchmark: Benchmark[Any, Any]) -> bool:
    """Whether a sample of a benchmark's questions tells its headline.

    It does where a judge is asked, how many questions there are is known before, and the headline
    is a ratio of sums over verdicts.
    """
    headline = benchmark.metrics[benchmark.headline]
    is_told = headline.ratios is not None and not headline.reads_fields
    return is_told and benchmark.counts_ahead and benchmark.measure is None


class SamplingPlans:
    """Takes captions, and has all plans choose and ask once the first of them is waited for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[int, SamplingPlan[Any]] = {}
        """Benchmark, by what it is in memory, to its plan: variants share a name."""

    def hold(
        self, benchmark: Benchmark[Any, J], caption: HeldCaption[J], settings: JudgeSettings
    ) -> Callable[[], None]:
        """Take a caption; never waits.

        Args:
            benchmark: The caption's.
            caption: What is to be judged in part.
            settings: With ``precision``.

        Returns:
            What waits until the caption's ``sample`` says what was asked; it raises what ended
            judging.
        """
        with self._lock:
            plan = self._open.get(id(benchmark))
            if plan is None or not plan.add(caption):
                plan = SamplingPlan(
                    benchmark,
                    settings.precision or 0.0,
                    most_unscored=settings.max_unscored,
                    rank=settings.rank,
                    world_size=settings.world_size,
                )
                plan.add(caption)
                self._open[id(benchmark)] = plan

        def wait() -> None:
            self._run_all()
            plan.run()

        return wait

    def _run_all(self) -> None:
        """Have all plans begin, side by side: the endpoint is to have as much as it takes."""
        with self._lock:
            plans, self._open = list(self._open.values()), {}
        if len(plans) < 2:
            return
        # Daemons: Ctrl-C is to wait for none of them.
        threads = [threading.Thread(target=_run, args=(plan,), daemon=True) for plan in plans]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _run(plan: SamplingPlan[Any]) -> None:
    # What ends it is told to each caption that waits for the plan.
    with suppress(Exception):
        plan.run()
