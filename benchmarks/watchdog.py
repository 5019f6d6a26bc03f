"""Throws at every statement, ``await`` and callback of the engine in turn, and waits for an end.

The code of ``judges/`` is searched for places as it is imported (see ``thrown_errors.py``), so what
is written later is looked at as well. Each setting is first judged without exceptions, which tells
the verdicts and the places that it passes. Then, for each place, an exception is thrown there, once
and for good, while some captions are judged. Then it checks:

- every caption ends within seconds, with its verdicts or with a reason that names what was thrown;
- a caption submitted afterwards ends, with its verdicts where the exception came once;
- the engine closes within seconds, and what is submitted then ends as well.

    python benchmarks/watchdog.py --exceptions 5 --seed 0
"""

# ruff: noqa: E402 - the engine is imported after what changes it is installed
from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
import warnings
from asyncio import CancelledError
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from unittest import mock

from thrown_errors import MARK, PLACES, THREAD, TRAP, Place, install

install()
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from loguru import logger

import faults
from batch_server import BatchServer
from judge_server import Behaviour, JudgeServer, Refuse, Say
from lmms_eval_captions.judges.endpoint import engine as engines
from lmms_eval_captions.judges.endpoint import engine_thread
from lmms_eval_captions.judges.endpoint.batch.client import BatchPace
from lmms_eval_captions.judges.endpoint.chain import Chain
from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.explicit_sampling import NEUTRAL
from lmms_eval_captions.judges.endpoint.head_start import HeadStart
from lmms_eval_captions.judges.endpoint.store.store import ReplyStore
from lmms_eval_captions.judges.errors import JudgeError, StoreError
from lmms_eval_captions.lmms_eval_tasks import judge_run as judging
from told_questions import MODEL, N_CALLS, shown

EXCEPTIONS: Final = (RuntimeError, KeyError, CancelledError, MemoryError, SystemExit)
END_S: Final = 10.0
"""Seconds in which everything has to end."""
_TRUSTED: Final = (
    ("endpoint.engine_thread", "EngineThread._serve", "start"),
    ("endpoint.engine_thread", "EngineThread._end", None),
    ("endpoint.engine_thread", "EngineThread._settle_all", None),
    ("endpoint.engine_thread", "settle", None),
)
"""What ends waiting where all else failed: nothing is thrown there for good, nor at the birth of
the thread."""
_PACE: Final = BatchPace(
    quiet_s=0.02, first_poll_s=0.01, most_poll_s=0.02, patience_s=5.0, backoff_s=0.01
)
_SETTINGS: Final = (*N_CALLS, "store", "budget", "batch", "again", "ahead")
_RESAMPLE_SEED: Final = 1_000_003
_ALIAS: Final = "served"
"""Name under which the server of the setting ``again`` answers."""


@dataclass(frozen=True)
class Setting:
    """What is judged, and how it goes wrong without us."""

    name: str

    @property
    def scenario(self) -> faults.Scenario:
        """Where questions come from."""
        benchmark = self.name if self.name in N_CALLS else "vdc"
        benchmark = "vcapsbench" if self.name == "again" else benchmark
        return replace(faults.Scenario.draw(0), benchmark=benchmark, faults=(), logprobs="whole")

    def captions(self) -> list[list[Chain[Any]]]:
        """The questions of some captions, two of them the same."""
        first, second = ([self._chain(i) for i in range(k, k + 3)] for k in (0, 3))
        return [first, list(first), second]

    def later(self) -> list[Chain[Any]]:
        """The questions of a caption that comes afterwards."""
        return [self._chain(i) for i in (6, 7)]

    def _chain(self, index: int) -> Chain[Any]:
        return self.scenario.chain(0, index)


@dataclass
class Run:
    """What came of one judging: the captions', the later one's, and one after the end."""

    futures: list[Future[list[Any]]]
    later: Future[list[Any]]
    late: Future[list[Any]]
    closed: bool
    early: bool
    """Whether all was thrown before the later caption was submitted."""
    hung: list[int]
    """Captions, by number, that had not ended before the engine was closed."""


class Judging:
    """The servers of a setting, and its engines."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        behaviour = Behaviour(
            latency_s=0.002,
            tail=0.1,
            tail_factor=10,
            faults=("429", "500", "garbage"),
            fault_rate=0.2,
            max_faults=2,
            logprobs="whole",
        )
        self._server = JudgeServer(behaviour)
        self._replica = JudgeServer(behaviour)
        self._batches = BatchServer()
        self._batches.n_polls = 0

    def __enter__(self) -> Judging:
        judge = faults.Judge(replace(self.setting.scenario, spoilt=()))
        self._server.script = _Misnamed(judge) if self.setting.name == "again" else judge
        self._replica.script = self._server.script
        self._server.__enter__()
        self._replica.__enter__()
        self._batches.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.__exit__()
        self._replica.__exit__()
        self._batches.__exit__()

    def play(self, meanwhile: Callable[[], None] = lambda: None) -> Run:
        """Judge the captions, then the later one, and close.

        Args:
            meanwhile: Called before the captions are submitted.
        """
        self._server._failed.clear()
        self._replica._failed.clear()
        self._batches.batches.clear()
        self._batches.files.clear()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            store = Path(folder) / "replies"
            if self.setting.name == "again":
                self._fill_with_unreadable(store)
            bench = judging.JudgeRun()
            with mock.patch.object(judging, "engine_config", return_value=self._config(store)):
                meanwhile()
                futures = [
                    bench.engine().submit(chains, about=b"caption %d" % number)
                    for number, chains in enumerate(self.setting.captions())
                ]
                self._write_beside(store)
                hung = [futures.index(future) for future in wait(futures, END_S).not_done]
                n_thrown = TRAP.n_thrown
                later = bench.engine().submit(self.setting.later())
                hung += [len(futures)] * bool(wait([later], END_S).not_done)
                early = n_thrown == TRAP.n_thrown
                engine = bench._engine
                assert engine is not None  # noqa: S101 - it was just asked for
                # A close that hangs must not hang this.
                closing = threading.Thread(target=engine.close, daemon=True)
                closing.start()
                closing.join(END_S)
                late = engine.submit(self.setting.later())
                wait([late], END_S)
        return Run(futures, later, late, not closing.is_alive(), early, hung)

    def _config(self, store: Path) -> EngineConfig:
        config = EngineConfig(
            urls=(self._server.url,),
            store=store,
            concurrency=2,
            backoff_s=0.002,
            max_backoff_s=0.005,
            store_patience_s=0.05,
            n_attempts=12,
            outage_patience_s=0.3,
            n_rereads=1,
        )
        if self.setting.name == "budget":
            prices = store.parent / "prices.yaml"
            prices.write_text("models: {judge: {input: 0, output: 1}}")
            config = replace(config, prices=prices, max_cost_usd=0.03, concurrency=8)
        if self.setting.name == "again":
            config = replace(config, n_rereads=0, sampling=NEUTRAL, alias=_ALIAS, ask_again=True)
        if self.setting.name == "ahead":
            config = replace(config, urls=(self._server.url, self._replica.url), concurrency=3)
        if self.setting.name == "batch":
            urls = (self._batches.url,)
            config = replace(config, urls=urls, mode="batch", concurrency=99, batch_pace=_PACE)
        return config

    def _fill_with_unreadable(self, store: Path) -> None:
        """Store what cannot be read to every request, which is then asked anew."""
        with engines.Engine(replace(self._config(store), ask_again=False)) as engine:
            futures = [engine.submit(chains) for chains in self.setting.captions()]
            wait([*futures, engine.submit(self.setting.later())], END_S)

    def _write_beside(self, store: Path) -> None:
        """Be another process that uses the same store."""
        other = ReplyStore(store / MODEL)
        other.put(b"0123456789abcdef", b'{"text":"","finish_reason":"stop"}')
        other.close()


@dataclass(frozen=True)
class _Misnamed:
    """A judge of another name, that takes no sampling parameters and is understood when asked anew.

    Args:
        judge: What it then says.
    """

    judge: faults.Judge

    def __call__(self, payload: dict[str, Any]) -> Say | Refuse | str:
        """What a request gets."""
        if "top_k" in payload:
            return Refuse(400, "unrecognized request argument supplied: top_k")
        if payload["seed"] < _RESAMPLE_SEED:
            return Say("What weather!", model=_ALIAS)
        said = self.judge(payload)
        return replace(said, model=_ALIAS) if isinstance(said, Say) else said


@contextmanager
def hurried() -> Iterator[None]:
    """An engine that ticks fast."""
    with mock.patch.object(engine_thread, "_TICK_S", 0.01):
        yield


@contextmanager
def failing_disk(setting: Setting) -> Iterator[None]:
    """In one setting, every fifth reply cannot be written at first."""
    n_writes = 0
    real = ReplyStore.put

    def put(store: ReplyStore, key: bytes, value: bytes) -> None:
        nonlocal n_writes
        is_ours = threading.current_thread().name == THREAD
        n_writes += is_ours
        if is_ours and n_writes % 5 == 0:
            raise StoreError("cannot write: no space left on the disk")
        real(store, key, value)

    if setting.name != "store":
        yield
        return
    with mock.patch.object(ReplyStore, "put", put):
        yield


class _Always(HeadStart):
    """A head start for every caption."""

    def __init__(self, n_slots: int, *, is_possible: bool = True) -> None:
        super().__init__(n_slots, is_possible=is_possible)
        self.state = "on"


@contextmanager
def first_ones_ahead(setting: Setting) -> Iterator[None]:
    """In one setting, the first question of every caption goes out before the others."""
    if setting.name != "ahead":
        yield
        return
    with mock.patch.object(engines, "HeadStart", _Always):
        yield


def verdicts(future: Future[list[Any]]) -> list[str] | None:
    """Verdicts of a caption, or why there are none."""
    if not future.done():
        return None
    error = future.exception()
    if error is not None:
        return [f"lost: {error!r}"]
    return [
        f"lost: {judgement.reason}" if judgement.reason else str(shown(judgement))
        for judgement in future.result()
    ]


def problems(run: Run, calm: Run, *, for_good: bool) -> list[str]:
    """What is wrong with a run in which something was thrown."""
    texts: list[str] = []
    pairs = [*zip(run.futures, calm.futures, strict=True), (run.later, calm.later)]
    names = ("first", "twin", "second", "later")
    for index, (name, (future, expected)) in enumerate(zip(names, pairs, strict=True)):
        said, right = verdicts(future), verdicts(expected)
        if said is None or index in run.hung:
            texts.append(f"the {name} caption waits for ever")
            continue
        if name == "later" and run.early and not for_good and said != right:
            texts.append(f"the later caption was harmed: {said}")
        lost = [verdict for verdict in said if verdict.startswith("lost: ")]
        texts += [f"the {name} caption: {verdict}" for verdict in lost if not _is_told(verdict)]
        if not lost and said != right:
            texts.append(f"the {name} caption has other verdicts: {said}")
    if not run.closed:
        texts.append("the engine does not close")
    if not run.late.done() or not isinstance(run.late.exception(), JudgeError):
        texts.append("what is submitted after the end is not settled")
    return texts


def _is_told(reason: str) -> bool:
    """Whether a reason says what was thrown, what came of that, or what it makes of a reply."""
    words = (
        "Error(",
        "unreadable reply",
        "expected a chat completion",
        "gave no reply to any request",
        "without a reply to this request",
    )
    names = (error.__name__ for error in EXCEPTIONS)
    return MARK in reason or any(word in reason for word in (*words, *names))


def _is_looked_at(place: Place, kinds: set[str]) -> bool:
    """Of protocols the callbacks and awaits alone, of what reads log-probabilities nothing.

    Nothing waits there, and what cannot be read of log-probabilities makes other scores.
    """
    if place.module in ("endpoint.answers.logprobs", "protocols.number_distribution"):
        return False
    is_protocol = place.module.startswith("protocols") and not place.module.startswith(
        "protocols.prompt"
    )
    return place.kind in kinds and (not is_protocol or place.kind != "statement")


def _is_trusted(place: Place, *, for_good: bool) -> bool:
    return any(
        (place.module, place.function) == (module, function)
        and (place.kind == kind or (kind is None and for_good))
        for module, function, kind in _TRUSTED
    )


@dataclass
class Campaign:
    """Throws at places, and counts.

    Args:
        kinds: Of places.
        share: Of the places, in (0, 1].
        n_exceptions: Kinds of exception per place, <= 5.
        only: Words of the places.
        every_setting: Whether a place is thrown at in every setting that passes it.
        seed: Of the shares, and of when something is thrown.
    """

    kinds: set[str]
    share: float = 1.0
    n_exceptions: int = 1
    every_setting: bool = False
    only: str = ""
    seed: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)
        self._done: set[int] = set()

    def attack(self, setting: Setting) -> None:
        """Judge calmly, and then again and again with something thrown."""
        with (
            Judging(setting) as judged,
            hurried(),
            failing_disk(setting),
            first_ones_ahead(setting),
        ):
            TRAP.disarm()
            TRAP.passed.clear()
            calm = judged.play()
            for text in problems(calm, calm, for_good=False):
                self._fail(f"{setting.name}: calm: {text}")
            passed = {
                number: n_times
                for number, n_times in TRAP.passed.items()
                if _is_looked_at(PLACES[number], self.kinds)
                and self.only in str(PLACES[number])
                and (self.every_setting or number not in self._done)
            }
            self._done |= passed.keys()
            places = [number for number in sorted(passed) if self._rng.random() < self.share]
            self.counts["places"] += len(places)
            self.counts["awaits"] += sum(PLACES[number].kind == "await" for number in places)
            for index, number in enumerate(places):
                for thrown in range(self.n_exceptions):
                    error = EXCEPTIONS[(index + thrown) % len(EXCEPTIONS)]
                    for for_good in (False, True):
                        if not _is_trusted(PLACES[number], for_good=for_good):
                            nth = self._rng.randint(1, passed[number])
                            self._throw(judged, calm, number, error, nth=nth, for_good=for_good)

    def _throw(
        self,
        judged: Judging,
        calm: Run,
        number: int,
        error: type[BaseException],
        *,
        nth: int,
        for_good: bool,
    ) -> None:
        started_s = time.monotonic()
        run = judged.play(lambda: TRAP.arm(number, lambda: error(MARK), nth=nth, for_good=for_good))
        TRAP.disarm()
        elapsed_ms = int(1000 * (time.monotonic() - started_s))
        self.counts["runs"] += 1
        self.counts["slowest ms"] = max(self.counts["slowest ms"], elapsed_ms)
        if not TRAP.n_thrown:
            return  # not every judging passes every place
        self.counts["thrown"] += 1
        how = "for good" if for_good else f"once at {nth}"
        for text in problems(run, calm, for_good=for_good):
            self._fail(f"{judged.setting.name}: {error.__name__} {how} at {PLACES[number]}: {text}")

    def _fail(self, what: str) -> None:
        self.failures.append(what)
        print(f"FAILED {what}", flush=True)


def main() -> int:
    """Throw; 1 where anything waited for ever, or was lost for no reason."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--settings", default=",".join(_SETTINGS), help="comma-separated")
    parser.add_argument("--exceptions", type=int, default=1, help="kinds of exception per place")
    parser.add_argument("--share", type=float, default=1.0, help="of the places")
    parser.add_argument("--kinds", default="start,statement,await,leave", help="of places")
    parser.add_argument(
        "--every-setting",
        action="store_true",
        help="throw at a place in every setting that passes it, not in the first alone",
    )
    parser.add_argument("--only", default="", help="words of the places, such as Slots.fill")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    logger.remove()
    # What is thrown leaves coroutines behind, and ends threads.
    warnings.simplefilter("ignore", RuntimeWarning)
    threading.excepthook = lambda _: None
    started_s = time.monotonic()
    campaign = Campaign(
        kinds=set(arguments.kinds.split(",")),
        share=arguments.share,
        n_exceptions=arguments.exceptions,
        every_setting=arguments.every_setting,
        only=arguments.only,
        seed=arguments.seed,
    )
    for name in arguments.settings.split(","):
        campaign.attack(Setting(name))
    counts = campaign.counts
    print(
        f"{len(campaign.failures)} failures in {counts['runs']:,} runs, {counts['thrown']:,} with "
        f"an exception, at {counts['places']:,} places, {counts['awaits']} of them awaits; the "
        f"slowest took {counts['slowest ms']} ms, all {time.monotonic() - started_s:.0f} s"
    )
    return 1 if campaign.failures or not counts["thrown"] else 0


if __name__ == "__main__":
    sys.exit(main())
