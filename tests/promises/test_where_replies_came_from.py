"""Every benchmark, at every step: a run says where its replies came from, and whose may serve.

See ``test_every_failure.py`` for what is asked. Two servers of one model's name stand for two
endpoints; a closed one for a URL that is wrong.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from batch_server import BatchServer
from conftest import ServerFactory
from ended_runs import Tracker, judge, results_of
from judge_server import Say
from lmms_eval_captions.judges.endpoint.progress.totals import EARLIER_VERSION, Totals
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN
from lmms_eval_captions.lmms_eval_tasks.records import PendingRecord
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN
from stored_replies_edited import edit_store
from test_every_batch_failure import PACE
from test_every_failure import (
    BENCHMARKS,
    N_VIDEOS,
    TOLD,
    Benchmark,
    Judge,
    _caption,
    _change_engine,
    _check,
    _judge,
    _set,
    bench,  # noqa: F401 - a fixture
    sample,  # noqa: F401 - a fixture of that one
)
from told_judge import key_of

NOWHERE: Final = "http://127.0.0.1:9/v1"
"""Nobody answers at this port."""
FIVE: Final = [
    benchmark
    for benchmark in BENCHMARKS
    if benchmark.name
    in ("vdc_camera", "vidcapbench_ae", "vcapsbench", "capquiz", "msvd_eval_ref_only")
]
CELLS: Final = [
    pytest.param(benchmark, step, id=f"{benchmark.name}-{step}")
    for benchmark in FIVE
    for step in benchmark.steps
]

each_benchmark = pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda one: one.name)
each_of_five = pytest.mark.parametrize("benchmark", FIVE, ids=lambda one: one.name)
Ask = Callable[..., Totals]


@pytest.fixture
def ask(bench: pytest.MonkeyPatch) -> Ask:  # noqa: F811 - a fixture
    """Judges all captions in a run of its own, checks the numbers, and gives its totals."""

    def run(benchmark: Benchmark, url: str, *, by: str = "", mode: str = "now") -> Totals:
        JUDGE_RUN.close()
        THIS_RUN.clear()
        bench.setenv("LMMS_CAPTIONS_JUDGE_URL", url)
        bench.setenv("LMMS_CAPTIONS_STORE_BY", by)
        bench.setenv("LMMS_CAPTIONS_JUDGE_MODE", mode)
        _set(benchmark, bench)
        _check(benchmark, _judge(benchmark), set())
        return THIS_RUN.totals()

    return run


def _judge_at(serve: ServerFactory) -> tuple[str, Judge]:
    """A server of the judge that all of these runs ask for, and what it was asked."""
    server = serve(logprobs="whole")
    server.script = judge = Judge()
    return server.url, judge


def _provider() -> BatchServer:
    """A provider of batches that says what it is told to."""
    server = BatchServer()
    server.script = lambda payload: Say(TOLD.text(key_of(payload)))
    return server


@each_benchmark
def test_a_run_says_which_endpoint_its_replies_came_from(
    benchmark: Benchmark, ask: Ask, serve: ServerFactory
) -> None:
    """Those of calls, and those that the store had, each by the endpoint that it was asked of."""
    url, _ = _judge_at(serve)
    n = len(benchmark.order())
    first = ask(benchmark, url)
    assert (first.endpoints, first.calls, first.from_store) == ((url,), n, {})
    assert (first.shared, first.retried, first.warnings()) == (0, {}, [])
    assert min(*first.tokens["judge"], first.seconds) > 0
    again = ask(benchmark, url)
    assert (again.calls, again.from_store, again.tokens) == (0, {url: n}, {})
    assert again.warnings() == []


@each_benchmark
def test_a_wrong_url_that_the_store_hides_is_told(
    benchmark: Benchmark, ask: Ask, serve: ServerFactory, logged: list[str], tmp_path: Path
) -> None:
    """All replies from elsewhere: scores are there, and a warning in the log and beside them."""
    url, _ = _judge_at(serve)
    ask(benchmark, url)
    n = len(benchmark.order())
    totals = ask(benchmark, NOWHERE)
    assert (totals.endpoints, totals.calls, totals.from_store) == ((NOWHERE,), 0, {url: n})
    [warning] = totals.warnings()
    assert f"configured endpoint, {NOWHERE}: all {n} were in the store ({n} of {url})" in warning
    assert len(warning) <= 300
    task = benchmark.name.partition("+")[0]
    docs = list(map(benchmark.doc, range(N_VIDEOS)))
    captions = [doc.pop("caption", _caption(video)) for video, doc in enumerate(docs)]
    tracker = Tracker(tmp_path)
    tracker.save(results_of({task: judge(task, captions, docs)}))
    document = tracker.read("judging")
    [warning] = document["warnings"]
    assert document["judging"]["from_store"] == {url: 2 * n}
    assert f"WARNING {warning}\n" in logged


@each_benchmark
def test_replies_of_another_endpoint_do_not_serve_where_endpoints_are_told_apart(
    benchmark: Benchmark, ask: Ask, serve: ServerFactory
) -> None:
    """Each step is asked anew there, once; what each endpoint said is kept for the next run."""
    (url, judge), (other_url, other) = _judge_at(serve), _judge_at(serve)
    n = len(benchmark.order())
    ask(benchmark, url)
    judge.sent.clear()
    totals = ask(benchmark, other_url, by="endpoint")
    assert (totals.calls, totals.from_store) == (n, {})
    assert sorted(other.sent) == sorted(benchmark.order())
    for at, by, source in (
        (url, "endpoint", url),
        (other_url, "endpoint", other_url),
        (f"{NOWHERE},{other_url}", "endpoint", other_url),
        (other_url, "model", url),
    ):
        totals = ask(benchmark, at, by=by)
        assert (totals.calls, totals.from_store) == (0, {source: n})
        assert len(totals.warnings()) == (by == "model")
    assert (judge.sent, len(other.sent)) == ([], n)


@pytest.mark.parametrize(("benchmark", "step"), CELLS)
def test_one_reply_of_another_endpoint_is_asked_anew_alone(
    benchmark: Benchmark,
    step: str,
    ask: Ask,
    serve: ServerFactory,
    bench: pytest.MonkeyPatch,  # noqa: F811 - a fixture
    tmp_path: Path,
) -> None:
    """Where another endpoint answered one request of a run, whichever its step, the others stay."""
    url, judge = _judge_at(serve)
    bench.setenv("LMMS_CAPTIONS_JUDGE_CONCURRENCY", "1")
    ask(benchmark, url)
    assert judge.sent == benchmark.order(), "which is the order of the lines"
    target, n = benchmark.target(step, 0), len(benchmark.order())

    def attribute(number: int, reply: dict[str, Any]) -> None:
        if number == benchmark.order().index(target):
            reply["endpoint"] = "http://elsewhere/v1"

    edit_store(tmp_path, attribute)
    totals = ask(benchmark, url)
    assert totals.from_store == {url: n - 1, "http://elsewhere/v1": 1}
    assert totals.warnings() == []
    judge.sent.clear()
    totals = ask(benchmark, url, by="endpoint")
    assert (totals.calls, totals.from_store, judge.sent) == (1, {url: n - 1}, [target])


@each_of_five
def test_replies_of_an_earlier_version_serve_and_are_named_so(
    benchmark: Benchmark, ask: Ask, serve: ServerFactory, tmp_path: Path
) -> None:
    """Nobody knows whose they are: no warning, and they do not serve as an endpoint's own."""
    url, judge = _judge_at(serve)
    ask(benchmark, url)
    n = len(benchmark.order())
    edit_store(tmp_path, lambda _, reply: reply.pop("endpoint"))
    totals = ask(benchmark, NOWHERE)
    assert (totals.calls, totals.from_store, totals.warnings()) == (0, {EARLIER_VERSION: n}, [])
    judge.sent.clear()
    totals = ask(benchmark, url, by="endpoint")
    assert (totals.calls, totals.from_store) == (n, {})
    assert ask(benchmark, url, by="endpoint").from_store == {url: n}
    assert len(judge.sent) == n


@each_of_five
def test_a_batch_and_single_requests_are_of_one_endpoint(
    benchmark: Benchmark,
    ask: Ask,
    bench: pytest.MonkeyPatch,  # noqa: F811 - a fixture
) -> None:
    """Replies of batches have their provider's name, and are told apart as all others are."""
    _change_engine(bench, batch_pace=PACE)
    n = len(benchmark.order())
    with ExitStack() as stack:
        url, other_url = (stack.enter_context(_provider()).url for _ in range(2))
        first = ask(benchmark, url, mode="batch")
        assert (first.calls, first.from_store, first.endpoints) == (n, {}, (url,))
        assert ask(benchmark, url, by="endpoint").from_store == {url: n}
        [warning] = ask(benchmark, other_url, mode="batch").warnings()
        assert f"({n} of {url})" in warning
        assert ask(benchmark, other_url, by="endpoint", mode="batch").calls == n


@pytest.mark.parametrize(("benchmark", "step"), CELLS)
def test_attempts_that_failed_are_counted_by_cause(
    benchmark: Benchmark,
    step: str,
    ask: Ask,
    serve: ServerFactory,
    bench: pytest.MonkeyPatch,  # noqa: F811 - a fixture
) -> None:
    """Of one request that gets garbage, is broken off, fails twice and is limited."""
    _change_engine(bench, n_attempts=9, outage_patience_s=30.0, backoff_s=0.1)
    server = serve(logprobs="whole")
    judge, faults = Judge(), ["429", "503", "503", "drop", "garbage"]
    target = benchmark.target(step, 0)

    def script(payload: dict[str, Any]) -> Any:
        return faults.pop() if faults and key_of(payload) == target else judge(payload)

    server.script = script
    totals = ask(benchmark, server.url)
    assert totals.retried == {
        "HTTP 429": 1,
        "HTTP 503": 2,
        "connection broken off": 1,
        "no chat completion": 1,
    }
    assert totals.calls == len(benchmark.order())


@each_of_five
def test_the_totals_of_all_ranks_are_added_up(
    benchmark: Benchmark, ask: Ask, serve: ServerFactory, tmp_path: Path
) -> None:
    """Another process hands on its own with its items, which hold nothing of them."""
    url, _ = _judge_at(serve)
    before = ask(benchmark, url)
    JUDGE_RUN.close()
    THIS_RUN.clear()
    assert THIS_RUN.totals() == Totals()
    gathered = tmp_path / "gathered"
    child = os.fork()
    if not child:
        try:
            doc = benchmark.doc(0)
            caption = doc.pop("caption", _caption(0))
            items = benchmark.process(doc, [f"{caption} Once more."])
            gathered.write_bytes(pickle.dumps([items[name] for name in sorted(items)]))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    received = pickle.loads(gathered.read_bytes())  # noqa: S301 - as ranks do
    assert {type(item) for item in received} == {dict}
    assert not any("seconds" in str(item) for item in received)
    totals = THIS_RUN.totals()
    n = len(benchmark.order()) // N_VIDEOS
    # The prompt of a second step holds the answer to the first, and no caption.
    assert (totals.calls + totals.from_store.get(url, 0), totals.endpoints) == (n, (url,))
    assert totals.calls >= n / 2
    assert 0 < totals.tokens["judge"][0] < before.tokens["judge"][0]
    THIS_RUN.clear()
    assert (THIS_RUN.totals().calls, THIS_RUN.totals().tokens) == (0, {})


def test_a_record_that_is_sent_within_a_process_counts_once(
    bench: pytest.MonkeyPatch,  # noqa: F811 - a fixture
    ask: Ask,
    serve: ServerFactory,
) -> None:
    """Rank 0 gathers its own items as well."""
    url, _ = _judge_at(serve)
    ask(FIVE[0], url)
    items = FIVE[0].process(FIVE[0].doc(0), [_caption(0)])
    pickle.loads(pickle.dumps(list(items.values())))  # noqa: S301 - as ranks do
    assert isinstance(items["breakdown"], PendingRecord)
    assert THIS_RUN.totals().calls == len(FIVE[0].order())
