"""Requests that judging takes, counted before the first one is sent, and reasons to send none.

The protocols themselves ask: they get an ``ask`` that counts requests instead of sending them, so
prompts and steps are those of a run. lmms-eval has all captions of a task before it hands the first
one to ``process_results``: if they cost more than the limit, or so many are missing that the score
will be ``nan`` whatever the judge says, the judge is not asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final, TypeVar, cast

from loguru import logger

from lmms_eval_captions.judges.endpoint.asker import read_safely
from lmms_eval_captions.judges.endpoint.cost import LIMIT_REACHED, JudgeMode, Prices, load_prices
from lmms_eval_captions.judges.endpoint.replies import CHARS_PER_TOKEN, PICTURE_TOKENS
from lmms_eval_captions.judges.endpoint.request import (
    Ask,
    Asked,
    Reply,
    Request,
    Usage,
    is_offline,
)
from lmms_eval_captions.judges.endpoint.store import StoredReplies
from lmms_eval_captions.judges.errors import SettingsError, StoreError
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Doc, Task
from lmms_eval_captions.lmms_eval_tasks.judge_check import (
    LEAST_CAPTIONS,
    anchors_of,
    choose_questions,
)
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.records import Kind
from lmms_eval_captions.lmms_eval_tasks.signature import Share
from lmms_eval_captions.model_wrappers.no_caption import DroppedCaption, NoCaption, says_nothing

T = TypeVar("T")

TOKENS_A_MESSAGE: Final = 4
"""Tokens around each message of a chat."""
TYPICAL_ANSWER: Final = "The camera moves slowly from left to right."
"""Stand-in for a free answer, which the second step's prompt includes."""
_OTHER_OUTPUT_TOKENS: Final = 50
"""Tokens of a reply to a protocol that its benchmark says nothing of."""
N_ATTEMPTS: Final = 4
"""The first request, and the fresh ones that the engine sends after replies it cannot read."""
_MOST_DOCUMENTS: Final = 200
"""Documents of a task from which its cost is estimated before it is compared with the limit."""
_PADDING: Final = "__padding_only__"
"""lmms-eval's mark of a request that keeps a process without documents busy."""
_WAYS_OUT: Final = (
    "Raise the limit (LMMS_CAPTIONS_MAX_COST, or none), take a cheaper judge (LMMS_CAPTIONS_JUDGE) "
    "or judge a sample of the questions (LMMS_CAPTIONS_PRECISION=0.5)"
)
_READABLE: Final = "See that this folder can be read, then run the same command again"
_HELP: Final = (
    "Add the captions, or score the others alone (--model caption_file with missing=drop), or "
    "raise the limit"
)


@dataclass(slots=True)
class TaskEstimate:
    """Requests of one task."""

    task: str
    model: str
    runs: int
    typical_tokens: Mapping[str, int]
    """Protocol of a request to the tokens of a typical reply."""
    n_captions: int = 0
    n_missing: int = 0
    """Videos that have no caption in the file; their questions are left out."""
    why_nan: str = ""
    """Why no score is possible, and nothing is asked, with so many missing; mostly nothing."""
    n_questions: int = 0
    """Questions times judge runs."""
    n_calls: int = 0
    n_stored: int = 0
    """Requests whose reply is in the store already: they cost nothing."""
    n_again: int = 0
    """Calls for what the store holds unreadable replies to alone (``LMMS_CAPTIONS_ASK_AGAIN``)."""
    n_pictures: int = 0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    caption_chars: int = 0
    """Characters of all captions."""
    reply_tokens: dict[str, int] = field(default_factory=dict)
    """Protocol of each request that is sent to the tokens of a typical reply."""

    def cost_usd(self, prices: Prices, mode: JudgeMode) -> float | None:
        """US dollars, ``None`` if the judge's price is not known."""
        if not self.n_calls:
            return 0.0
        tokens = {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens}
        return prices.cost_usd(self.model, **tokens, mode=mode)


class RequestCounter:
    """Counts the requests of tasks; identical ones once, as they are sent once."""

    def __init__(self, settings: JudgeSettings) -> None:
        self._ask_again = settings.ask_again
        self._prices = load_prices(settings.prices)
        self._stored = StoredReplies(
            settings.cache / "replies", patience_s=0.0, endpoints=settings.serving_endpoints
        )
        self._seen: set[bytes] = set()
        self._readings: dict[str, Asked[Any]] = {}

    def count(
        self,
        benchmark: Benchmark[Any, Any],
        task: Task,
        config: JudgeConfig,
        captioned: Sequence[tuple[Doc, str]],
        *,
        is_real: bool,
        has_anchors: bool = False,
    ) -> TaskEstimate:
        """Return what judging a task's captions takes.

        Replies about captions of a run (``is_real``) may be in the store. With anchors, our own
        captions that show whether the judge judges count, too.
        """
        said = [(doc, caption) for doc, caption in captioned if not says_nothing(caption)]
        counts = TaskEstimate(
            task.name,
            config.model,
            config.runs,
            benchmark.output_tokens,
            n_captions=len(said),
            caption_chars=sum(len(caption) for _, caption in said),
        )
        check, anchors = benchmark.judge_check, []
        if check is not None and has_anchors and len(said) >= LEAST_CAPTIONS:
            documents = (benchmark.questions(doc) for doc, _ in captioned)
            anchors = anchors_of(check, choose_questions(check, documents))

        async def count_all() -> None:
            for doc, caption in said:
                name = f"{benchmark.video_names(doc)[0]} {task.aspect}"
                questions = [benchmark.unseen(question) for question in benchmark.questions(doc)]
                for chain in benchmark.chains(questions, caption, config):
                    counts.n_questions += len(await chain(self._ask(counts, name, is_real)))
            for question, text in anchors:
                chain = benchmark.ask(benchmark.unseen(question), text, config=config, run=0)
                await chain(self._ask(counts, text, is_real))

        asyncio.run(count_all())
        return counts

    def close(self) -> None:
        """Close the stores."""
        self._stored.close()

    def _ask(self, counts: TaskEstimate, name: str, is_real: bool) -> Ask:
        """Return what stands for the engine's ``ask`` in the chain of one question."""
        # What is made up must not look the same for all captions.
        document = name.encode("utf-8", "surrogatepass")
        may_be_stored = is_real

        async def ask(request: Request, read: Callable[[Reply], T | None]) -> Asked[T]:
            nonlocal is_real
            if is_offline(request.model):
                return self._typical(request, read)
            attempt = 0
            while True:
                key = request.key(attempt)
                reply = self._stored.get(request.model, key) if may_be_stored else None
                seen = key if is_real else key + document
                is_new = seen not in self._seen
                self._seen.add(seen)
                if reply is None:
                    break
                counts.n_stored += is_new
                value = read_safely(read, reply)
                if value is not None:
                    return _asked(value, reply)
                attempt += 1
            if attempt >= N_ATTEMPTS and not self._ask_again:
                return _UNREADABLE
            if is_new:
                self._add(counts, request)
                counts.n_again += attempt >= N_ATTEMPTS
            is_real = False
            return self._typical(request, read)

        return ask

    def _add(self, counts: TaskEstimate, request: Request) -> None:
        """Count a request that would be sent."""
        contents = (message["content"] for message in request.messages)
        parts = [p for c in contents for p in (c if isinstance(c, list) else [{"text": c}])]
        n_chars = sum(len(str(part.get("text", ""))) for part in parts)
        n_pictures = sum(part.get("type") == "image_url" for part in parts)
        price = self._prices.price(request.model)
        per_picture = PICTURE_TOKENS if price is None else price.image_tokens
        protocol = request.protocol.partition(":")[0]
        counts.n_calls += 1
        counts.n_pictures += n_pictures
        counts.input_tokens += (
            n_chars / CHARS_PER_TOKEN
            + TOKENS_A_MESSAGE * len(request.messages)
            + per_picture * n_pictures
        )
        reply_tokens = counts.typical_tokens.get(protocol, _OTHER_OUTPUT_TOKENS)
        counts.output_tokens += reply_tokens
        counts.reply_tokens[protocol] = reply_tokens

    def _typical(self, request: Request, read: Callable[[Reply], T | None]) -> Asked[T]:
        """Return the assumed reading of a protocol's replies; reading each would be slow."""
        if request.protocol not in self._readings:
            replies = (Reply(TYPICAL_ANSWER, "stop"), Reply(request.stand_in(), "stop"))
            readings = (_asked(read(reply), reply) for reply in replies)
            typical = next((asked for asked in readings if asked.value is not None), _UNREADABLE)
            self._readings[request.protocol] = typical
        return cast("Asked[T]", self._readings[request.protocol])


def _asked(value: T | None, reply: Reply) -> Asked[T]:
    return Asked(
        value, reply.text, None if value else "nothing to read", cached=False, usage=Usage()
    )


_UNREADABLE: Final[Asked[Any]] = _asked(None, Reply(""))


def typical_caption(task: Task) -> str:
    """Return a caption of the length that is typical for a task."""
    return ("word " * (task.caption_chars // 5 + 1))[: task.caption_chars]


def require_within_limit(
    tasks: Sequence[tuple[Benchmark[Any, Any], Sequence[Doc]]], settings: JudgeSettings
) -> None:
    """Log what judging captions of typical length of these documents is going to cost.

    Raises:
        SettingsError: If it is above the limit.
    """
    n_calls = usd = 0.0
    for benchmark, docs in tasks:
        captioned = [(doc, typical_caption(benchmark.task_of(doc))) for doc in docs]
        calls_of_task, usd_of_task = _expected(benchmark, settings, captioned, is_real=False)
        n_calls, usd = n_calls + calls_of_task, usd + usd_of_task
    if not n_calls or settings.max_cost_usd is None:
        return
    words = f"judging takes {_words(n_calls, usd)} (limit ${settings.max_cost_usd:g})"
    if usd > settings.max_cost_usd:
        raise SettingsError(f"{words}: nothing was asked. {_WAYS_OUT}")
    if settings.rank == 0:
        logger.info("{}, by prices of {}", words, load_prices(settings.prices).as_of)


def why_not_ask(
    benchmark: Benchmark[Any, Any], docs: Sequence[Doc], captions: Mapping[int, str]
) -> tuple[str, Kind] | None:
    """Return why the judge is not asked about a task, and the kind, ``None`` if it is; log it.

    ``docs`` are all documents in lmms-eval's order, ``captions`` those of this process by index.
    """
    kind: Kind
    try:
        settings = SESSION.settings()
        why_nan = why_no_score(benchmark, docs, captions, settings)
        captioned = [] if why_nan else [(docs[index], text) for index, text in captions.items()]
        expected = _expected(benchmark, settings, captioned, is_real=True)
    except SettingsError:
        return None  # every record says so
    except StoreError as error:
        words, advice, kind = str(error), _READABLE, "stopped"
    else:
        n_calls, usd = map(sum, zip(SESSION.expected_cost, expected, strict=True))
        limit_usd = inf if settings.max_cost_usd is None else settings.max_cost_usd
        limit_usd /= settings.world_size
        if why_nan is not None:
            words, advice, kind = f"not asked: {why_nan}", _HELP, "not asked"
        elif usd > limit_usd:
            words = (
                f"{LIMIT_REACHED}{limit_usd:g} is not enough: judging takes {_words(n_calls, usd)}"
            )
            advice, kind = _WAYS_OUT, "limit"
        else:
            SESSION.expected_cost = n_calls, usd
            return None
    logger.error("{}: {}. {}", benchmark.task_of(docs[0]).name, words, advice)
    return words, kind


def _words(n_calls: float, usd: float) -> str:
    return f"about {n_calls:,.0f} requests, about ${usd:,.2f}"


def _expected(
    benchmark: Benchmark[Any, Any],
    settings: JudgeSettings,
    captioned: Sequence[tuple[Doc, str]],
    *,
    is_real: bool,
) -> tuple[float, float]:
    """Estimate the number of requests and the US dollars that judging a task takes.

    Both are 0 if nothing is limited: without a limit, with a sample of questions (which ends at the
    limit), without a known price.
    """
    said = [(doc, text) for doc, text in captioned if not says_nothing(text)]
    if not said or settings.max_cost_usd is None or settings.precision is not None:
        return 0.0, 0.0
    config, prices = benchmark.judge_config(settings), load_prices(settings.prices)
    if not config.asks_endpoint or prices.price(config.model) is None:
        return 0.0, 0.0
    chosen = said[:: -(-len(said) // _MOST_DOCUMENTS)]
    task, scale = benchmark.task_of(chosen[0][0]), len(said) / len(chosen)
    with closing(RequestCounter(settings)) as counter:
        counts = counter.count(benchmark, task, config, chosen, is_real=is_real)
    return scale * counts.n_calls, scale * (counts.cost_usd(prices, settings.mode) or 0.0)


def why_no_score(
    benchmark: Benchmark[Any, Any],
    docs: Sequence[Doc],
    captions: Mapping[int, str],
    settings: JudgeSettings,
) -> str | None:
    """Return why no score is possible whatever the judge replies, ``None`` if one is.

    Of several processes' captions only this one's are known: the others are assumed to exist.
    """
    knows_silence = benchmark.silent is not None or benchmark.measure is not None
    kinds: dict[str, list[int]] = {"missing": [], "empty": [], "dropped": []}
    for index, text in captions.items():
        if isinstance(text, NoCaption):
            kinds["dropped" if isinstance(text, DroppedCaption) else "missing"].append(index)
        elif not knows_silence and says_nothing(text):
            kinds["empty"].append(index)
    dropped, unscored = kinds.pop("dropped"), [*kinds["missing"], *kinds["empty"]]
    if not benchmark.counts_ahead or not unscored:
        return None
    # Rank r of w has every w-th document, from the one at ``offset + r`` on. There is none where
    # this one's next would be; before that, ranks before this one may have one more than it has.
    first, end = min(captions) - settings.rank, max(captions) + settings.world_size
    others = range(max(0, first), min(len(docs), end)) if settings.world_size > 1 else ()
    counted = {*captions, *others}.difference(dropped)
    n_questions, n_unscored = (
        sum(len(benchmark.questions(docs[index])) for index in indices)
        for indices in (counted, unscored)
    )
    if not Share(n_unscored, n_questions).exceeds(settings.max_unscored):
        return None
    return (
        f"{' and '.join(f'{len(those):,} {kind}' for kind, those in kinds.items() if those)} of "
        f"{len(counted):,} captions leave {n_unscored:,} of {n_questions:,} questions unscored, at "
        f"most {settings.max_unscored:.2%} may be (LMMS_CAPTIONS_MAX_UNSCORED)"
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
