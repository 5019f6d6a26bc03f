"""Reads thousands of generated clips as captioners do and compares every frame with ffmpeg's.

Valid clips of numbered frames over codecs, containers, group structures, time stamps, turns, covers
and colours (``clip_recipes.py``), damaged ones (``clip_damage.py``), and the hostile ones of the
tests. Each is read by ``read_frames`` with random samplings, in a process of its own beside which
this program stays alive, and by ffmpeg, which decodes all of it.

A violation, for which the program ends with 1, is: of a valid clip another picture than ffmpeg's
at a chosen position, another number of frames, or a time that is off by more than half a frame
(against ffmpeg, where its stamps rise, or against the rate it was written with), or a length that
does not fit its times; of any clip
a reading process that died or did not end, an error that is not in words or is a slip of ours
(an ``AttributeError``, say), more memory than the limit; of a damaged clip, a frame that is none of
those that can be decoded.

    python benchmarks/clips.py                # 2,000 clips, some fifteen minutes on two cores
    python benchmarks/clips.py --clips 200
    python benchmarks/clips.py --only 17 --keep /tmp/clips    # one clip again, kept
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import resource
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Final, Protocol

import cv2
import numpy as np
from loguru import logger
from numpy.typing import NDArray

import _support  # noqa: F401 - an import path
import clip_truth
from clip_damage import damage
from clip_recipes import Recipe, RecipeError, draw, write
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.video.clip import Clip
from lmms_eval_captions.model_wrappers.video.decoding import decode_all
from lmms_eval_captions.model_wrappers.video.frames import read_frames
from lmms_eval_captions.model_wrappers.video.sampling import (
    Explicit,
    Fps,
    Sampling,
    Uniform,
)

ALL: Final = Uniform(1_000_000)
_TOLERANCE: Final = 2.0
"""Mean difference of equal pictures at most, of 255: codecs' rounding; the next frame has 20."""
_NO_CLOCK: Final = frozenset({"es264", "es265", "m1v", "m2v", "m4v", "obu", "nostamps", "xvid"})
"""Clips without time stamps, or with wrong ones (packed pictures): programs make up their own."""
_N_TRIES: Final = 8
_SLIP: Final = re.compile(
    r"\b(Attribute|Type|Key|Index|Name|UnboundLocal|ZeroDivision|Assertion|Overflow|Unicode\w*)Error\b"
)
"""Errors of Python that are a slip of ours, also where a reader puts them in words."""


@dataclass
class Report:
    """Result of one clip."""

    number: int
    name: str
    kind: str
    """``valid``, or the kind of damage."""
    problems: list[str] = field(default_factory=list)
    n_frames: int = 0
    is_read: bool = False
    is_shown: bool = False
    """True if ffmpeg shows a frame."""


def samplings(random: Random, n_total: int) -> list[Sampling]:
    """All frames, and some of them."""
    places = tuple(random.randrange(n_total) for _ in range(random.randint(1, 3)))
    some: list[Sampling] = [
        Uniform(random.choice([1, 2, 4, 8, 16])),
        Uniform(3),
        Explicit(places),
        Fps(random.choice([0.5, 1.0, 3.0]), 16),
    ]
    return [ALL, *random.sample(some, 2)]


def _read_for_ever(connection: Connection) -> None:
    """The reading process: answers with a clip, an error in words, or an unexpected one."""
    logger.remove()
    while True:
        path, sampling, n_threads = connection.recv()
        try:
            if n_threads is None:
                clip = decode_all(Path(path), sampling, max_pixels=None)
            else:
                clip = read_frames(Path(path), sampling, max_pixels=None, n_threads=n_threads)
            answer: tuple[object, ...] = (
                clip.frames,
                clip.timestamps_s,
                clip.n_total,
                clip.duration_s,
            )
        except DataError as error:
            answer = (str(error),)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is to be reported
            answer = (repr(error), "unexpected")
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        connection.send((answer, max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)))


class Reads(Protocol):
    """Reader of clips: a separate process, or a test."""

    def read(self, path: Path, sampling: Sampling, n_threads: int, /) -> Clip | str:
        """A clip, or why there is none."""


class Reader:
    """A reading process, started anew where it died or hung."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.peak_kib = 0
        self._context = multiprocessing.get_context("spawn")
        self._start()

    def read(self, path: Path, sampling: Sampling, n_threads: int | None) -> Clip | str:
        """A clip, or why there is none; what begins with ``!`` is a violation.

        Without a number of threads all of the clip is decoded, in the reading process itself.
        """
        self._connection.send((str(path), sampling, n_threads))
        if not self._connection.poll(self.limit_s):
            self.end()
            self._start()
            return f"! did not end within {self.limit_s:.0f} s"
        try:
            answer, peak_kib = self._connection.recv()
        except EOFError:
            self._process.join()
            code = self._process.exitcode
            self._start()
            return f"! the process died ({code})"
        self.peak_kib = max(self.peak_kib, peak_kib)
        if len(answer) == 4:
            frames, times_s, n_total, duration_s = answer
            return Clip(frames, times_s, duration_s, 0.0, n_total)
        return f"! {answer[0]}" if len(answer) == 2 else str(answer[0])

    def end(self) -> None:
        """Stop the process."""
        self._process.kill()
        self._process.join()

    def _start(self) -> None:
        self._connection, theirs = self._context.Pipe()
        self._process = self._context.Process(target=_read_for_ever, args=(theirs,))
        self._process.start()
        theirs.close()


def check_valid(
    recipe: Recipe,
    path: Path,
    reader: Reads,
    random: Random,
    report: Report,
    written_s: list[float] | None,
) -> None:
    """Compare a valid clip frame by frame, and its times with ffmpeg's or those it was given."""
    truth = clip_truth.read(path)
    if truth is None:
        report.kind = "not shown by ffmpeg"
        return
    report.n_frames, report.is_shown = len(truth.frames), True
    all_times_s = truth.times_s
    for sampling in samplings(random, len(truth.frames)):
        clip = reader.read(path, sampling, random.choice([0, 1]))
        if isinstance(clip, str):
            report.problems.append(clip)
            continue
        report.is_read = True
        if clip.n_total != len(truth.frames):
            report.problems.append(f"{clip.n_total} frames, ffmpeg shows {len(truth.frames)}")
            continue
        # By the times of all frames, which come first: ffmpeg's stamps may lack values or fall.
        all_times_s = clip.timestamps_s if sampling is ALL else all_times_s
        chosen = sampling.indices(all_times_s)
        report.problems += _differences(truth, clip, chosen, may_resize=recipe.shape == "resize")
        if not {recipe.container, recipe.codec, recipe.shape} & _NO_CLOCK:
            report.problems += _time_differences(truth, clip, chosen, written_s)


def check_damaged(path: Path, reader: Reader, random: Random, report: Report) -> None:
    """A damaged clip is read or refused in words; its frames are those that can be decoded."""
    drawn: list[Sampling] = [ALL, Uniform(8), Fps(2.0, 8)]
    clip = reader.read(path, random.choice(drawn), random.choice([0, 1]))
    truth = clip_truth.read(path)
    report.is_shown = truth is not None
    if isinstance(clip, str):
        if clip.startswith("!") or _SLIP.search(clip):
            report.problems.append(clip)
        return
    report.is_read = True
    report.n_frames = len(clip.frames)
    shown = [truth.frames] if truth else []
    # Twice: some decoders put something else in the place of damaged parts each time.
    every = [reader.read(path, ALL, None) for _ in range(2)]
    decoded = [clip.frames for clip in every if not isinstance(clip, str)]
    if len(decoded) == 2 and not np.array_equal(decoded[0], decoded[1]):
        return
    shown += decoded
    for frame in clip.frames:
        nearest = min((_nearest_picture(frame, frames) for frames in shown), default=0.0)
        if nearest > _TOLERANCE:
            report.problems.append(f"a frame that is not decoded (nearest {nearest:.0f} apart)")
            return


def _nearest_picture(frame: NDArray[np.uint8], frames: NDArray[np.uint8]) -> float:
    """Return the distance of the most similar frame of the same size; 0 without one."""
    if frame.shape != frames.shape[1:]:
        return 0.0
    apart = np.abs(frames.astype(np.int16) - frame.astype(np.int16))
    return float(apart.mean(axis=(1, 2, 3)).min())


def _differences(
    truth: clip_truth.Truth,
    clip: Clip,
    chosen: list[int],
    *,
    may_resize: bool,
) -> list[str]:
    height, width = truth.frames.shape[1:3]
    frames = clip.frames
    if may_resize:  # All frames have the size of the first one chosen, or of ffmpeg's first.
        frames = np.stack([np.asarray(cv2.resize(frame, (width, height))) for frame in frames])
    if frames.shape != (len(chosen), height, width, 3):
        return [f"shape {frames.shape}, ffmpeg {(len(chosen), height, width, 3)}"]
    own = frames.astype(np.int16)
    apart = np.abs(own - truth.frames[chosen].astype(np.int16)).mean(axis=(1, 2, 3))
    problems = []
    if wrong := [index for index, away in zip(chosen, apart, strict=True) if away > _TOLERANCE]:
        problems.append(f"wrong frames at {wrong[:5]} ({apart.max():.0f} apart)")
    if np.any(np.diff(clip.timestamps_s) < 0):
        problems.append("times that fall")
    return problems


def _time_differences(
    truth: clip_truth.Truth, clip: Clip, chosen: list[int], written_s: list[float] | None
) -> list[str]:
    """Half a frame off at most, of ffmpeg's times or of those that the clip was written with.

    Its length likewise: it ends half of its shortest to two of its longest frames after its last.
    """
    # Stamps that lack a value, that fall, or that are all the same are no clock.
    is_clock = np.all(np.diff(truth.times_s) >= 0) and (clip.n_total < 2 or truth.times_s[-1] > 0)
    clocks = [truth.times_s] if is_clock else []
    clocks += [np.asarray(written_s)] if written_s and len(written_s) == clip.n_total else []
    off: list[float] = []
    lengths: list[float] = []
    for times_s in clocks:
        if len(times_s) > 1 and np.all(np.diff(truth.times_s) > 0):
            # The last frame's end, of which a file may say that it comes later.
            early_s = times_s[-1] + np.diff(times_s).min() / 2 - clip.duration_s
            late_s = clip.duration_s - times_s[-1] - 2 * np.diff(times_s).max()
            lengths.append(float(max(early_s, late_s)))
        half_s = np.ptp(times_s) / max(1, clip.n_total - 1) / 2
        if np.any(np.diff(times_s) <= 0):  # Stamps that do not rise are made up: a frame's length.
            half_s *= 2
        off.append(float(np.abs(clip.timestamps_s - times_s[chosen]).max() - half_s))
    problems = []
    if min(off, default=0.0) > 2e-3:
        problems.append(f"times more than half a frame off, by {min(off):.3f} s")
    if min(lengths, default=0.0) > 2e-3:
        problems.append(f"a length of {clip.duration_s:.3f} s, off by {min(lengths):.3f} s")
    return problems


class Campaign:
    """All clips of a run."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self.arguments, self.folder = arguments, folder
        self._local = threading.local()
        self._readers: list[Reader] = []

    def check(self, number: int) -> Report:
        """Make, read and compare one clip."""
        random = Random(f"{self.arguments.seed}-{number}")
        is_valid = random.random() < self.arguments.valid
        for _ in range(_N_TRIES):
            recipe = draw(random)
            path = self.folder / f"{number:05}_{recipe.codec}_{recipe.shape}.{recipe.container}"
            try:
                written_s = write(recipe, random, path)
            except RecipeError:
                path.unlink(missing_ok=True)
                continue
            break
        else:
            return Report(number, "nothing that ffmpeg writes", "valid")
        report = Report(number, str(recipe), "valid")
        if is_valid:
            check_valid(recipe, path, self._reader(), random, report, written_s)
        else:
            raw = path.read_bytes()
            with suppress(RecipeError):
                write(recipe, random, path)
            other = path.read_bytes() if path.is_file() else b""
            report.kind, data = damage(raw, other or raw, random)
            path.write_bytes(data)
            check_damaged(path, self._reader(), random, report)
        if not self.arguments.keep:
            path.unlink()
        return report

    def hostile(self) -> list[Report]:
        """The hostile clips of the tests."""
        import hostile_clips

        folder = self.folder / "hostile"
        folder.mkdir()
        reports = []
        for name, is_readable in hostile_clips.write_all(folder).items():
            report = Report(-1, name, "hostile")
            clip = self._reader().read(folder / name, Uniform(4), 1)
            report.is_read = not isinstance(clip, str)
            if isinstance(clip, str) and clip.startswith("!"):
                report.problems.append(clip)
            elif report.is_read != is_readable:
                report.problems.append("read" if report.is_read else str(clip))
            reports.append(report)
        return reports

    def end(self) -> int:
        """Stop all readers; the most memory that one held, in MiB."""
        for reader in self._readers:
            reader.end()
        return max((reader.peak_kib for reader in self._readers), default=0) // 1024

    def _reader(self) -> Reader:
        if not hasattr(self._local, "reader"):
            self._local.reader = Reader(self.arguments.limit)
            self._readers.append(self._local.reader)
        reader: Reader = self._local.reader
        return reader


def summarise(reports: list[Report]) -> None:
    """Tables: valid clips by codec and container, damaged ones by kind."""
    valid: Counter[str] = Counter()
    bad: Counter[str] = Counter()
    frames: Counter[str] = Counter()
    for report in reports:
        key = report.name.partition(",")[0] if report.kind == "valid" else f"({report.kind})"
        valid[key] += 1
        bad[key] += bool(report.problems)
        frames[key] += report.n_frames
    print(f"{'clips of':24} {'clips':>6} {'frames':>7} {'violations':>10}")
    for key in sorted(valid):
        print(f"{key:24} {valid[key]:6} {frames[key]:7} {bad[key]:10}")
    damaged = [report for report in reports if report.kind not in ("valid", "hostile")]
    both = Counter((report.is_read, report.is_shown) for report in damaged)
    print(
        f"damaged: {both[True, True]} read here and by ffmpeg, {both[True, False]} here alone, "
        f"{both[False, True]} by ffmpeg alone, {both[False, False]} by none"
    )


def campaign(arguments: argparse.Namespace, folder: Path) -> list[str]:
    """Run all of it; returns the violations."""
    run = Campaign(arguments, folder)
    started_s = time.monotonic()
    numbers = range(arguments.clips) if arguments.only is None else [arguments.only]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        reports = list(pool.map(run.check, numbers))
    if arguments.only is None and arguments.hostile:
        reports += run.hostile()
    peak_mib = run.end()
    summarise(reports)
    violations = [
        f"{report.number}: {report.name} ({report.kind}): {'; '.join(report.problems[:3])}"
        for report in reports
        if report.problems
    ]
    if peak_mib > arguments.memory:
        violations.append(f"a process held {peak_mib} MiB, allowed are {arguments.memory}")
    kinds = Counter(report.kind == "valid" for report in reports)
    print(
        f"{len(reports)} clips ({kinds[True]} valid, {kinds[False]} damaged or hostile), "
        f"{sum(report.n_frames for report in reports):,} frames compared, seed {arguments.seed}: "
        f"{len(violations)} violations, at most {peak_mib} MiB, "
        f"{time.monotonic() - started_s:.0f} s"
    )
    return violations


def main() -> int:
    """Run the campaign; 1 where something is violated."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--valid", type=float, default=0.6, help="share of valid clips")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one reading")
    parser.add_argument("--memory", type=int, default=2048, help="MiB that a process may hold")
    parser.add_argument("--only", type=int, help="number of one clip")
    parser.add_argument("--hostile", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--keep", type=Path, help="folder in which to keep the clips")
    arguments = parser.parse_args()
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        violations = campaign(arguments, arguments.keep)
    else:
        with tempfile.TemporaryDirectory() as name:
            violations = campaign(arguments, Path(name))
    for violation in violations:
        print(violation)
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main())
