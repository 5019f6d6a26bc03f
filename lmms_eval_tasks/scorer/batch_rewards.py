"""The rewards of one batch, and what becomes of completions that have no verdict."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from statistics import fmean
from typing import Final

from loguru import logger

from lmms_eval_captions.judges.errors import JudgeStoppedError

_MOST_BATCHES: Final = 3
_MOST_COMPLETIONS: Final = 16
"""Batches in a row without a single verdict, and completions in them, after which training on
nothing ends."""
_MOST_ALONE: Final = 256
"""The same where each completion comes alone: of a hundred that are under way at once, all of those
without a verdict may be the first to end."""
_N_REASONS: Final = 3
_N_LATEST: Final = 1024
"""Rewards that are known of earlier calls."""


@dataclass(frozen=True, slots=True)
class BatchRewards:
    """The rewards of the completions of one call."""

    clip_ids: Sequence[str]
    rewards: Sequence[float | None]
    """``None`` where there is no verdict."""
    reasons: Mapping[str, int]
    """Why questions are unscored, to the number of them."""
    n_questions: int = 0
    """Questions about completions that have a verdict."""
    n_unscored: int = 0
    """Those without one."""

    @property
    def n_missing(self) -> int:
        """Completions without a verdict."""
        return sum(reward is None for reward in self.rewards)

    @property
    def is_empty(self) -> bool:
        """Whether there are completions, and none has a verdict."""
        return self.n_missing == len(self.rewards) > 0

    @property
    def scored(self) -> list[tuple[str, float]]:
        """Clip and reward of each completion that has a verdict."""
        pairs = zip(self.clip_ids, self.rewards, strict=True)
        return [(clip_id, reward) for clip_id, reward in pairs if reward is not None]

    def filled(self) -> list[float | None]:
        """The rewards, with the mean of the clip's others, else of all, where there is none."""
        scored = self.scored
        return [
            mean_of_others(clip_id, scored) if reward is None else reward
            for clip_id, reward in zip(self.clip_ids, self.rewards, strict=True)
        ]

    @property
    def why(self) -> str:
        """The commonest reasons."""
        commonest = Counter(self.reasons).most_common(_N_REASONS)
        return ", ".join(f"{reason} ({n})" for reason, n in commonest)


def mean_of_others(clip_id: str, scored: Sequence[tuple[str, float]]) -> float | None:
    """The mean of a clip's rewards, else of all.

    Args:
        clip_id: The clip.
        scored: Clip and reward of each completion.

    Returns:
        ``None`` where there are none.

    >>> mean_of_others("a", [("a", 1.0), ("b", 0.0)]), mean_of_others("c", [("a", 1.0), ("b", 0.0)])
    (1.0, 0.5)
    """
    rewards = [reward for other, reward in scored if other == clip_id]
    rewards = rewards or [reward for _, reward in scored]
    return fmean(rewards) if rewards else None


class LatestRewards:
    """What rollouts were given, for those that have no verdict and are handed over one by one."""

    def __init__(self) -> None:
        self._rewards: deque[tuple[str, float]] = deque(maxlen=_N_LATEST)
        self._lock = threading.Lock()
        self._numbers = count()
        self._under_way: set[int] = set()

    def extend(self, scored: Sequence[tuple[str, float]]) -> None:
        """Take notice of clips and their rewards."""
        with self._lock:
            self._rewards.extend(scored)

    def begin(self) -> int:
        """One more rollout is under way; its number."""
        with self._lock:
            number = next(self._numbers)
            self._under_way.add(number)
            return number

    def end(self, number: int) -> frozenset[int]:
        """A rollout has its verdict, or will have none; once more does nothing.

        Returns:
            Those that are under way.
        """
        with self._lock:
            self._under_way.discard(number)
            return frozenset(self._under_way)

    def is_worth_waiting(self, others: Collection[int]) -> bool:
        """Whether no reward is known yet, and one of these rollouts may still have one."""
        with self._lock:
            return not self._rewards and not self._under_way.isdisjoint(others)

    def mean_of(self, clip_id: str) -> float | None:
        """The mean of a clip's latest rewards, else of all; ``None`` where there are none."""
        with self._lock:
            return mean_of_others(clip_id, list(self._rewards))


class MissingRewards:
    """Says what is missing, once a batch, and ends training on nothing.

    Args:
        name: What the reward is called.
        words: What becomes of completions without a verdict.
        alone: Whether each completion comes alone, and not in batches.
    """

    def __init__(self, name: str, words: str, *, alone: bool = False) -> None:
        self._name = name
        self._words = words
        self._words_of_none = words if alone else "none has: they are left out"
        self._most_batches = _MOST_ALONE if alone else _MOST_BATCHES
        self._most_completions = _MOST_ALONE if alone else _MOST_COMPLETIONS
        self._n_batches = 0
        self._n_completions = 0

    def see(self, batch: BatchRewards, *, before: str | None, now: str | None) -> None:
        """Take notice of a batch.

        Args:
            batch: Its rewards.
            before: Why the judge could not be asked when the batch began, ``None`` if it could.
            now: The same after it.

        Raises:
            JudgeStoppedError: If the judge had stopped before and something is missing, a verdict
                on a single question, say, or has by now and all is; or if all was missing for
                several batches.
        """
        n_missing, n = batch.n_missing, len(batch.rewards)
        self._count(batch)
        if not n_missing and not batch.n_unscored:
            return
        stopped = before or (now if batch.is_empty else None)
        if stopped is not None:
            raise JudgeStoppedError(
                f"{n_missing} of {n} completions have no reward, and {batch.n_unscored} of "
                f"{batch.n_questions} questions about the others no verdict; none would have one "
                f"from now on: {stopped}"
            )
        if not n_missing:
            logger.warning(
                "{}: {} of {} questions are unscored, rewards are those of the others: {}",
                self._name,
                batch.n_unscored,
                batch.n_questions,
                batch.why,
            )
            return
        is_over = self._n_completions >= self._most_completions
        if is_over and self._n_batches >= self._most_batches:
            raise JudgeStoppedError(
                f"expected rewards, got none in {self._n_batches} batches in a row: {batch.why}; "
                "see that the judge answers, and that time_budget_s is enough"
            )
        words = self._words_of_none if batch.is_empty else self._words
        logger.warning(
            "{}: {} of {} completions have no verdict, {}: {}",
            self._name,
            n_missing,
            n,
            words,
            batch.why,
        )

    def _count(self, batch: BatchRewards) -> None:
        self._n_batches = self._n_batches + 1 if batch.is_empty else 0
        self._n_completions = self._n_completions + len(batch.rewards) if batch.is_empty else 0
