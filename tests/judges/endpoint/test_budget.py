"""A limit on cost is never passed, and what it cut off resumes."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_server import BatchServer
from chains import request_of
from conftest import EngineFactory, ServerFactory
from judge_server import JudgeServer
from lmms_eval_captions.judges.endpoint.cost import Budget, CappedClient, JudgeMode, load_prices
from lmms_eval_captions.judges.endpoint.endpoint import BatchPace
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.request import Asked, Chain, Reply, Request
from lmms_eval_captions.judges.errors import JudgeStoppedError, JudgeUnavailableError, SettingsError

_MODEL = "gpt-4o-2024-08-06"


def _chain(text: str, *, model: str = _MODEL, max_tokens: int = 100) -> Chain[Asked[str]]:
    request = Request(
        protocol="test:1",
        model=model,
        messages=[{"role": "user", "content": text}],
        params={"temperature": 0.0, "max_tokens": max_tokens},
        seed=0,
        timeout_s=5.0,
        stand_in=lambda: "",
    )
    return lambda ask: ask(request, lambda reply: reply.text or None)


def _ask_all(engine: Engine, n: int) -> list[Asked[str]]:
    return engine.submit([_chain(f"prompt {i} " + "x" * 400) for i in range(n)]).result(timeout=60)


def _billed_usd(server: JudgeServer) -> float:
    total = 0.0
    for body in server.bodies:
        raw = json.dumps(body, separators=(",", ":"))
        output = len(server.reply(body["messages"][-1]["content"])) // 4 + 1
        total += (len(raw) // 4 * 2.5 + output * 10.0) / 1e6
    return total


def test_the_limit_is_neared_and_never_passed(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Judging stops within one request's worst case of the limit, with words that help."""
    server = serve(latency_s=0.01)
    server.keep_bodies = True
    limit_usd = 0.05
    engine = make_engine(server.url, concurrency=64, max_cost_usd=limit_usd)
    asked = _ask_all(engine, 400)
    billed_usd = _billed_usd(server)
    assert limit_usd - 0.003 < billed_usd <= limit_usd
    assert engine.totals().usd == pytest.approx(billed_usd)
    answered = [one for one in asked if one.value is not None]
    assert len(answered) == server.counts.n_answered == server.counts.n_requests
    for one in asked:
        if one.value is None:
            assert "LMMS_CAPTIONS_MAX_COST" in str(one.reason)
            assert "$0.0500" in str(one.reason)
            assert "again with a higher limit" in str(one.reason)


def test_a_rerun_with_a_higher_limit_goes_on(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    server = serve()
    n_first = sum(
        one.value is not None for one in _ask_all(make_engine(server.url, max_cost_usd=0.02), 200)
    )
    assert 0 < n_first < 200
    asked = _ask_all(make_engine(server.url, max_cost_usd=5.0), 200)
    assert all(one.reason is None for one in asked)
    assert sum(one.cached for one in asked) == n_first
    assert server.counts.n_requests == 200


@pytest.mark.parametrize("fault", ["500", "drop", "hang", "garbage"])
def test_failures_do_not_open_the_limit(
    fault: str, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """A refusal costs nothing; a reply that was lost counts as if it had been billed."""
    server = serve(faults=(fault,), fault_rate=0.3, latency_s=0.005)
    server.keep_bodies = True
    engine = make_engine(server.url, concurrency=16, max_cost_usd=0.05)
    chains = [_hasty(f"prompt {i} " + "x" * 400) for i in range(300)]
    asked = engine.submit(chains).result(timeout=60)
    assert 0 < sum(one.value is not None for one in asked) < 300
    assert _billed_usd(server) <= 0.05
    if fault == "500":
        assert _billed_usd(server) > 0.04


def _hasty(text: str) -> Chain[Asked[str]]:
    request = Request(
        "test:1", _MODEL, [{"role": "user", "content": text}], {"max_tokens": 100}, 0, 0.2, str
    )
    return lambda ask: ask(request, lambda reply: reply.text or None)


def test_a_price_that_is_not_known_stops_before_anything_is_sent(
    serve: ServerFactory,
    make_engine: EngineFactory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server of one's own is free; for others the reason names the variable for a price."""
    server = serve()
    chain = _chain("a prompt", model="my-model")
    monkeypatch.setenv("http_proxy", server.url)
    elsewhere = make_engine("http://judge.example.org/v1", max_cost_usd=1.0)
    one = elsewhere.submit([chain]).result(timeout=5)[0]
    assert "the price of 'my-model' is not known" in str(one.reason)
    assert "LMMS_CAPTIONS_PRICES" in str(one.reason)
    assert server.counts.n_requests == 0
    engine = make_engine(server.url, max_cost_usd=1.0)
    assert engine.submit([chain]).result(timeout=5)[0].reason is None
    assert engine.totals().usd is None
    prices = tmp_path / "prices.json"
    prices.write_text('{"models": {"my-model": {"input": 0, "output": 0}}}')
    engine = make_engine(server.url, max_cost_usd=1.0, prices=prices)
    assert engine.submit([chain]).result(timeout=5)[0].reason is None
    assert engine.totals().usd == 0.0


def test_batches_stay_within_the_limit(make_engine: EngineFactory) -> None:
    """Each batch holds what surely fits; what a batch left over pays for the next one."""
    pace = BatchPace(quiet_s=0.1, first_poll_s=0.02, most_poll_s=0.05)
    with BatchServer() as server:
        settings = {"mode": "batch", "batch_pace": pace, "concurrency": 1000, "patience_s": 1e6}
        engine = make_engine(server.url, max_cost_usd=0.05, **settings)
        asked = _ask_all(engine, 400)
        n_answered = sum(one.value is not None for one in asked)
        assert n_answered == sum(server.paid.values()) == sum(server.sizes)
        assert len(server.sizes) > 1
        cost_usd = engine.totals().usd
        assert cost_usd is not None
        assert 0.045 < cost_usd <= 0.05
        # Half the price buys about twice as many as the test above, which sends the same.
        assert n_answered > 200


class _Scripted:
    """A client that replies with the tokens it is told, or fails."""

    def __init__(self, usages: list[tuple[int, int] | None]) -> None:
        self.usages = usages

    async def complete(self, request: Request, attempt: int, *, timeout_s: float) -> Reply:
        await asyncio.sleep(0.0 * timeout_s * attempt)
        usage = self.usages[request.seed]
        if usage is None:
            raise JudgeUnavailableError("told to fail")
        return Reply("fine", "stop", *usage)

    async def close(self) -> None:
        pass


@given(
    st.lists(st.none() | st.tuples(st.integers(0, 100), st.integers(0, 50)), max_size=40),
    st.floats(0.0005, 0.02),
)
def test_spent_and_reserved_stay_within_the_limit(
    usages: list[tuple[int, int] | None], limit_usd: float
) -> None:
    """Whatever replies cost, up to their worst case, and whatever is lost, in whatever number."""

    async def run() -> Budget:
        budget = Budget(limit_usd, load_prices())
        client = CappedClient(_Scripted(usages), budget)

        async def ask(seed: int) -> None:
            params = {"max_tokens": 50}
            request = request_of("x" * 200, model=_MODEL, params=params, seed=seed)
            with suppress(JudgeStoppedError, JudgeUnavailableError):
                await client.complete(request, 0, timeout_s=1.0)
            assert budget.spent_usd + budget.reserved_usd <= limit_usd + 1e-12

        await asyncio.gather(*(ask(seed) for seed in range(len(usages))))
        return budget

    budget = asyncio.run(run())
    assert budget.reserved_usd == 0.0
    assert budget.spent_usd <= limit_usd + 1e-12


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("models: {m: {input: 1}}", "output", id="half-a-price"),
        pytest.param("models: {m: {input: -1, output: 1}}", "at least 0", id="negative"),
        pytest.param("models: {m: {input: .inf, output: 1}}", "at least 0, got inf", id="infinite"),
        pytest.param(
            "models: {m: {input: 1, cached_input: 2, output: 1}}", "at most input, 1", id="dearer"
        ),
        pytest.param(
            "models: {m: {input: 1, cached_input: half, output: 1}}", "a number", id="cached-text"
        ),
        pytest.param(
            "models: {m: {input: 1, cached_input: -1, output: 1}}", "at least 0", id="cached-debt"
        ),
        pytest.param("model: {}", "model", id="typing-error"),
        pytest.param("[1, 2]", "expected", id="a-list"),
        pytest.param("a: [", "cannot be read", id="broken"),
    ],
)
def test_a_file_of_prices_of_another_shape_is_refused(
    text: str, words: str, tmp_path: Path
) -> None:
    """The error names the variable, the file and what was expected."""
    path = tmp_path / "prices.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError, match="LMMS_CAPTIONS_PRICES") as error:
        load_prices(path)
    assert str(path) in str(error.value)
    assert words in str(error.value)


def test_prices_of_the_user_are_laid_over_ours(tmp_path: Path) -> None:
    """A model is added or replaced, the others stay, and so does how a model counts pictures."""
    path = tmp_path / "prices.yaml"
    path.write_text(
        "as_of: 2026-01-02\nbatch_factor: 0.25\n"
        "models: {mine: {input: 1, output: 2}, gpt-4o-mini: {input: 9, output: 9}}"
    )
    prices, ours = load_prices(path), load_prices()
    assert prices.cost_usd("mine", input_tokens=1e6, output_tokens=1e6) == 3.0
    assert prices.cost_usd("mine", input_tokens=1e6, output_tokens=1e6, mode="batch") == 0.75
    mini, our_mini = prices.price("gpt-4o-mini"), ours.price("gpt-4o-mini")
    assert mini is not None
    assert our_mini is not None
    assert (mini.input, mini.image_tokens) == (9, our_mini.image_tokens)
    assert prices.price("gpt-4.1") == ours.price("gpt-4.1")
    assert prices.as_of == "2026-01-02"
    assert ours.as_of.startswith("genai-prices ")


def test_cached_input_is_priced_where_the_provider_discounts_it() -> None:
    prices = load_prices()

    def usd(model: str, mode: JudgeMode = "now") -> float | None:
        return prices.cost_usd(
            model, input_tokens=3e6, output_tokens=1e6, cached_tokens=2e6, mode=mode
        )

    assert usd("gpt-4o-2024-08-06") == pytest.approx(2.50 + 2 * 1.25 + 10.0)
    assert usd("gpt-4o-mini") == pytest.approx(0.15 + 2 * 0.075 + 0.60)
    assert usd("gpt-4.1-2025-04-14") == pytest.approx(2.00 + 2 * 0.50 + 8.0)
    assert usd("gpt-4.1-nano") == pytest.approx(0.10 + 2 * 0.025 + 0.40)
    assert usd("gpt-4o-2024-05-13") == pytest.approx(3 * 5.0 + 15.0)
    assert usd("gemini-2.5-pro") == pytest.approx(1.25 + 2 * 0.125 + 10.0)
    assert usd("gemini-2.5-flash") == pytest.approx(0.30 + 2 * 0.03 + 2.50)
    assert usd("gpt-4o-2024-08-06", "batch") == pytest.approx((3 * 2.50 + 10.0) / 2)
    assert usd("my-own-model") is None


@pytest.mark.parametrize(
    ("params", "n_output"),
    [
        ({"max_tokens": -1}, 16_384),
        ({"max_tokens": 100_000.0}, 100_000),
        ({"max_tokens": 4_000, "max_completion_tokens": 10}, 4_000),
        ({"max_tokens": 4_000, "n": -3}, 4_000),
    ],
)
def test_odd_limits_of_a_reply_count_as_the_most_that_it_may_cost(
    params: dict[str, object], n_output: int
) -> None:
    """-1 means no limit to some servers, and of two limits a server may take either."""
    request = replace(request_of("Describe.", model=_MODEL), params=params)
    worst_usd = Budget(1.0, load_prices()).worst_case_usd(request, 0)
    assert n_output * 10 / 1e6 < worst_usd < n_output * 10 / 1e6 + 0.001


def test_a_model_that_counts_more_than_the_worst_case_raises_the_next_ones() -> None:

    class Seer:
        n_sent = 0

        async def complete(self, _request: Request, _attempt: int, *, timeout_s: float) -> Reply:
            assert timeout_s
            self.n_sent += 1
            return Reply("A square.", input_tokens=10_000, output_tokens=3)

        async def close(self) -> None:
            """Nothing is open."""

    async def run() -> tuple[int, float]:
        budget, seer = Budget(0.09, load_prices(), role="captioner"), Seer()
        client = CappedClient(seer, budget)
        request = request_of("Describe.", model=_MODEL)
        for _ in range(3):
            await client.complete(request, 0, timeout_s=1.0)
        with pytest.raises(JudgeStoppedError, match="max_cost"):
            await client.complete(request, 0, timeout_s=1.0)
        return seer.n_sent, budget.spent_usd

    n_sent, spent_usd = asyncio.run(run())
    assert n_sent == 3
    assert spent_usd <= 0.09
