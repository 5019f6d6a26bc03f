"""Totals of judging: sums over ranks, differences between runs, their JSON, and their warnings."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import EngineFactory, ServerFactory
from lmms_eval_captions.judges.endpoint.chain import Ask, Chain
from lmms_eval_captions.judges.endpoint.outcome import Asked
from lmms_eval_captions.judges.endpoint.prices import Price, Prices
from lmms_eval_captions.judges.endpoint.progress.meter import Meter
from lmms_eval_captions.judges.endpoint.progress.totals import EARLIER_VERSION, Totals, totals_of
from lmms_eval_captions.judges.endpoint.request import Request

PRICES = Prices("2026-01-02", 0.5, {"paid": Price(2.0, 8.0, 0, cached_input=0.5)})
HERE, THERE = "http://here/v1", "http://there/v1"

counts = st.integers(min_value=0, max_value=10**6)
tables = st.dictionaries(st.sampled_from([HERE, THERE, EARLIER_VERSION]), counts.filter(bool))
meters = st.builds(
    lambda calls, stored, failed, tokens: Meter(
        prices=PRICES,
        n_calls=calls + len(tokens),
        from_store=Counter(stored),
        retried=Counter(failed),
        tokens={model: [n_in + 1, n_out] for model, (n_in, n_out) in tokens.items()},
        cached_tokens=Counter(
            {model: n_in // 2 for model, (n_in, _) in tokens.items() if n_in > 1}
        ),
    ),
    counts,
    tables,
    st.dictionaries(st.sampled_from(["HTTP 429", "time-out"]), counts.filter(bool)),
    st.dictionaries(st.sampled_from(["paid", "own"]), st.tuples(counts, counts)),
)


@given(meters, meters)
def test_what_was_added_is_what_is_left_of_the_sum(earlier: Meter, later: Meter) -> None:
    """The totals of a run are those of the process without those of the runs before it."""
    first, second = (totals_of(meter, (HERE,)) for meter in (earlier, later))
    left = second.after(first).since(first)
    assert left.usd_by_model == pytest.approx(second.usd_by_model)
    assert replace(left, usd_by_model={}) == replace(second, usd_by_model={})


@given(meters)
def test_totals_are_strict_json(meter: Meter) -> None:
    """Every count stands there as it is, with the sum of dollars beside."""
    totals = totals_of(meter, (HERE, THERE))
    written = json.loads(json.dumps(totals.to_json(), allow_nan=False))
    assert written == {
        **asdict(totals),
        "endpoints": list(totals.endpoints),
        "tokens": {model: list(pair) for model, pair in totals.tokens.items()},
        "usd": totals.usd,
        "seconds": pytest.approx(totals.seconds, abs=0.001),
    }


def test_ranks_add_up_and_their_time_does_not() -> None:
    """They judge at the same time."""
    own = Totals(endpoints=(HERE,), calls=2, tokens={"paid": (10, 1)}, usd_by_model={"paid": 0.5})
    other = Totals(endpoints=(HERE,), calls=3, tokens={"own": (7, 2)}, usd_by_model={"own": None})
    both = replace(own, seconds=2.0) + replace(other, seconds=3.0)
    assert (both.endpoints, both.calls, both.seconds) == ((HERE,), 5, 3.0)
    assert (both.tokens, both.usd) == ({"paid": (10, 1), "own": (7, 2)}, None)
    assert own.usd == 0.5
    assert Totals().usd == 0.0


def test_tokens_of_the_cache_add_up_and_are_cheaper() -> None:
    """Over ranks, over engines of a process, and what was added since."""
    meter = Meter(prices=PRICES)
    meter.count_call("paid", 10**6, 0)
    before = totals_of(meter, (HERE,))
    assert (before.cached_tokens, before.usd) == ({}, 2.0)
    meter.count_call("paid", 10**6, 0, cached_tokens=600_000)
    meter.count_call("own", 10, 1, cached_tokens=4)
    now = totals_of(meter, (HERE,))
    assert now.cached_tokens == {"paid": 600_000, "own": 4}
    assert now.usd_by_model["paid"] == pytest.approx(1.4 * 2.0 + 0.6 * 0.5)
    assert meter.cost_usd is None
    since = now.since(before)
    assert (since.cached_tokens, since.tokens["paid"]) == ({"paid": 600_000, "own": 4}, (10**6, 0))
    assert since.usd_by_model["paid"] == pytest.approx(0.4 * 2.0 + 0.6 * 0.5)
    for both in (now + now, now.after(now)):
        assert both.cached_tokens == {"paid": 1_200_000, "own": 8}
        assert json.loads(json.dumps(both.to_json()))["cached_tokens"] == both.cached_tokens


def test_dollars_have_the_date_of_their_prices() -> None:
    """None where no price is known, and none where nothing was asked."""
    meter = Meter(prices=PRICES, tokens={"own": [5, 5]})
    assert totals_of(meter, (HERE,)).prices_date is None
    meter.tokens["paid"] = [10**6, 10**6]
    totals = totals_of(meter, (HERE,))
    assert (totals.usd, totals.usd_by_model) == (None, {"own": None, "paid": 10.0})
    assert totals.prices_date == "2026-01-02"
    assert totals_of(Meter(prices=PRICES), (HERE,)) == Totals()


LONG = "https://" + "a" * 300 + ".example/v1"


@pytest.mark.parametrize(
    ("totals", "said"),
    [
        pytest.param(Totals(endpoints=(HERE,), calls=1, from_store={THERE: 9}), None, id="asked"),
        pytest.param(Totals(endpoints=(HERE,), from_store={THERE: 9, HERE: 1}), None, id="own"),
        pytest.param(Totals(endpoints=(THERE, HERE), from_store={HERE: 9}), None, id="replica"),
        pytest.param(Totals(endpoints=(HERE,)), None, id="nothing"),
        pytest.param(
            Totals(endpoints=(HERE,), from_store={EARLIER_VERSION: 9}), None, id="not known"
        ),
        pytest.param(
            Totals(endpoints=(HERE,), from_store={THERE: 1234}),
            f"all 1,234 were in the store (1,234 of {THERE})",
            id="another's",
        ),
        pytest.param(
            Totals(endpoints=(HERE,), from_store={THERE: 5, EARLIER_VERSION: 2}),
            f"all 7 were in the store (5 of {THERE}; 2 of an earlier version)",
            id="another's and not known",
        ),
        pytest.param(
            Totals(endpoints=(LONG,), from_store={f"{LONG}{n}": 10**9 for n in range(9)}),
            "; 7 more endpoints)",
            id="long names",
        ),
    ],
)
def test_a_warning_where_no_reply_is_of_the_configured_endpoint(
    totals: Totals, said: str | None
) -> None:
    """Else there is none; it is never longer than 300 characters."""
    warnings = totals.warnings()
    assert [said in warning for warning in warnings if said] == [True] * (said is not None)
    assert len(warnings) == (said is not None)
    assert all(len(warning) <= 300 for warning in warnings)


def _chain(text: str, n_times: int = 1) -> Chain[Asked[str]]:
    request = Request(
        protocol="test:1",
        model="judge",
        messages=[{"role": "user", "content": text}],
        params={"temperature": 0.0, "max_tokens": 8},
        seed=0,
        timeout_s=5.0,
        stand_in=lambda: "",
    )

    async def run(ask: Ask) -> Asked[str]:
        for _ in range(n_times - 1):
            await ask(request, lambda reply: reply.text)
        return await ask(request, lambda reply: reply.text)

    return run


def test_every_reply_is_counted_once(serve: ServerFactory, make_engine: EngineFactory) -> None:
    """As a call, as one from the store, or as one that identical requests share."""
    server = serve(latency_s=0.05)
    engine = make_engine(server.url)
    engine.submit([_chain("same")] * 20).result()
    engine.submit([_chain("same", 3), _chain("other", 2)]).result()
    totals = engine.totals()
    assert (totals.calls, totals.shared, totals.from_store) == (2, 19, {server.url: 4})
    assert totals.calls + totals.shared + totals.n_from_store == 20 + 3 + 2


def test_time_without_questions_is_not_counted(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Captioning, data and scoring take time that no judge has."""
    engine = make_engine(serve(latency_s=0.1).url)
    assert engine.totals().seconds == 0.0
    engine.submit([_chain("one")]).result()
    engine.close()
    first_s = engine.totals().seconds
    assert 0.1 <= first_s < 5.0
    assert engine.totals().seconds == first_s


def test_what_is_stored_holds_no_credentials(
    serve: ServerFactory, make_engine: EngineFactory, tmp_path: Path
) -> None:
    """The endpoint's name is its URL without user, password and query."""
    url = serve().url
    engine = make_engine(url.replace("//", "//me:hidden@") + "?key=hidden")
    engine.submit([_chain("one")]).result()
    engine.close()
    [path] = tmp_path.glob("replies/judge/*.jsonl")
    assert b"hidden" not in path.read_bytes()
    assert json.dumps(url).encode() in path.read_bytes()
    assert engine.totals().endpoints == (url,)
