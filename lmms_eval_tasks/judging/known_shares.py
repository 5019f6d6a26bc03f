"""Reasons not to ask the judge, known before the first request: missing captions, or the cost.

lmms-eval has all captions of a task before it hands the first one to ``process_results``. Where so
many are missing that the score will be ``nan`` whatever the judge says, the judge is not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.cost import LIMIT_REACHED
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Doc
from lmms_eval_captions.lmms_eval_tasks.judging.cost_check import WAYS_OUT, expected_cost
from lmms_eval_captions.lmms_eval_tasks.judging.reasons import NOT_ASKED
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.records import Kind
from lmms_eval_captions.lmms_eval_tasks.signature import Share
from lmms_eval_captions.model_wrappers.no_caption import DroppedCaption, NoCaption, says_nothing

_PADDING: Final = "__padding_only__"
"""lmms-eval's mark of a request that keeps a process without documents busy."""
_HELP: Final = (
    "Add the captions, or score the others alone (--model caption_file with missing=drop), or "
    "raise the limit"
)


def why_not_ask(
    benchmark: Benchmark[Any, Any], docs: Sequence[Doc], captions: Mapping[int, str]
) -> tuple[str, str, Kind] | None:
    """Return why the judge is not asked about a task, advice, and the kind; ``None`` if it is.

    No score is possible, or judging these captions costs more than the limit.

    Args:
        benchmark: The task's.
        docs: All documents of the task, in lmms-eval's order.
        captions: Index of a document to its caption, those of this process.
    """
    try:
        settings = SESSION.settings()
    except SettingsError:
        return None  # every record says so
    why_nan = why_no_score(
        benchmark,
        docs,
        captions,
        settings.max_unscored,
        rank=settings.rank,
        world_size=settings.world_size,
    )
    if why_nan is not None:
        return f"{NOT_ASKED}{why_nan}", _HELP, "not asked"
    cost = expected_cost(benchmark, docs, settings, captions)
    if cost is None or settings.max_cost_usd is None:
        return None
    expected = SESSION.expected_cost.plus(*cost)
    limit_usd = settings.max_cost_usd / settings.world_size
    if expected.usd > limit_usd:
        words = f"{LIMIT_REACHED}{limit_usd:g} is not enough: judging takes {expected.words}"
        return words, WAYS_OUT, "limit"
    SESSION.expected_cost = expected
    return None


def why_no_score(
    benchmark: Benchmark[Any, Any],
    docs: Sequence[Doc],
    captions: Mapping[int, str],
    max_unscored: float,
    *,
    rank: int = 0,
    world_size: int = 1,
) -> str | None:
    """Return why no score is possible whatever the judge replies, ``None`` if one is.

    Of several processes' captions only this one's are known: the others are assumed to exist.
    """
    if not benchmark.counts_ahead:
        return None
    missing, empty, dropped = [], [], []
    for index, text in captions.items():
        if isinstance(text, DroppedCaption):
            dropped.append(index)
        elif isinstance(text, NoCaption):
            missing.append(index)
        elif not benchmark.knows_silence and says_nothing(text):
            empty.append(index)
    if not missing and not empty:
        return None
    others = _others(captions, len(docs), rank=rank, world_size=world_size)
    counted = {*captions, *others}.difference(dropped)
    n_questions, n_unscored = (
        sum(len(benchmark.questions(docs[index])) for index in indices)
        for indices in (counted, [*missing, *empty])
    )
    if not Share(n_unscored, n_questions).exceeds(max_unscored):
        return None
    kinds = {"missing": len(missing), "empty": len(empty)}
    return (
        f"{' and '.join(f'{n:,} {kind}' for kind, n in kinds.items() if n)} of {len(counted):,} "
        f"captions leave {n_unscored:,} of {n_questions:,} questions unscored, at most "
        f"{max_unscored:.2%} may be (LMMS_CAPTIONS_MAX_UNSCORED)"
    )


def first_answers(instances: Iterable[Any]) -> dict[int, str]:
    """Return the caption of each document, from lmms-eval's filtered requests."""
    answers: dict[int, str] = {}
    for instance in instances:
        metadata = instance.metadata
        if isinstance(metadata, Mapping) and metadata.get(_PADDING):
            continue
        answer = next(iter(instance.filtered_resps.values()), None)
        if isinstance(answer, str):
            answers.setdefault(instance.doc_id, answer)
    return answers


def _others(captions: Iterable[int], n_docs: int, *, rank: int, world_size: int) -> list[int]:
    """Return the documents that other processes may have: the most that there can be.

    Rank r of w has every w-th document, from the one at ``offset + r`` on. There is none where this
    one's next would be; before that, processes before this one may have one more than it has.
    """
    if world_size == 1:
        return []
    own = set(captions)
    start, end = min(own) - rank, max(own) + world_size
    return [index for index in range(max(0, start), min(n_docs, end)) if index not in own]
