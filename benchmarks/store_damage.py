"""Damages stores of replies, and checks that no reply comes back other than it was stored.

The stores hold replies of all five benchmarks. Bits are flipped, before a store is opened or under
its hands; files are cut, blocks exchanged, lines joined, doubled and given other ends. Then

- every reply that is served is the one that was stored under its key;
- every line that still stands whole between two line ends is served;
- nothing is raised.

Then runs are judged while their folder is removed or renamed, or a segment of an earlier run is
rewritten: they must end with the verdicts that the judge was told to give, and one more run sends
nothing.

    python benchmarks/store_damage.py --flips 100000 --others 20000 --runs 100
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from loguru import logger

import _support  # noqa: F401 - an import path
from judge_server import Behaviour, JudgeServer, Refuse, Say
from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.endpoint.store import StoredReplies, read_line
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from told_judge import Told
from told_questions import MODEL, N_CALLS, chain, expected, script, shown

CONFIG: Final = JudgeConfig(model=MODEL, timeout_s=30.0)
N_QUESTIONS: Final = 12
TOLD: Final = Told()
Damage = Callable[[bytes, random.Random], bytes]


def flip(data: bytes, rng: random.Random, n_bits: int) -> bytes:
    """Some bits are others, anywhere or all within 32 bytes."""
    altered = bytearray(data)
    start, end = 0, len(data)
    if rng.random() < 0.3:
        start = rng.randrange(len(data))
        end = min(end, start + 32)
    for _ in range(n_bits):
        altered[rng.randrange(start, end)] ^= 1 << rng.randrange(8)
    return bytes(altered)


def cut(data: bytes, rng: random.Random) -> bytes:
    """The end is missing."""
    return data[: rng.randrange(len(data))]


def cut_out(data: bytes, rng: random.Random) -> bytes:
    """A piece of the middle is missing, often one that brings two like places together."""
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.choice([1, 8, 9, 33, rng.randrange(600)]) :]


def zeros(data: bytes, rng: random.Random) -> bytes:
    """A block was never written, as after a power cut; or the end is nothing else."""
    start, n_bytes = rng.randrange(len(data)), rng.choice([64, 512, 4096])
    return data[:start] + bytes(n_bytes) + data[start + n_bytes :]


def exchange(data: bytes, rng: random.Random) -> bytes:
    """Two blocks stand in each other's place."""
    size = rng.choice([16, 64, 512, 1024])
    first, second = sorted(rng.randrange(len(data)) for _ in range(2))
    second = max(second, first + size)
    a, b = data[first : first + size], data[second : second + size]
    return data[:first] + b + data[first + size : second] + a + data[second + size :]


def splice(data: bytes, rng: random.Random) -> bytes:
    """A line goes on as another one does, from a like place on."""
    lines = data.splitlines(keepends=True)
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    at, onward = rng.choice([32, 33, 41, 42, 60]), rng.choice([32, 33, 41, 42, 60])
    lines[first] = lines[first][:at] + lines[second][onward:]
    return b"".join(lines)


def double(data: bytes, rng: random.Random) -> bytes:
    """Lines stand twice, in another order."""
    lines = data.splitlines(keepends=True)
    lines += rng.choices(lines, k=5)
    rng.shuffle(lines)
    return b"".join(lines)


def join(data: bytes, rng: random.Random) -> bytes:
    """A line end is gone, or is something else."""
    ends = [place for place, byte in enumerate(data) if byte == ord("\n")]
    end = rng.choice(ends)
    return data[:end] + rng.choice([b"", b" ", b"\r", b"\0", b"J"]) + data[end + 1 :]


def windows(data: bytes, rng: random.Random) -> bytes:
    """Line ends are those of another system, with a byte order mark or without."""
    return rng.choice([b"", b"\xef\xbb\xbf"]) + data.replace(b"\n", b"\r\n")


def upper(data: bytes, rng: random.Random) -> bytes:
    """Some keys are written in capitals."""
    lines = data.splitlines(keepends=True)
    return b"".join(line[:32].upper() + line[32:] if rng.random() < 0.3 else line for line in lines)


def rubbish(data: bytes, rng: random.Random) -> bytes:
    """Something else was written into the middle."""
    start = rng.randrange(len(data))
    return data[:start] + rng.randbytes(rng.randrange(1, 200)) + data[start:]


OTHERS: Final[tuple[Damage, ...]] = (
    cut, cut_out, zeros, exchange, splice, double, join, windows, upper, rubbish,
)  # fmt: skip


@dataclass
class Count:
    """Counts of damages and failures."""

    n_flips: int = 0
    n_stores: Counter[str] = field(default_factory=Counter)
    """Damage to stores that got it."""
    n_served: int = 0
    n_refused: int = 0
    failures: list[str] = field(default_factory=list)

    def fail(self, text: str) -> None:
        """Keep a failure, and print it."""
        self.failures.append(text)
        print(f"FAILED {text}", flush=True)


def make_store(benchmark: str, folder: Path) -> bytes:
    """One segment with the replies to some questions of a benchmark."""
    with JudgeServer(Behaviour(logprobs="whole")) as server:
        server.script = script(TOLD)
        _verdicts(benchmark, server.url, folder)
    return _segment(folder).read_bytes()


def check_damage(name: str, data: bytes, altered: bytes, *, is_open: bool, count: Count) -> None:
    """See what a store serves that is damaged, before it is opened or while it is open."""
    pairs = map(read_line, data.splitlines(keepends=True))
    truth = {key: Reply.from_json(value) for key, value in filter(None, pairs)}
    whole = {line + b"\n" for line in altered.replace(b"\r\n", b"\n").split(b"\n")[:-1]}
    intact = {line[0] for line in map(read_line, whole & _lines(data)) if line is not None}
    count.n_stores[name] += 1
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        path = Path(folder) / MODEL / "a.jsonl"
        path.parent.mkdir()
        path.write_bytes(data if is_open else altered)
        stored = StoredReplies(Path(folder), patience_s=0.0)
        if is_open:
            for key in list(truth)[::3]:
                stored.get(MODEL, key)
            path.write_bytes(altered)
            if len(altered) % 2:
                stored.refresh()
        try:
            served = {key: stored.get(MODEL, key) for key in truth}
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            count.fail(f"{name}: {error!r} was raised")
            return
        finally:
            stored.close()
    wrong = [key for key, reply in served.items() if reply not in (None, truth[key])]
    lost = [key for key in intact if served[key] is None]
    if wrong or lost:
        count.fail(f"{name}: {len(wrong)} altered replies, {len(lost)} whole lines not served")
    count.n_served += sum(reply is not None for reply in served.values())
    count.n_refused += sum(reply is None for reply in served.values())


def check_run(benchmark: str, what: str, rng: random.Random, count: Count) -> None:
    """Judge a benchmark while something happens to the folder."""
    count.n_stores[what] += 1
    behaviour = Behaviour(latency_s=0.01, logprobs="whole")
    with tempfile.TemporaryDirectory() as name, JudgeServer(behaviour) as server:
        server.script = honest = script(TOLD)
        n_questions, folder = 2 * N_QUESTIONS, Path(name) / "replies"
        right = [expected(TOLD, benchmark, 0, index) for index in range(n_questions)]
        if what == "rewritten":
            _verdicts(benchmark, server.url, folder)
        n_calls = N_CALLS[benchmark] * n_questions
        left = sorted(rng.sample(range(n_calls // 2), k=min(4, n_calls // 2)))

        def harming(payload: dict[str, Any]) -> Say | Refuse | str | None:
            if left and server.counts.n_requests > n_before + left[0]:
                left.pop(0)
                with suppress(OSError):  # nothing is there yet
                    _harm(folder / MODEL, what, rng)
            return honest(payload)

        n_before, server.script = server.counts.n_requests, harming
        verdicts = _verdicts(benchmark, server.url, folder, n_questions)
        left.clear()
        if verdicts != right:
            count.fail(f"{what} while {benchmark} was judged: {verdicts}")
        n_before = server.counts.n_requests
        if _verdicts(benchmark, server.url, folder, n_questions) != right:
            count.fail(f"{what} while {benchmark} was judged: the next run differs")
        n_again = server.counts.n_requests - n_before
        # What a segment held that is rewritten is lost, also where it was read before.
        if n_again and what != "rewritten":
            count.fail(f"{what} while {benchmark} was judged: {n_again} requests sent again")


def _harm(folder: Path, what: str, rng: random.Random) -> None:
    if what == "removed":
        shutil.rmtree(rng.choice([folder, folder.parent]))
    elif what == "renamed":
        whole = rng.choice([folder, folder.parent])
        whole.rename(whole.with_name(f"old-{rng.random()}"))
    else:
        path = min(folder.glob("*.jsonl"), key=lambda path: path.stat().st_ctime_ns)
        data = path.read_bytes()
        altered = flip(data, rng, 8) if rng.random() < 0.5 else rng.choice(OTHERS)(data, rng)
        if rng.random() < 0.5:
            path.write_bytes(altered)
        else:
            draft = path.with_suffix(".draft")
            draft.write_bytes(altered)
            draft.rename(path)


def _verdicts(
    benchmark: str, url: str, store: Path, n_questions: int = N_QUESTIONS
) -> list[str | None]:
    """Return the verdicts of a run."""
    with Engine(EngineConfig(urls=(url,), store=store, concurrency=4)) as engine:
        chains = [chain(benchmark, 0, index, CONFIG) for index in range(n_questions)]
        return list(map(shown, engine.submit(chains).result()))


def _segment(folder: Path) -> Path:
    return next((folder / MODEL).glob("*.jsonl"))


def _lines(data: bytes) -> set[bytes]:
    return set(data.splitlines(keepends=True))


def _memory() -> str | None:
    """A folder in memory, where there is one, for small files by the hundred thousand."""
    folder = "/dev/shm"  # noqa: S108 # nosec B108
    return folder if Path(folder).is_dir() else None


def main() -> int:
    """Damage, and count; 0 where nothing went wrong."""
    parser = argparse.ArgumentParser(description="Damage to stores of replies.")
    parser.add_argument("--flips", type=int, default=100_000, help="bits to flip, all together")
    parser.add_argument("--others", type=int, default=20_000, help="stores damaged in other ways")
    parser.add_argument("--runs", type=int, default=50, help="runs whose folder is damaged")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    logger.remove()
    rng, count, started_s = random.Random(arguments.seed), Count(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        stores = [make_store(name, Path(folder) / name) for name in N_CALLS]
    while count.n_flips < arguments.flips:
        data = rng.choice(stores)
        n_bits = min(rng.choice([1, 1, 1, 2, 3, 8]), arguments.flips - count.n_flips)
        count.n_flips += n_bits
        altered = flip(data, rng, n_bits)
        check_damage("flip", data, altered, is_open=rng.random() < 0.3, count=count)
    for number in range(arguments.others):
        damage, data = OTHERS[number % len(OTHERS)], rng.choice(stores)
        altered = damage(data, rng)
        check_damage(damage.__name__, data, altered, is_open=rng.random() < 0.5, count=count)
    for number in range(arguments.runs):
        benchmark = list(N_CALLS)[number % len(N_CALLS)]
        check_run(benchmark, ("removed", "renamed", "rewritten")[number % 3], rng, count)
    print(
        f"{count.n_flips:,} bits flipped and other damage in {count.n_stores.total():,} stores "
        f"and runs, {time.monotonic() - started_s:.0f} s: {count.n_served:,} replies served as "
        f"they were stored, {count.n_refused:,} not served, {len(count.failures)} failures"
    )
    print(", ".join(f"{name} {n:,}" for name, n in count.n_stores.items()))
    return 1 if count.failures else 0


if __name__ == "__main__":
    sys.exit(main())
