"""Captions whose questions wait to be chosen, and what was said of those that were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.sampling.sample_of_caption import Sample

if TYPE_CHECKING:
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from lmms_eval_captions.judges.endpoint.request import Chain

J = TypeVar("J")


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
