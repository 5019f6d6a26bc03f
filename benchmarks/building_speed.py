"""Time of a build against a server with limited slots, and the cost of a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import _support  # noqa: F401 - an import path
from builder_replies import Told
from builder_server import Builder, BuilderServer
from building_runs import WRITERS, command, environment
from judge_server import Behaviour
from lmms_eval_captions.lmms_eval_tasks.data.files import read_jsonl
from numbered_clips import write_clips

LONGEST: Final = 1.2
"""Times calls / rate that a build may take."""
SURE_S: Final = 1.0
"""A reply that was sent so long before a kill must be kept; a later one may be on its way."""
LATENCY_S: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Build and server."""

    n_clips: int = 200
    n_questions: int = 40
    """Questions per clip, all writers together."""
    rate: float = 200.0
    """Requests a second that the server's slots allow."""
    size: tuple[int, int] = (160, 120)
    n_frames: int = 16
    """Frames per clip."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A process that has ended."""

    returncode: int
    wall_s: float
    cpu_s: float
    peak_mib: float


def measure_speed(wish: Wish, folder: Path) -> int:
    """Measure, print, and return how many goals were missed."""
    width, height = wish.size
    clips = write_clips(
        folder / "clips", wish.n_clips, width=width, height=height, n_frames=wish.n_frames
    )
    behaviour = Behaviour(latency_s=LATENCY_S, slots=round(wish.rate * LATENCY_S))
    told = Told(n_questions=wish.n_questions // len(WRITERS))
    with BuilderServer(Builder(told), behaviour) as server:
        whole = _Build(wish, clips, folder / "whole", server)
        timed = whole.run()
        n_calls = server.counts.n_answered
        ideal_s = n_calls / wish.rate
        print(
            "| calls | seconds | calls / rate | times that | CPU s | peak MiB |\n"
            "|---|---|---|---|---|---|\n"
            f"| {n_calls:,} | {timed.wall_s:.1f} | {ideal_s:.1f} | {timed.wall_s / ideal_s:.3f} "
            f"| {timed.cpu_s:.1f} | {timed.peak_mib:,.0f} |",
            flush=True,
        )
    with BuilderServer(Builder(told), behaviour) as server:
        killed = _Build(wish, clips, folder / "killed", server)
        killed_s, n_before, n_in_flight = killed.run_until(n_calls // 2)
        again = killed.run()
        n_sent, n_twice = server.counts.n_answered, server.n_repeated(before_s=killed_s - SURE_S)
        is_equal = killed.files() == whole.files()
        print(
            f"\nkilled after {n_before:,} replies with {n_in_flight} more under way, and started "
            f"again: {n_sent - n_before:,} further replies, {n_twice} of them to what was answered "
            f"before, {server.n_repeated() - n_twice} to what was on its way at the kill; files "
            f"{'equal' if is_equal else 'NOT EQUAL'} to the other build's",
            flush=True,
        )
    missed = [
        timed.wall_s > LONGEST * ideal_s,
        timed.returncode or again.returncode,
        n_twice,
        not is_equal,
    ]
    return sum(map(bool, missed))


class _Build:
    """One build's command line, run to its end or until it is killed."""

    def __init__(self, wish: Wish, clips: Path, folder: Path, server: BuilderServer) -> None:
        self._data = folder / "data"
        options = ["--frames", str(wish.n_frames), "--per-video", str(wish.n_questions)]
        self._line = command("capquiz", clips, self._data, *options)
        self._environment = environment(server.url, folder / "cache")
        self._server = server

    def run(self) -> Timed:
        """To its end."""
        start_s = time.monotonic()
        process = self._start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return Timed(
            process.returncode,
            time.monotonic() - start_s,
            usage.ru_utime + usage.ru_stime,
            usage.ru_maxrss / 1024,
        )

    def run_until(self, n_replies: int) -> tuple[float, int, int]:
        """Until so many replies were sent, then kill it.

        Returns:
            When it was killed, in seconds of the monotonic clock, the replies that were sent by
            then, and how many requests were under way.
        """
        process = self._start()
        while self._server.counts.n_answered < n_replies and process.poll() is None:
            time.sleep(0.01)
        counts = self._server.counts
        at_kill = time.monotonic(), counts.n_answered, counts.n_in_flight
        process.send_signal(signal.SIGKILL)
        process.wait()
        return at_kill

    def files(self) -> list[dict[str, object]]:
        """The questions that were built."""
        return read_jsonl(self._data / "capquiz/capquiz.jsonl")

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._line,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
