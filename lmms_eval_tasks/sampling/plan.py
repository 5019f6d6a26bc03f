"""The sample of a benchmark's tasks in one process: what is asked once all captions are there."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from loguru import logger

from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.sampling.design import Sampled, sample
from lmms_eval_captions.lmms_eval_tasks.sampling.held import HeldCaption
from lmms_eval_captions.lmms_eval_tasks.sampling.questions import HeldQuestions
from lmms_eval_captions.lmms_eval_tasks.sampling.sample_of_caption import Sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

J = TypeVar("J", bound=Judgement)


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
