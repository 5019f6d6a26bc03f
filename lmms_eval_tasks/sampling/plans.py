"""The samples of a process: one plan for each benchmark whose captions are handed in."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.sampling.held import HeldCaption
from lmms_eval_captions.lmms_eval_tasks.sampling.plan import SamplingPlan

J = TypeVar("J", bound=Judgement)


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
