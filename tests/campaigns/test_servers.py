"""The campaign of hostile servers: whatever is sent, verdicts are right or unscored, and resume."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hostile_answers import LOSING, PASSING, READ, STOPPING, WORDS, all_of
from raw_server import Asked, RawServer, completion, http
from servers import HostileJudge, Scenario, run_scenario
from told_questions import N_CALLS

N_LONG = 150
"""Scenarios of the long campaign, ``python benchmarks/servers.py``."""


@pytest.mark.parametrize("seed", range(10))
def test_a_hostile_server_costs_no_wrong_verdict(seed: int) -> None:
    """Two scenarios of each benchmark, checked as the long campaign checks its 150."""
    outcome = run_scenario(Scenario.draw(seed))
    assert not outcome.failures


def test_the_long_campaign_leaves_nothing_to_chance() -> None:
    """Every benchmark has every kind of answer, and every answer is played."""
    scenarios = [Scenario.draw(seed) for seed in range(N_LONG)]
    for name in N_CALLS:
        mine = [scenario for scenario in scenarios if scenario.benchmark == name]
        assert len(mine) == N_LONG / len(N_CALLS)
        mixed_in = {answer for scenario in mine for answer in scenario.hostile}
        assert mixed_in & set(LOSING)
        assert len(mixed_in & set(PASSING)) > len(PASSING) / 2
        assert len(mixed_in & set(READ)) > len(READ) / 2
        assert any(scenario.stop for scenario in mine)
        assert any(scenario.hopeless_rate for scenario in mine)
    played = {answer for s in scenarios for answer in (*s.hostile, s.stop or "plain")}
    assert played == set(all_of())
    assert {s.stop for s in scenarios} >= set(STOPPING)


@pytest.mark.parametrize("benchmark", N_CALLS)
def test_the_campaign_can_fail(benchmark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply under another's key, and a verdict that nobody was told, are found out."""
    calm = replace(
        Scenario.draw(list(N_CALLS).index(benchmark)),
        hostile=("plain",),
        hopeless_rate=0.0,
        stop=None,
        n_questions=6,
    )
    assert not run_scenario(calm).failures
    answer = HostileJudge.__call__
    earlier: list[bytes] = []

    async def stale(judge: HostileJudge, asked: Asked, writer: asyncio.StreamWriter) -> None:
        earlier.append(asked.body)
        body = earlier[len(earlier) // 2]
        await answer(judge, replace(asked, body=body), writer)

    monkeypatch.setattr("servers.HostileJudge.__call__", stale)
    failures = run_scenario(calm).failures
    assert any("the store has" in failure for failure in failures)
    assert any("expected" in failure or "another's first" in failure for failure in failures)


def test_a_reason_that_is_not_true_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that the server did not say cost the campaign its pass."""
    losing = replace(Scenario.draw(3), hostile=("400",), hostile_rate=0.5, stop=None)
    assert not run_scenario(losing).failures
    monkeypatch.setitem(WORDS, "400", ("something else",))
    assert any("lost for" in failure for failure in run_scenario(losing).failures)


def test_the_raw_server_says_what_it_is_told() -> None:
    """Byte for byte, with a length that may be a lie."""

    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(http(completion("yes"), n_bytes=7))

    async def ask(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
        head = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        return head

    with RawServer(answer) as server:
        assert b"Content-Length: 7\r\n" in asyncio.run(ask(server.port))
