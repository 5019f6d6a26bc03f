"""A request that is not to be sent any more: it is unscored, and takes nothing from others."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

from chains import request_of, text_of
from conftest import EngineFactory, ServerFactory
from lmms_eval_captions.judges.endpoint.request import Ask, Asked


async def _ask(ask: Ask, *, text: str, until_s: float | None = None) -> Asked[str]:
    return await ask(replace(request_of(text), until_s=until_s), text_of)


def test_what_waits_for_a_slot_is_dropped(serve: ServerFactory, make_engine: EngineFactory) -> None:
    """The next one goes out in its place, and nothing is stopped."""
    server = serve(latency_s=0.3)
    engine = make_engine(server.url, concurrency=1)
    first = engine.submit([partial(_ask, text="a")])
    late = engine.submit([partial(_ask, text="b", until_s=time.monotonic() + 0.1)])
    last = engine.submit([partial(_ask, text="c")])
    (asked,) = late.result(10)
    assert (asked.value, asked.reason) == (None, "the time for it was over")
    assert asked.failure == "unavailable"
    assert first.result(10)[0].value is not None
    assert last.result(10)[0].value is not None
    assert server.counts.n_requests == 2
    assert engine.stopped("judge", "") is None


def test_what_is_stored_is_never_too_late(serve: ServerFactory, make_engine: EngineFactory) -> None:
    """It need not be sent."""
    server = serve()
    engine = make_engine(server.url)
    (known,) = engine.submit([partial(_ask, text="a")]).result(10)
    (again,) = engine.submit([partial(_ask, text="a", until_s=0.0)]).result(10)
    assert again.value == known.value is not None
    assert server.counts.n_requests == 1


def test_the_time_is_in_no_key() -> None:
    """Two requests that differ in it alone are one."""
    request = request_of("a")
    timed = replace(request, until_s=1.0)
    assert timed == request
    assert timed.key(0) == request.key(0)
