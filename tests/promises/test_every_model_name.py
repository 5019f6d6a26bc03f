"""Every benchmark, at every step, judged by servers that name the model that they are.

llama.cpp's server and others answer to any name with the one model that they hold. A reply that
names another model than was asked for stops judging and is not kept, unless an alias says that it
is right; a version of the same name is kept and shown; a reply without a name counts.
"""

from __future__ import annotations

import re
import shutil
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from conftest import ServerFactory
from judge_server import AS_ASKED, NO_MODEL, Say, last_text
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN
from lmms_eval_captions.lmms_eval_tasks.signature import Signature
from lmms_eval_captions.lmms_eval_tasks.vdc import hooks as vdc
from test_every_batch_failure import (
    NAMES,
    Provider,
    batches,  # noqa: F401 - a fixture
)
from test_every_failure import (
    BENCHMARKS,
    TOLD,
    Benchmark,
    Items,
    _check,
    _judge,
    _set,
    bench,  # noqa: F401 - a fixture
    sample,  # noqa: F401 - a fixture of that one
)
from told_judge import Key, key_of

TINY: Final = "SmolLM2-135M-Instruct.Q8_0.gguf"
ANSWERED: Final = (
    r"(no answer from the caption: |[123] of 3 asks failed and no two agree: )?"
    rf"the judge at http\S+(, http\S+)? answered as '{re.escape(TINY)}' where 'judge' "
    r"was asked for: judging stopped, .*LMMS_CAPTIONS_JUDGE_ALIAS.*"
)
NO_EVIDENCE: Final[list[object]] = [
    *(None, "", " ", 5, True, [], {"id": TINY}, NO_MODEL, AS_ASKED),
    *("JUDGE", "org/judge", "models/Judge"),
]
"""What a reply may say of its model that leaves it what was asked for."""
CELLS: Final = [
    pytest.param(benchmark, benchmark.target(step, ask), id=f"{benchmark.name}-{step}-{ask + 1}")
    for benchmark in BENCHMARKS
    for step in benchmark.steps
    for ask in range(benchmark.n_asks)
]
BATCH_CELLS: Final = [
    pytest.param(benchmark, step, id=f"{benchmark.name}-{step}")
    for benchmark in BENCHMARKS
    if benchmark.name in NAMES
    for step in benchmark.steps
]


class Judge:
    """Says what it is told to, under names of its own.

    Args:
        name: What a reply says of its model, by request.
    """

    def __init__(self, name: Callable[[Key], object] = lambda _: AS_ASKED) -> None:
        self._name = name
        self.sent: list[Key] = []
        self.is_asked = threading.Event()

    def __call__(self, payload: dict[str, Any]) -> Say:
        """The reply to a request."""
        key = key_of(payload)
        self.sent.append(key)
        self.is_asked.set()
        assert TOLD.is_consistent(key, last_text(payload))
        return Say(TOLD.text(key), model=self._name(key))


def _signature(items: Items) -> str:
    return vdc.aggregate_signature(items["signature"])


def _names_in(items: Items) -> list[str]:
    """Fields of the signature that say who answered."""
    fields = Signature.parse(_signature(items)).fields
    return [f"{name}:{value}" for name, value in fields.items() if name in ("alias", "served")]


@pytest.fixture
def judged(
    bench: pytest.MonkeyPatch,  # noqa: F811 - a fixture
    serve: ServerFactory,
) -> Callable[..., tuple[Items, Judge]]:
    """Judges a benchmark by a judge, as a process of its own would."""

    def run(
        benchmark: Benchmark,
        name: Callable[[Key], object] = lambda _: AS_ASKED,
        *,
        lost: set[Key] | None = None,
        alias: str = "",
    ) -> tuple[Items, Judge]:
        JUDGE_RUN.close()
        server = serve(logprobs="whole")
        server.script = judge = Judge(name)
        bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
        bench.setenv("LMMS_CAPTIONS_JUDGE_CONCURRENCY", "1")
        bench.setenv("LMMS_CAPTIONS_JUDGE_ALIAS", alias)
        _set(benchmark, bench)
        items = _judge(benchmark)
        reasons = _check(benchmark, items, benchmark.lost(lost or set()))
        assert all(re.fullmatch(ANSWERED, reason) for reason in reasons.values())
        return items, judge

    return run


@pytest.mark.parametrize(("benchmark", "target"), CELLS)
def test_another_model_stops_judging_and_leaves_nothing_in_the_store(
    benchmark: Benchmark, target: Key, judged: Callable[..., tuple[Items, Judge]]
) -> None:
    """From its first reply on nothing is asked or kept; a rerun asks all that is missing."""
    order = benchmark.order()
    before, after = order[: order.index(target)], order[order.index(target) :]
    items, judge = judged(
        benchmark, lambda key: TINY if key == target else AS_ASKED, lost=set(after)
    )
    assert judge.sent == [*before, target]
    assert _names_in(items) == []
    _, judge = judged(benchmark)
    assert judge.sent == after


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_an_alias_is_in_the_signature_and_its_replies_serve_no_other_run(
    benchmark: Benchmark, judged: Callable[..., tuple[Items, Judge]]
) -> None:
    """What was taken for the judge's is taken for it by runs that say so, and by no others."""
    items, judge = judged(benchmark, lambda _: TINY, alias=TINY)
    assert judge.sent == benchmark.order()
    assert _names_in(items) == [f"alias:{TINY}"]
    items, judge = judged(benchmark)
    assert judge.sent == benchmark.order()
    assert _names_in(items) == []
    items, judge = judged(benchmark, alias="other.gguf")
    assert judge.sent == benchmark.order()
    assert _names_in(items) == ["alias:other.gguf", "served:judge"]
    for alias, names in ((TINY, [f"alias:{TINY}"]), ("", [])):
        items, judge = judged(benchmark, alias=alias)
        assert judge.sent == []
        assert _names_in(items) == names


@pytest.mark.parametrize(("benchmark", "target"), CELLS)
def test_a_version_of_the_judge_is_scored_and_shown(
    benchmark: Benchmark, target: Key, judged: Callable[..., tuple[Items, Judge]]
) -> None:
    """One reply of it is enough for the signature, and in a rerun from the store as well."""
    dated = "judge-2024-08-06"
    items, judge = judged(benchmark, lambda key: dated if key == target else AS_ASKED)
    assert judge.sent == benchmark.order()
    assert _names_in(items) == [f"served:{dated}"]
    again, judge = judged(benchmark)
    assert judge.sent == []
    assert _signature(again) == _signature(items)


@pytest.mark.parametrize(("benchmark", "target"), CELLS)
def test_two_versions_are_both_shown(
    benchmark: Benchmark, target: Key, judged: Callable[..., tuple[Items, Judge]]
) -> None:
    """A provider may change what an undated name means in the middle of a run."""
    order = benchmark.order()
    first, second = "judge-2024-05-13", "judge-2024-08-06"
    items, _ = judged(
        benchmark, lambda key: first if order.index(key) < order.index(target) else second
    )
    assert _names_in(items) == [f"served:{first},{second}"]


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_replies_that_name_no_other_model_count(
    benchmark: Benchmark, judged: Callable[..., tuple[Items, Judge]]
) -> None:
    """No name, no text, and the name asked for in another spelling say nothing against a reply."""
    names = iter(NO_EVIDENCE * len(benchmark.order()))
    items, judge = judged(benchmark, lambda _: next(names))
    assert judge.sent == benchmark.order()
    assert _names_in(items) == []


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_a_replica_that_serves_another_model_ends_judging(
    benchmark: Benchmark,
    bench: pytest.MonkeyPatch,  # noqa: F811 - a fixture
    serve: ServerFactory,
) -> None:
    """Of a mixed pair the right one's replies are kept, the other one's are not."""
    right, wrong = serve(logprobs="whole"), serve(logprobs="whole")
    judge, stranger = Judge(), Judge(lambda _: TINY)

    def answer_second(payload: dict[str, Any]) -> Say:
        assert stranger.is_asked.wait(20), "only one of two replicas was asked"
        return judge(payload)

    right.script, wrong.script = answer_second, stranger
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", f"{right.url},{wrong.url}")
    bench.setenv("LMMS_CAPTIONS_JUDGE_CONCURRENCY", "4")
    _set(benchmark, bench)
    items = _judge(benchmark)
    for item in items["unscored"]:
        item.wait()
    failed = set(benchmark.order()) - set(judge.sent)
    reasons = _check(benchmark, items, benchmark.lost(failed))
    assert all(re.fullmatch(ANSWERED, reason) for reason in reasons.values())
    JUDGE_RUN.close()
    right.script = judge = Judge()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", right.url)
    _check(benchmark, _judge(benchmark), set())
    assert set(judge.sent) == failed


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_the_judge_of_a_paper_is_never_assumed_on_this_machine(
    benchmark: Benchmark,
    bench: pytest.MonkeyPatch,  # noqa: F811 - a fixture
    serve: ServerFactory,
) -> None:
    """Nothing is sent, and the reason names the setting, the benchmark's judge and the doctor."""
    server = serve()
    bench.delenv("LMMS_CAPTIONS_JUDGE")
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", f"https://judge.example/v1,{server.url}")
    _set(benchmark, bench)
    items = _judge(benchmark)
    assert server.counts.n_requests == 0
    for item in items["unscored"]:
        record: dict[str, Any] = item.wait()
        [(reason, n_questions)] = record["reasons"].items()
        assert n_questions == record["n_questions"]
        own = str(benchmark.hooks.benchmark.judge_defaults["model"])
        assert own.startswith(("gpt-4", "gemini-2.5"))
        for words in ("LMMS_CAPTIONS_JUDGE is not set", own, "lmms-eval-captions doctor"):
            assert words in reason


class NamedProvider(Provider):
    """Answers one request of a batch as another model, until it is told not to."""

    def __init__(self, target: Key) -> None:
        super().__init__(target, "nothing")
        self.name: object = TINY

    def _say(self, body: dict[str, Any]) -> Say:
        say = super()._say(body)
        return Say(say.text, model=self.name) if key_of(body) == self.target else say


@pytest.mark.parametrize(("benchmark", "step"), BATCH_CELLS)
def test_another_model_in_a_batch_stops_judging(
    benchmark: Benchmark,
    step: str,
    batches: pytest.MonkeyPatch,  # noqa: F811 - a fixture
) -> None:
    """Its reply is not kept; what was paid for is collected where an alias says it is right."""
    target = benchmark.target(step, 1 if benchmark.n_asks > 1 else 0)
    with NamedProvider(target) as server:
        batches.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
        items = _judge(benchmark)
        for item in items["unscored"]:
            item.wait()
        failed = {target, *(set(benchmark.order()) - server.answered)}
        reasons = _check(benchmark, items, benchmark.lost(failed))
        for reason in reasons.values():
            assert re.fullmatch(ANSWERED, reason)
            assert "/batches to submit, and pay for, its requests again" in reason
        JUDGE_RUN.close()
        batches.setenv("LMMS_CAPTIONS_JUDGE_ALIAS", TINY)
        items = _judge(benchmark)
        _check(benchmark, items, set())
        assert _names_in(items) == [f"alias:{TINY}", "served:judge"]
        assert server.sent == Counter(benchmark.order())
        JUDGE_RUN.close()


@pytest.mark.parametrize(("benchmark", "step"), BATCH_CELLS)
def test_a_version_of_the_judge_in_a_batch_is_shown(
    benchmark: Benchmark,
    step: str,
    batches: pytest.MonkeyPatch,  # noqa: F811 - a fixture
) -> None:
    """What a provider's batch says of its model is read as a single reply's is."""
    target = benchmark.target(step, 1 if benchmark.n_asks > 1 else 0)
    with NamedProvider(target) as server:
        server.name = "judge-2024-08-06"
        batches.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
        for _ in ("asked", "from the store"):
            items = _judge(benchmark)
            _check(benchmark, items, set())
            assert _names_in(items) == ["served:judge-2024-08-06"]
            JUDGE_RUN.close()
        assert server.sent == Counter(benchmark.order())


def test_a_batch_of_another_model_is_asked_anew_once_its_record_is_deleted(
    batches: pytest.MonkeyPatch,  # noqa: F811 - a fixture
    tmp_path: Path,
) -> None:
    """Until then it is what the provider keeps of the request, whatever it serves by now."""
    benchmark = next(one for one in BENCHMARKS if one.name == "capquiz")
    [step] = benchmark.steps
    target = benchmark.target(step, 0)
    with NamedProvider(target) as server:
        batches.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
        for _ in ("asked", "collected"):
            [reason] = _check(benchmark, _judge(benchmark), benchmark.lost({target})).values()
            assert str(tmp_path / "cache" / "batches") in reason
            assert server.sent == Counter(benchmark.order())
            server.name = AS_ASKED
            JUDGE_RUN.close()
        shutil.rmtree(tmp_path / "cache" / "batches")
        _check(benchmark, _judge(benchmark), set())
        assert server.sent == Counter([*benchmark.order(), target])
        JUDGE_RUN.close()
