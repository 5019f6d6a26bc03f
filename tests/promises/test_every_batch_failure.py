"""Every benchmark, at every step, judged through the Batch API, under every kind of failure there.

One request of one question misbehaves in its batch, or the batch that holds it. A line that cannot
be read, is missing, or failed in a way that can pass costs its own request another batch and
nothing else; what is refused loses its question alone; a batch that is refused or cancelled ends
judging, and the rerun asks what is missing. See ``test_every_failure.py`` for what is lost when.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest

from batch_server import BatchServer
from judge_server import Say, last_text
from lmms_eval_captions.judges.endpoint.endpoint import BatchPace
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from test_every_failure import (
    BENCHMARKS,
    KEPT,
    TOLD,
    Benchmark,
    _change_engine,
    _check,
    _judge,
    bench,  # noqa: F401 - a fixture
    sample,  # noqa: F401 - a fixture of that one
)
from told_judge import FREE_TEXT, Key, key_of

PACE: Final = BatchPace(quiet_s=0.08, first_poll_s=0.01, most_poll_s=0.03, patience_s=5.0)
NAMES: Final = (
    "vdc_camera", "vidcapbench_ae", "vcapsbench", "capquiz", "msvd_eval_ref_only", "own_vllm_judge",
)  # fmt: skip

BAD_LINES: Final[dict[str, Callable[[str], bytes]]] = {
    "not JSON": lambda _: b"<html>bad gateway</html>",
    "cut": lambda i: b'{"custom_id": "%s", "response": {"status_code": 200, "bo' % i.encode(),
    "a list": lambda i: json.dumps([i]).encode(),
    "without an id": lambda _: b'{"response": {"status_code": 200, "body": {}}, "error": null}',
    "another id": lambda _: b'{"custom_id": "nobody", "response": null, "error": {"code": "x"}}',
    "an id that is a list": lambda i: json.dumps({"custom_id": [i], "error": {}}).encode(),
    "no response": lambda i: json.dumps({"custom_id": i, "response": None, "error": None}).encode(),
    "a status that is text": lambda i: json.dumps(
        {"custom_id": i, "response": {"status_code": "so", "body": {}}}
    ).encode(),
    "nested deep": lambda i: b'{"custom_id": "%s", "response": %s' % (i.encode(), b"[" * 100_000),
    "bytes that are no text": lambda i: b'{"custom_id": "%s", \xff\xfe\x00' % i.encode(),
    "a completion of another shape": lambda i: json.dumps(
        {"custom_id": i, "response": {"status_code": 200, "body": {"choices": []}}, "error": None}
    ).encode(),
    "a failure that passes": lambda i: json.dumps(
        {"custom_id": i, "response": {"status_code": 500, "body": None}, "error": None}
    ).encode(),
}
"""Lines in the place of a request's own, by ``custom_id``: it is asked again, once."""
ANSWERED: Final = r"http://127\.0\.0\.1:\d+/v1 answered "
REFUSALS: Final = {
    "refused": (400, "The prompt triggered our content filter"),
    "flagged": (403, "Your input was flagged for violence"),
}
REASONS: Final = {
    **{kind: re.escape(reason) for kind, reason in KEPT.items() if kind in ("empty", "unreadable")},
    **{kind: f"{ANSWERED}{status}: {words}" for kind, (status, words) in REFUSALS.items()},
    "missing for good": (
        r"gave up on this request: batch batch-\d+ ended \(completed\) without a reply to this "
        "request"
    ),
    "batch cancelled": r"batch batch-\d+ was cancelled at the provider; .*",
    "batch refused": r"batch batch-\d+ was refused: invalid_request: told to refuse",
}
KINDS: Final = (*BAD_LINES, *REASONS, "missing once", "batch expired", "an odd state")
STOPS: Final = ("batch cancelled", "batch refused")

CELLS: Final = [
    pytest.param(benchmark, step, kind, id=f"{benchmark.name}-{step}-{kind}")
    for benchmark in BENCHMARKS
    if benchmark.name in NAMES
    for step in benchmark.steps
    for kind in KINDS
    # How a line is read does not depend on the benchmark.
    if kind not in BAD_LINES or kind == "cut" or benchmark.name == "vidcapbench_ae"
]


def test_every_benchmark_has_its_cells() -> None:
    """A name that is none of a benchmark's would leave its cells out without a word."""
    assert {benchmark.name for benchmark in BENCHMARKS if benchmark.name in NAMES} == set(NAMES)


class Provider(BatchServer):
    """Says what it is told to, but for one request, or the batch that it is in."""

    def __init__(self, target: Key, kind: str) -> None:
        super().__init__()
        self.target = target
        self.kind = kind
        self.sent: Counter[Key] = Counter()
        """Requests to how often they were in a batch that came to its end."""
        self.answered: set[Key] = set()
        self.script = self._say
        self.fate = self._fate
        self.end = self._end_of

    def _say(self, body: dict[str, Any]) -> Say:
        key = key_of(body)
        if not TOLD.is_consistent(key, last_text(body)):
            return Say("This is not what the first step said.")
        if key == self.target and self.kind in ("empty", "unreadable"):
            nonsense = "<think>Hm.</think>\n" if key.step in FREE_TEXT else "What weather!"
            return Say("" if self.kind == "empty" else nonsense)
        self.answered.add(key)
        return Say(TOLD.text(key))

    def _fate(self, _number: int, body: dict[str, Any]) -> Any:
        key = key_of(body)
        self.sent[key] += 1
        if key != self.target:
            return None
        if self.kind in REFUSALS:
            status, words = REFUSALS[self.kind]
            return status, {"error": {"message": words}}
        if self.kind == "missing for good":
            return "missing"
        if self.sent[key] > 1:
            return None
        if self.kind in BAD_LINES:
            return BAD_LINES[self.kind]
        lacks = ("missing once", "batch expired", "batch cancelled")
        return "missing" if self.kind in lacks else None

    def _end_of(self, bodies: list[dict[str, Any]]) -> dict[str, Any]:
        keys = list(map(key_of, bodies))
        if self.target not in keys or self.sent[self.target]:
            return {}
        if self.kind == "an odd state":
            return {"request_counts": None, "errors": {"data": ["odd"]}, "usage": [None]}
        status = {
            "batch expired": "expired",
            "batch cancelled": "cancelled",
            "batch refused": "failed",
        }.get(self.kind, "completed")
        return {"status": status}


@pytest.fixture
def batches(bench: pytest.MonkeyPatch) -> pytest.MonkeyPatch:  # noqa: F811 - a fixture
    """A process that judges through a Batch API, with short waits."""
    _change_engine(bench, batch_pace=PACE)
    bench.setenv("LMMS_CAPTIONS_JUDGE_MODE", "batch")
    return bench


@pytest.mark.parametrize(("benchmark", "step", "kind"), CELLS)
def test_one_failure_in_a_batch_loses_what_it_concerns_and_nothing_else(
    benchmark: Benchmark,
    step: str,
    kind: str,
    batches: pytest.MonkeyPatch,
    logged: list[str],
) -> None:
    """The rest is scored as it is, the reason is the true one, a rerun asks what may be asked."""
    target = benchmark.target(step, 1 if benchmark.n_asks > 1 else 0)
    failed = {target} if kind in REASONS else set()
    with Provider(target, kind) as server:
        batches.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
        items = _judge(benchmark)
        if kind in STOPS:
            # What went out before the batch ended is judged to its end.
            for pending in items["unscored"]:
                pending.wait()
            failed = set(benchmark.order()) - server.answered
            assert target in failed
        reasons = _check(benchmark, items, benchmark.lost(failed))
        for reason in reasons.values():
            prefix = r"(no answer from the caption: |[123] of 3 asks failed and no two agree: )?"
            assert re.fullmatch(prefix + REASONS[kind], reason)
        if kind not in REASONS:
            expected = Counter(benchmark.order())
            expected[target] += kind != "an odd state"
            assert server.sent == expected
        answered = server.answered
        SESSION.close()
        assert not [line for line in logged if line.startswith("ERROR") or "internal" in line]

    with Provider(target, "nothing") as server:
        batches.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
        kept = benchmark.lost(failed) if kind in KEPT else set()
        _check(benchmark, _judge(benchmark), kept)
        missing = set() if kind in KEPT else set(benchmark.order()) - answered
        assert server.sent == Counter(missing)
        SESSION.close()
