"""Reasons not to ask the judge, known before the first request: missing captions, or the cost.

lmms-eval has all captions of a task before it hands the first one to ``process_results``. Where so
many are missing that the score will be ``nan`` whatever the judge says, the judge is not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.cost import LIMIT_REACHED
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Doc
from lmms_eval_captions.lmms_eval_tasks.cost_check import WAYS_OUT, expected_cost
from lmms_eval_captions.lmms_eval_tasks.reasons import NOT_ASKED
from lmms_eval_captions.lmms_eval_tasks.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.signature import Share
from lmms_eval_captions.model_wrappers.no_caption import DroppedCaption, NoCaption, says_nothing

_PADDING: Final = "__padding_only__"
"""lmms-eval's mark of a request that keeps a process without documents busy."""


@dataclass(frozen=True, slots=True)
class KnownShare:
    """Share of a task that has no verdict, whatever the judge replies."""

    n_captions: int
    """Captions of the task; an upper bound if other processes have some of them."""
    n_missing: int
    n_empty: int
    """Captions without a word, where the benchmark has no verdict for one that says nothing."""
    n_questions: int
    """Questions about all captions that count."""
    n_unscored: int
    """Questions about missing or empty captions."""

    def is_nan(self, max_unscored: float) -> bool:
        """Return True if no score is possible.

        Args:
            max_unscored: Largest share of unscored questions that still gives a score, in [0, 1].
        """
        return Share(self.n_unscored, self.n_questions).exceeds(max_unscored)

    def words(self, max_unscored: float) -> str:
        """Return why no score is possible, in half a sentence."""
        parts = [
            f"{n:,} {words}"
            for n, words in ((self.n_missing, "missing"), (self.n_empty, "empty"))
            if n
        ]
        return (
            f"{' and '.join(parts)} of {self.n_captions:,} captions leave {self.n_unscored:,} of "
            f"{self.n_questions:,} questions unscored, at most {max_unscored:.2%} may be "
            "(LMMS_CAPTIONS_MAX_UNSCORED)"
        )


HELP: Final = (
    "Add the captions, or score the others alone (--model caption_file with missing=drop), or "
    "raise the limit"
)
"""Advice if no score is possible."""


def why_not_ask(
    benchmark: Benchmark[Any, Any], docs: Sequence[Doc], captions: Mapping[int, str]
) -> tuple[str, str] | None:
    """Return why the judge is not asked about a task, and advice; ``None`` if it is.

    No score is possible, or judging these captions costs more than the limit.

    Args:
        benchmark: The task's.
        docs: All documents of the task, in lmms-eval's order.
        captions: Position of a document to its caption, those of this process.
    """
    try:
        settings = SESSION.settings()
    except SettingsError:
        return None  # every record says so
    known = known_share(
        benchmark, docs, captions, rank=settings.rank, world_size=settings.world_size
    )
    if known is not None and known.is_nan(settings.max_unscored):
        return f"{NOT_ASKED}{known.words(settings.max_unscored)}", HELP
    cost = expected_cost(benchmark, docs, settings, captions)
    if cost is None or settings.max_cost_usd is None:
        return None
    expected = SESSION.expected_cost.plus(*cost)
    limit_usd = settings.max_cost_usd / settings.world_size
    if expected.usd > limit_usd:
        words = f"{LIMIT_REACHED}{limit_usd:g} is not enough: judging takes {expected.words}"
        return words, WAYS_OUT
    SESSION.expected_cost = expected
    return None


def known_share(
    benchmark: Benchmark[Any, Any],
    docs: Sequence[Doc],
    captions: Mapping[int, str],
    *,
    rank: int,
    world_size: int,
) -> KnownShare | None:
    """Return the share of a task without a verdict, ``None`` if there is none.

    Of several processes' captions only this one's are known: the others are taken to be there.

    Args:
        benchmark: The task's.
        docs: All documents of the task, in lmms-eval's order.
        captions: Position of a document to its caption, those of this process.
        rank: This process's.
        world_size: Number of processes.
    """
    if not benchmark.counts_ahead:
        return None
    missing = [at for at, text in captions.items() if _is_missing(text)]
    empty = [
        at
        for at, text in captions.items()
        if not benchmark.knows_silence and not isinstance(text, NoCaption) and says_nothing(text)
    ]
    if not missing and not empty:
        return None
    others = _others(captions, len(docs), rank=rank, world_size=world_size)
    dropped = {at for at, text in captions.items() if isinstance(text, DroppedCaption)}
    counted = [at for at in (*captions, *others) if at not in dropped]
    return KnownShare(
        n_captions=len(counted),
        n_missing=len(missing),
        n_empty=len(empty),
        n_questions=_n_questions(benchmark, docs, counted),
        n_unscored=_n_questions(benchmark, docs, [*missing, *empty]),
    )


def first_answers(instances: Iterable[Any]) -> dict[int, str]:
    """Position of each document to its caption, from lmms-eval's filtered requests."""
    answers: dict[int, str] = {}
    for instance in instances:
        metadata = instance.metadata
        if isinstance(metadata, Mapping) and metadata.get(_PADDING):
            continue
        answer = next(iter(instance.filtered_resps.values()), None)
        if isinstance(answer, str):
            answers.setdefault(instance.doc_id, answer)
    return answers


def _is_missing(caption: str) -> bool:
    return isinstance(caption, NoCaption) and not isinstance(caption, DroppedCaption)


def _others(captions: Iterable[int], n_docs: int, *, rank: int, world_size: int) -> list[int]:
    """Positions of the documents that other processes may have: the most that there can be.

    Rank r of w has every w-th document, from the one at ``offset + r`` on. There is none where this
    one's next would be; before that, processes before this one may have one more than it has.
    """
    if world_size == 1:
        return []
    own = set(captions)
    start, end = min(own) - rank, max(own) + world_size
    return [at for at in range(max(0, start), min(n_docs, end)) if at not in own]


def _n_questions(
    benchmark: Benchmark[Any, Any], docs: Sequence[Doc], positions: Iterable[int]
) -> int:
    return sum(len(benchmark.questions(docs[at])) for at in positions)
