"""Several budgets, each in an event loop of its own, spend from one purse."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lmms_eval_captions.judges.endpoint.budget import Budget, Purse
from lmms_eval_captions.judges.endpoint.prices import load_prices
from lmms_eval_captions.judges.errors import JudgeStoppedError


def test_all_that_is_taken_together_stays_within_the_limit() -> None:
    """Four loops reserve more than they are billed: each goes on until all of it is spent."""
    purse, limit_usd = Purse(), 1.0
    budgets = [Budget(limit_usd, load_prices(), purse=purse) for _ in range(4)]
    taken: list[float] = []

    async def spend(budget: Budget) -> None:
        while True:
            await budget.reserve(0.01)
            with purse.lock:
                taken.append(purse.taken_usd)
            await asyncio.sleep(0)
            budget.settle(0.01, 0.005)

    def run(budget: Budget) -> None:
        with pytest.raises(JudgeStoppedError, match="spent"):
            asyncio.run(asyncio.wait_for(spend(budget), 60))

    with ThreadPoolExecutor(4) as threads:
        for future in [threads.submit(run, budget) for budget in budgets]:
            future.result()
    assert max(taken) <= limit_usd + 1e-9
    assert sum(budget.spent_usd for budget in budgets) == pytest.approx(0.99, abs=0.011)
    assert purse.taken_usd == pytest.approx(sum(budget.spent_usd for budget in budgets))


def test_what_another_budget_gives_back_meanwhile_is_not_overlooked() -> None:
    """Its last request is billed less just as this one finds no room: judging does not stop."""
    settling = threading.Event()

    class Watched(Purse):
        @property
        def has_in_flight(self) -> bool:
            settling.set()
            settled.wait(0.2)  # all the time in the world, unless the purse is locked
            return super().has_in_flight

    settled = threading.Event()
    purse = Watched()
    one, two = (Budget(1.0, load_prices(), purse=purse) for _ in range(2))

    async def hold() -> None:
        await one.reserve(0.9)
        reserved.set()
        await asyncio.to_thread(settling.wait, 10)
        one.settle(0.9, 0.1)
        settled.set()

    async def ask() -> None:
        await asyncio.wait_for(two.reserve(0.5), 10)

    reserved = threading.Event()
    holder = threading.Thread(target=lambda: asyncio.run(hold()))
    holder.start()
    reserved.wait(10)
    asyncio.run(ask())
    holder.join(10)
    assert purse.taken_usd == pytest.approx(0.6)
