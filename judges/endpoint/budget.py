"""A limit on what judging may cost, which is never passed.

Before a request is sent its worst case is set aside; when the reply is there, what it did cost
takes its place. So what was billed and what is in flight stay within the limit together.
"""

from __future__ import annotations

import asyncio
import threading
from math import inf
from typing import Final

from lmms_eval_captions.judges.endpoint.answers.tokens import pictures_in
from lmms_eval_captions.judges.endpoint.prices import JudgeMode, Price, Prices
from lmms_eval_captions.judges.endpoint.request import Client, Reply, Request
from lmms_eval_captions.judges.endpoint.roles import WORDS, Role
from lmms_eval_captions.judges.errors import JudgeError, JudgeStoppedError

SAFE_CHARS_PER_TOKEN: Final = 2.0
"""Characters of a body that count as a token in a worst case. English text has more than 4; what is
not ASCII is escaped in a body, at 6 or more for one."""
LIMIT_REACHED: Final = f"{WORDS['judge'].limit}: $"
"""How the words begin of a judge's request that was not sent because of the limit."""
_TOKENS_AROUND: Final = 50
"""Tokens that a provider may count beside those of the texts."""
_LOOK_AGAIN_S: Final = 1.0
_MOST_TOKENS_FIELDS: Final = ("max_completion_tokens", "max_tokens")
_DEFAULT_MAX_TOKENS: Final = 16_384
"""Most output tokens where a request does not say."""
_MOST_EXCESS: Final = 100.0
"""Of one reply: its counts of tokens may be wrong."""


class Purse:
    """What several budgets of one process spend together, each from its own event loop."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.budgets: list[Budget] = []

    @property
    def taken_usd(self) -> float:
        """Billed, or set aside, by all of them; to be read under the lock."""
        return sum(budget.spent_usd + budget.reserved_usd for budget in self.budgets)

    @property
    def has_in_flight(self) -> bool:
        """Whether one of them may yet give back what it set aside; to be read under the lock."""
        return any(budget.has_in_flight for budget in self.budgets)


class Budget:
    """US dollars that may still be spent; belongs to one event loop.

    Args:
        limit_usd: Most that may be spent, > 0.
        prices: What tokens cost.
        mode: Whether requests are billed at the Batch API's price.
        spent_usd: What is spent of it already.
        role: What is asked, for messages.
        purse: What the limit is shared with; ``None`` where it is this budget's alone.
    """

    def __init__(
        self,
        limit_usd: float,
        prices: Prices,
        *,
        mode: JudgeMode = "now",
        spent_usd: float = 0.0,
        role: Role = "judge",
        purse: Purse | None = None,
    ) -> None:
        self._role: Role = role
        self._limit_usd = limit_usd
        self._prices = prices
        self._mode: JudgeMode = mode
        self._in_flight: dict[asyncio.Task[object] | None, float] = {}
        """Worst case of what each task has in flight."""
        self._turn = asyncio.Lock()
        self._settled = asyncio.Event()
        self.excess = 1.0
        """How many times its worst case a reply did cost, at most: how a model counts pictures may
        not be known. So much of each worst case is set aside."""
        self.spent_usd = spent_usd
        """Billed so far, or assumed to be where a reply was lost on the way."""
        self.reserved_usd = 0.0
        """Worst case of what is in flight."""
        self._purse = Purse() if purse is None else purse
        with self._purse.lock:
            self._purse.budgets.append(self)

    @property
    def has_in_flight(self) -> bool:
        """Whether something is set aside."""
        return bool(self._in_flight)

    def worst_case_usd(self, request: Request, attempt: int) -> float:
        """Most that a request can cost.

        Raises:
            JudgeStoppedError: If the model's price is not known.
        """
        model = request.model
        price = price_of(model, self._prices, self._role)
        params = request.params
        most = max(_count(params.get(name)) or 0.0 for name in _MOST_TOKENS_FIELDS)
        n_replies = _count(params.get("n"))
        n_pictures, n_letters = pictures_in(request.messages)
        cost = self._prices.cost_usd(
            model,
            input_tokens=(len(request.body(attempt)) - n_letters) / SAFE_CHARS_PER_TOKEN
            + n_pictures * price.image_tokens
            + _TOKENS_AROUND,
            output_tokens=(most or _DEFAULT_MAX_TOKENS) * (n_replies or 1),
            mode=self._mode,
        )
        return cost or 0.0

    async def reserve(self, cost_usd: float) -> None:
        """Set a worst case aside, in the order of asking; wait while others may yet cost less.

        Args:
            cost_usd: As :meth:`worst_case_usd` gives it; hand it to :meth:`settle` afterwards.

        Raises:
            JudgeStoppedError: If it would pass the limit though nothing else is in flight.
        """
        async with self._turn:
            while not self._set_aside(cost_usd):
                self._settled.clear()
                try:
                    await asyncio.wait_for(self._settled.wait(), _LOOK_AGAIN_S)
                except asyncio.TimeoutError:
                    self._settle_ended()

    def _set_aside(self, cost_usd: float) -> bool:
        """Set a worst case aside, if all that is taken stays within the limit.

        Raises:
            JudgeStoppedError: If it does not, and nothing is in flight that may give room.
        """
        with self._purse.lock:
            if self._purse.taken_usd + cost_usd <= self._limit_usd:
                self._in_flight[asyncio.current_task()] = cost_usd
                self.reserved_usd += cost_usd
                return True
            if not self._purse.has_in_flight:
                raise JudgeStoppedError(self._words(cost_usd))
            return False

    def settle(self, reserved_usd: float, billed_usd: float) -> None:
        """Put what a request did cost in the place of its worst case."""
        self._settle(asyncio.current_task(), reserved_usd, billed_usd)

    def _settle(
        self, task: asyncio.Task[object] | None, reserved_usd: float, billed_usd: float
    ) -> None:
        with self._purse.lock:
            self._in_flight.pop(task, None)
            self.reserved_usd = self.reserved_usd - reserved_usd if self._in_flight else 0.0
            self.spent_usd += billed_usd
        self._settled.set()

    def _settle_ended(self) -> None:
        """Count what tasks left behind that ended without settling: others would wait for ever."""
        for task, cost_usd in list(self._in_flight.items()):
            if task is not None and task.done():
                self._settle(task, cost_usd, cost_usd)

    def billed_usd(self, model: str, reply: Reply, worst_usd: float) -> float:
        """What a reply cost; its worst case at least where the endpoint does not say.

        So an odd count, or one too small to be true, never leaves more to be spent.
        """
        if not reply.input_tokens:
            return worst_usd
        cost = self._cost_usd(model, reply, reply.cached_tokens)
        if cost is None:
            return worst_usd
        if reply.is_estimated:
            return max(cost, worst_usd)
        if worst_usd:
            # What the next one costs that no cache helps.
            full = self._cost_usd(model, reply, 0) or 0.0
            self.excess = max(self.excess, min(_MOST_EXCESS, full / worst_usd))
        return cost

    def _cost_usd(self, model: str, reply: Reply, cached_tokens: int) -> float | None:
        return self._prices.cost_usd(
            model,
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
            cached_tokens=cached_tokens,
            mode=self._mode,
        )

    def _words(self, cost_usd: float) -> str:
        role = WORDS[self._role]
        return (
            f"{role.limit}: ${self._purse.taken_usd:.4f} of this process's "
            f"${self._limit_usd:.4f} are spent and the next request may cost ${cost_usd:.4f}: "
            f"{role.work} stopped. Everything answered is kept. Run the same command again with a "
            "higher limit to go on: only what is missing is asked"
        )


class CappedClient:
    """A client that sends nothing that could pass a budget.

    Args:
        client: What sends.
        budget: What may be spent.
    """

    def __init__(self, client: Client, budget: Budget) -> None:
        self._client = client
        self._budget = budget

    async def complete(self, request: Request, attempt: int, *, timeout_s: float) -> Reply:
        """As the client's, once its worst case is within the budget.

        Raises:
            JudgeStoppedError: Also where the budget is used up or a price is not known.
        """
        worst_usd = self._budget.worst_case_usd(request, attempt)
        reserved_usd = worst_usd * self._budget.excess
        await self._budget.reserve(reserved_usd)
        # What is cancelled or fails out of sight may have been billed.
        billed_usd = reserved_usd
        try:
            reply = await self._client.complete(request, attempt, timeout_s=timeout_s)
            billed_usd = self._budget.billed_usd(request.model, reply, worst_usd)
        except JudgeError as error:
            billed_usd = reserved_usd if error.may_be_billed else 0.0
            raise
        finally:
            self._budget.settle(reserved_usd, billed_usd)
        return reply

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()


def price_of(model: str, prices: Prices, role: Role = "judge") -> Price:
    """What a model costs, which must be known where there is a limit.

    Raises:
        JudgeStoppedError: If it is not.
    """
    price = prices.models.get(model)
    if price is None:
        limit = WORDS[role].limit
        raise JudgeStoppedError(
            f"{limit} is set and the price of {model!r} is not known: nothing "
            "was sent. Set LMMS_CAPTIONS_PRICES to a file such as `models: "
            f"{{{model}: {{input: 2.5, output: 10}}}}` (US dollars for a million tokens; 0 for "
            f"a server of your own), or unset {limit}"
        )
    return price


def _count(value: object) -> float | None:
    """A number of a request's parameters; ``None`` for what is none, or stands for no limit."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < inf else None
