"""Totals of judging: sums over ranks, differences between runs, their JSON, and their warnings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import EngineFactory, ServerFactory
from lmms_eval_captions.judges.endpoint.progress import Totals
from lmms_eval_captions.judges.endpoint.request import Ask, Asked, Chain, Request

HERE, THERE = "http://here/v1", "http://there/v1"


def test_ranks_add_up_and_their_time_does_not() -> None:
    """They judge at the same time."""
    own = Totals(endpoints=(HERE,), calls=2, tokens={"paid": (10, 1)}, usd_by_model={"paid": 0.5})
    other = Totals(endpoints=(HERE,), calls=3, tokens={"own": (7, 2)}, usd_by_model={"own": None})
    both = replace(own, seconds=2.0) + replace(other, seconds=3.0)
    assert (both.endpoints, both.calls, both.seconds) == ((HERE,), 5, 3.0)
    assert (both.tokens, both.usd) == ({"paid": (10, 1), "own": (7, 2)}, None)
    assert own.usd == 0.5
    assert Totals().usd == 0.0


LONG = "https://" + "a" * 300 + ".example/v1"


@pytest.mark.parametrize(
    ("totals", "said"),
    [
        pytest.param(Totals(endpoints=(HERE,), calls=1, from_store={THERE: 9}), None, id="asked"),
        pytest.param(Totals(endpoints=(HERE,), from_store={THERE: 9, HERE: 1}), None, id="own"),
        pytest.param(Totals(endpoints=(THERE, HERE), from_store={HERE: 9}), None, id="replica"),
        pytest.param(Totals(endpoints=(HERE,)), None, id="nothing"),
        pytest.param(
            Totals(endpoints=(HERE,), from_store={THERE: 1234}),
            f"all 1,234 were in the store (1,234 of {THERE})",
            id="another's",
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
    server = serve(latency_s=0.05)
    engine = make_engine(server.url)
    engine.submit([_chain("same")] * 20).result()
    engine.submit([_chain("same", 3), _chain("other", 2)]).result()
    totals = engine.totals()
    assert (totals.calls, totals.shared, totals.from_store) == (2, 19, {server.url: 4})
    assert totals.calls + totals.shared + totals.n_from_store == 20 + 3 + 2


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
