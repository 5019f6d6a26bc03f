"""Claims: what one process is asking, another one leaves to it for as long as it lives."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import EngineFactory, ServerFactory
from lmms_eval_captions.judges.endpoint.chain import Ask, Chain
from lmms_eval_captions.judges.endpoint.outcome import Asked
from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.endpoint.store import claims
from lmms_eval_captions.judges.endpoint.store.claims import Claims

_KEY = bytes(range(16))
_OTHER = """
import sys, time
from pathlib import Path
from lmms_eval_captions.judges.endpoint.store.claims import Claims
claims = Claims(Path(sys.argv[1]))
print(claims.take(bytes.fromhex(sys.argv[2])), flush=True)
for line in sys.stdin:
    if line == "wait\\n":
        time.sleep(0.2)
    else:
        claims.release(bytes.fromhex(sys.argv[2]), in_a_while=line == "saved\\n")
    claims.tick()
    print("done", flush=True)
"""


@contextmanager
def _other_process(folder: Path, key: bytes = _KEY) -> Iterator[subprocess.Popen[str]]:
    """Another process that has claimed a request."""
    line = [sys.executable, "-c", _OTHER, str(folder), key.hex()]
    with subprocess.Popen(line, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        yield process
        process.kill()


def _tell(process: subprocess.Popen[str], what: str) -> None:
    """Have the other process do something, and wait until it has."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{what}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def _request(text: str = "prompt", *, timeout_s: float = 5.0) -> Request:
    return Request(
        protocol="test:1",
        model="judge",
        messages=[{"role": "user", "content": text}],
        params={"temperature": 0.0, "max_tokens": 8},
        seed=0,
        timeout_s=timeout_s,
        stand_in=lambda: "",
    )


def _chain(request: Request) -> Chain[Asked[str]]:
    async def run(ask: Ask) -> Asked[str]:
        return await ask(request, lambda reply: reply.text or None)

    return run


def test_a_claim_is_one_process_s_until_it_gives_it_up(tmp_path: Path) -> None:
    """What another process holds cannot be claimed, what differs from it can."""
    mine = Claims(tmp_path)
    with _other_process(tmp_path) as other:
        assert not mine.take(_KEY)
        assert mine.take(_KEY[::-1])
        assert mine.take(bytes([1]) + _KEY[1:])
        _tell(other, "not saved")
        assert mine.take(_KEY)
    mine.close()


def test_the_claims_of_a_process_that_dies_are_gone_with_it(tmp_path: Path) -> None:
    """Nobody waits for a process that was killed."""
    mine = Claims(tmp_path)
    with _other_process(tmp_path) as other:
        assert not mine.take(_KEY)
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert mine.take(_KEY)
    mine.close()


def test_a_claim_outlasts_the_saving_of_its_reply(tmp_path: Path) -> None:
    """Others have the time to see the reply before they could send the request themselves."""
    mine = Claims(tmp_path)
    with _other_process(tmp_path) as other:
        _tell(other, "saved")
        assert not mine.take(_KEY)
        _tell(other, "wait")
        assert mine.take(_KEY)
    mine.close()


@pytest.mark.parametrize("error", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EIO])
def test_without_locks_everything_is_claimed_at_once(
    tmp_path: Path, error: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that has no locks costs the sharing, not the judging."""

    def fail(*_: object) -> None:
        raise OSError(error, os.strerror(error))

    mine = Claims(tmp_path)
    with _other_process(tmp_path):
        monkeypatch.setattr(fcntl, "lockf", fail)
        assert mine.take(_KEY)
        assert mine.take(_KEY)
        mine.release(_KEY)
        mine.tick()
        mine.close()


def test_a_system_without_such_locks_is_no_hindrance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Python has no ``fcntl``, everything is claimed at once."""
    monkeypatch.setattr(claims, "fcntl", None)
    mine = Claims(tmp_path)
    assert mine.take(_KEY)
    mine.release(_KEY)
    mine.close()


def test_claims_that_nobody_needs_touch_no_disk(tmp_path: Path) -> None:
    """Batches are not claimed: who waits for one would hold its claims for hours."""
    none = Claims(None)
    assert none.take(_KEY)
    none.release(_KEY, in_a_while=True)
    none.tick()
    none.close()
    assert not list(tmp_path.iterdir())


def test_claims_follow_their_folder(tmp_path: Path) -> None:
    """Where the folder was removed, what is held is claimed again in the files that others see."""
    folder = tmp_path / "claims"
    mine = Claims(folder)
    assert mine.take(_KEY)
    shutil.rmtree(folder)
    mine.tick()
    line = [sys.executable, "-c", _OTHER, str(folder), _KEY.hex()]
    other = subprocess.run(line, input="", capture_output=True, text=True, check=True)
    assert other.stdout == "False\n"
    mine.close()


def test_a_wait_ends_with_the_reply_the_claim_or_patience(tmp_path: Path) -> None:
    """Whoever waits is told in each case, and holds the claim where nobody else does."""

    async def wait(mine: Claims, *, is_stored: bool, patience_s: float) -> float:
        started_s = time.monotonic()
        future = mine.wait(_KEY, lambda: is_stored, patience_s=patience_s)
        while not future.done():
            mine.tick()
            await asyncio.sleep(0.01)
        mine.release(_KEY)
        return time.monotonic() - started_s

    mine = Claims(tmp_path)
    with _other_process(tmp_path) as other:
        assert asyncio.run(wait(mine, is_stored=True, patience_s=9.0)) < 0.5
        assert 0.2 < asyncio.run(wait(mine, is_stored=False, patience_s=0.2)) < 1.0
        other.kill()
        other.wait()
        assert asyncio.run(wait(mine, is_stored=False, patience_s=9.0)) < 2.0
    mine.close()


@pytest.mark.parametrize("end", ["saves", "dies", "hangs"])
def test_what_another_process_asks_is_waited_for(
    end: str, tmp_path: Path, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Its reply is taken where it comes; where it dies or stands still the request is sent."""
    server, request = serve(), _request(timeout_s=0.5)
    engine = make_engine(server.url, concurrency=1, outage_patience_s=0.5 if end == "hangs" else 60)
    key = request.key(request.body(0))
    other_store = make_engine(server.url)._stored
    with _other_process(tmp_path / "replies" / ".claims", key) as other:
        future = engine.submit([_chain(request)])
        # What waits holds no place.
        assert engine.submit([_chain(_request("another"))]).result(timeout=5)[0].value
        assert server.counts.n_requests == 1
        assert not future.done()
        if end == "saves":
            asyncio.run(other_store.save("judge", key, Reply("from elsewhere")))
        elif end == "dies":
            other.kill()
            other.wait()
        asked = future.result(timeout=10)[0]
    is_theirs = end == "saves"
    assert asked.value == ("from elsewhere" if is_theirs else server.reply("prompt"))
    assert (asked.cached, asked.usage.n_calls) == (is_theirs, int(not is_theirs))
    assert server.counts.n_requests == 2 - is_theirs


def test_what_another_process_writes_anew_is_waited_for(
    tmp_path: Path, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """A folder that is removed under two processes costs neither a question, nor a request."""
    server = serve()
    writer, reader = make_engine(server.url), make_engine(server.url)
    chains = [_chain(_request(f"prompt {number}")) for number in range(20)]
    written = writer.submit(chains).result(timeout=10)
    time.sleep(0.6)
    assert reader.submit([_chain(_request("another"))]).result(timeout=10)[0].value
    shutil.rmtree(tmp_path / "replies")
    read = reader.submit(chains).result(timeout=10)
    assert [one.value for one in read] == [one.value for one in written]
    assert all(one.cached for one in read)
    assert server.counts.n_requests == 21


def test_a_request_in_a_batch_is_not_claimed(tmp_path: Path, make_engine: EngineFactory) -> None:
    """Two runs that submit batches do not wait for each other."""
    engine = make_engine("http://127.0.0.1:9/v1", mode="batch")
    assert engine._claims.take(_KEY)
    assert not (tmp_path / "replies").exists()


def test_an_engine_that_is_closed_gives_its_claims_up(
    tmp_path: Path, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """A request that was under way, or waited for, is free for others at once."""
    engine = make_engine(serve(latency_s=60.0).url)
    request = _request()
    key = request.key(request.body(0))
    future = engine.submit([_chain(request)])
    with _other_process(tmp_path / "replies" / ".claims"):
        while key not in engine._claims._held:
            time.sleep(0.01)
        engine.close()
    assert future.exception(timeout=5) is not None
    with _other_process(tmp_path / "replies" / ".claims", key):
        pass


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for-good"])
@pytest.mark.parametrize("where", ["take", "wait", "release", "tick", "_follow"])
def test_whatever_is_raised_over_a_claim_nobody_waits_for_ever(
    where: str,
    lasting: bool,
    tmp_path: Path,
    serve: ServerFactory,
    make_engine: EngineFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A defect of ours ends in results or errors, also of twins and of what others have claimed."""
    requests = [_request(f"prompt {number}", timeout_s=0.3) for number in range(9)]
    engine = make_engine(serve(latency_s=0.01).url, concurrency=4, outage_patience_s=0.3)
    real, n_calls = getattr(Claims, where), 0

    def broken(*arguments: object, **named: object) -> object:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 3 or (lasting and n_calls > 3):
            raise RuntimeError("a defect")
        return real(*arguments, **named)

    key = requests[5].key(requests[5].body(0))
    with _other_process(tmp_path / "replies" / ".claims", key):
        monkeypatch.setattr(Claims, where, broken)
        futures = [
            engine.submit([_chain(requests[(i + k) % 9]) for k in range(4)]) for i in range(12)
        ]
        waiting = wait(futures, timeout=10).not_done
        monkeypatch.undo()
        engine.close()
    assert not waiting
