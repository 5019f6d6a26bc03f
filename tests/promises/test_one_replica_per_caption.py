"""Every benchmark, at every step: all that is asked about one caption is asked of one replica.

See ``test_every_failure.py`` for what is asked. One request is in flight at a time, so that no
replica is ever too busy for its captions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import pytest

from conftest import ServerFactory
from judge_server import Say
from lmms_eval_captions.judges.endpoint.replicas import Replicas
from lmms_eval_captions.judges.endpoint.urls import endpoint_name
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN
from lmms_eval_captions.lmms_eval_tasks.judged import caption_digest
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN
from test_every_failure import (
    BENCHMARKS,
    N_VIDEOS,
    TOLD,
    Benchmark,
    _caption,
    _check,
    _judge,
    _set,
    bench,  # noqa: F401 - a fixture
    sample,  # noqa: F401 - a fixture of that one
)
from told_judge import Key, key_of

N_REPLICAS: Final = 3


class Replies:
    """What three replicas say, and who said what."""

    def __init__(self) -> None:
        self.said: dict[Key, list[str]] = {}
        """Request to the replicas that were asked."""
        self._lock = threading.Lock()

    def of(self, url: str) -> Callable[[dict[str, Any]], Say]:
        """The script of one of them."""

        def script(payload: dict[str, Any]) -> Say:
            key = key_of(payload)
            with self._lock:
                self.said.setdefault(key, []).append(url)
            return Say(TOLD.text(key))

        return script


def _start(serve: ServerFactory, replies: Replies) -> list[str]:
    """Three replicas, of which the last is the one where the first video's caption belongs."""
    servers = [serve(logprobs="whole") for _ in range(N_REPLICAS)]
    for server in servers:
        server.script = replies.of(server.url)
    return [server.url for server in servers]


def _homes(benchmark: Benchmark, urls: list[str]) -> dict[int, str]:
    """Video to the replica where its caption belongs."""
    replicas = Replicas(list(map(endpoint_name, urls)))
    docs = {video: benchmark.doc(video) for video in range(N_VIDEOS)}
    captions = {video: doc.get("caption", _caption(video)) for video, doc in docs.items()}
    return {
        video: urls[replicas.order(caption_digest(caption))[0]]
        for video, caption in captions.items()
    }


@pytest.mark.parametrize(
    ("benchmark", "step"),
    [
        pytest.param(benchmark, step, id=f"{benchmark.name}-{step}")
        for benchmark in BENCHMARKS
        for step in benchmark.steps
    ],
)
def test_a_caption_is_asked_about_at_one_replica_alone(
    benchmark: Benchmark,
    step: str,
    bench: pytest.MonkeyPatch,  # noqa: F811 - a fixture
    serve: ServerFactory,
    tmp_path: Any,
) -> None:
    """All runs, asks and questions, whatever the order of the URLs; the numbers are as ever."""
    replies = Replies()
    urls = _start(serve, replies)
    homes = _homes(benchmark, urls)
    # Where the least busy were asked it would always be the first one.
    urls.sort(key=lambda url: url == homes[0])
    bench.setenv("LMMS_CAPTIONS_JUDGE_CONCURRENCY", "1")
    _set(benchmark, bench)
    for number, order in enumerate((urls, [urls[1], urls[0], urls[2]])):
        replies.said.clear()
        JUDGE_RUN.close()
        THIS_RUN.clear()
        bench.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / f"cache{number}"))
        bench.setenv("LMMS_CAPTIONS_JUDGE_URL", ",".join(order))
        _check(benchmark, _judge(benchmark), set())
        asked = {key: said for key, said in replies.said.items() if key.step == step}
        assert sorted(asked) == sorted(key for key in benchmark.order() if key.step == step)
        for key, said in asked.items():
            assert said == [homes[key.video]]
