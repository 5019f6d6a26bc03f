"""A run of lmms-eval whose output is stamped with the time as it comes, to a file and in memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import BinaryIO, Final

from runs import Run, command

_SHOWN_EVERY_S: Final = 10.0


@dataclass(frozen=True)
class StampedRun:
    """A finished run, and when it said what."""

    run: Run
    wall_s: float
    stamps: list[tuple[float, str]] = field(repr=False)
    """Seconds since the start, and what was written then, a redrawn bar among it."""

    @property
    def longest_silence_s(self) -> float:
        """Longest time without a sign, from the first one to the end."""
        times = [seconds for seconds, _ in self.stamps] + [self.wall_s]
        return max((b - a for a, b in pairwise(times)), default=self.wall_s)


def run_stamped(
    output: Path, *arguments: str, env: Mapping[str, str], timeout_s: float
) -> StampedRun:
    """Run lmms-eval to its end, or end it, and keep what it says with the time.

    Args:
        output: Folder of the results; the stamped output is written beside it, as it comes.
        arguments: lmms-eval's own.
        env: Environment of the run.
        timeout_s: Seconds until it is ended; it then has a return code below 0.
    """
    line = command([*arguments, "--output_path", str(output), "--log_samples"])
    stamps: list[tuple[float, str]] = []
    start = time.monotonic()
    process = subprocess.Popen(
        line,
        env={**env, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=output.parent,
        start_new_session=True,
        bufsize=0,
    )
    assert process.stdout is not None
    reader = Thread(
        target=_stamp, args=(process.stdout, start, stamps, output.with_suffix(".stamped.log"))
    )
    reader.start()
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    finally:
        reader.join()
        process.stdout.close()
    wall_s = time.monotonic() - start
    log = "".join(text for _, text in stamps)
    return StampedRun(Run(output, log, process.returncode), wall_s, stamps)


def _stamp(stream: BinaryIO, start: float, stamps: list[tuple[float, str]], path: Path) -> None:
    """Read a stream to its end, each piece with the time that it came at.

    All of it goes to the file; to standard output, which ``pytest -s`` shows, a bar now and then.
    """
    shown_s = -_SHOWN_EVERY_S
    with path.open("w", encoding="utf-8", buffering=1) as file:
        while piece := stream.read(65536):
            seconds = time.monotonic() - start
            text = piece.decode("utf-8", "replace")
            stamps.append((seconds, text))
            if not text.strip():
                continue
            line = f"[{seconds:8.1f} s] {text.strip()}\n"
            file.write(line)
            if not text.startswith("\r") or seconds >= shown_s + _SHOWN_EVERY_S:
                sys.stdout.write(line)
                sys.stdout.flush()
                shown_s = seconds
