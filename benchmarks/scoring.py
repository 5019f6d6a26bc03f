"""Scores Parquet files of clips in one process, as ``lmms-eval-captions score`` does, and kills it.

Everything is asked of ``judge_server.py`` in a process of its own on this machine:

    python benchmarks/scoring.py                          # 200,000 rows x 5 questions, undisturbed
    python benchmarks/scoring.py --kill-every 30          # the same, killed and restarted
    python benchmarks/scoring.py --rows 20000 --shards 4

Prints calls a second, CPU per call, and the memory of the scoring process, a quarter of the run at
a time. Exit code 1 where a row is lost, doubled or out of order, where a score is not that of the
replies, or where more was asked again than was under way at the kills.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

import _support  # noqa: F401 - an import path
from judge_server import capquiz_reply
from judging import serving
from lmms_eval_captions.judges.protocols.capquiz import LETTERS, UNKNOWN
from lmms_eval_captions.judges.protocols.prompt import Prompts

N_QUESTIONS: Final = 5
_WORDS: Final = tuple(f"word{number}" for number in range(2_000))
_LOOK_S: Final = 0.5


@dataclass(slots=True)
class Run:
    """One scoring, with all its restarts."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    n_kills: int = 0
    memory_mib: list[tuple[float, float]] = field(default_factory=list)
    """Seconds since the begin, and resident memory then."""
    n_calls: int = 0
    """Requests that the server had."""
    problems: list[str] = field(default_factory=list)


def rows_of(shard: int, n_rows: int) -> Iterator[dict[str, Any]]:
    """Rows with captions of 60 words and five questions; the same ones every time."""
    draw = random.Random(shard)
    for number in range(n_rows):
        questions = []
        for place in range(N_QUESTIONS):
            options = draw.sample(_WORDS, 5)
            questions.append(
                {
                    "category": "Entity",
                    "question": f"What is {draw.choice(_WORDS)} beside, {number}.{place}?",
                    "options": options,
                    "answer": draw.choice(options),
                }
            )
        caption = " ".join(draw.choices(_WORDS, k=60))
        yield {"clip_id": f"clip-{shard}-{number}", "caption": caption, "questions": questions}


def write_shards(folder: Path, *, n_rows: int, n_shards: int) -> list[Path]:
    """The input files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"part-{shard:05d}.parquet" for shard in range(n_shards)]
    for shard, path in enumerate(paths):
        n = n_rows // n_shards + (shard < n_rows % n_shards)
        pq.write_table(pa.Table.from_pylist(list(rows_of(shard, n))), path)
    return paths


def score_all(
    inputs: Path,
    folder: Path,
    url: str,
    *,
    concurrency: int = 64,
    kill_every_s: float | None = None,
    more: Sequence[str] = (),
) -> Run:
    """Score all shards in child processes, each of which is killed when its time is up."""
    run = Run()
    before = calls_of(url)
    begun_s = time.monotonic()
    command = [
        sys.executable, "-c",
        "import sys; from lmms_eval_captions.cli.main import main; "
        "sys.exit(main())",
        "score", "--in", str(inputs), "--out", str(folder / "out"), "--protocol", "capquiz", *more,
    ]  # fmt: skip
    environment = {
        **os.environ,
        "LMMS_CAPTIONS_JUDGE": "benchmark",
        "LMMS_CAPTIONS_JUDGE_URL": f"{url}/v1",
        "LMMS_CAPTIONS_JUDGE_CONCURRENCY": str(concurrency),
        "LMMS_CAPTIONS_CACHE": str(folder / "cache"),
    }
    while True:
        with (folder / "log").open("ab") as log:
            child = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        is_killed = _watch(child, run, begun_s, url, kill_every_s)
        if not is_killed:
            break
    run.wall_s = time.monotonic() - begun_s
    run.n_calls = calls_of(url) - before
    if child.returncode != 0:
        run.problems.append(f"exit code {child.returncode}, see {folder / 'log'}")
    return run


def _watch(
    child: subprocess.Popen[bytes],
    run: Run,
    begun_s: float,
    url: str,
    kill_every_s: float | None,
) -> bool:
    """Wait for a child, looking at its memory; whether its time was up and it was killed.

    Its time begins with its first request, so that it gets on however slow the machine is.
    """
    cpu_s, first_s, n_before = 0.0, math.inf, calls_of(url)
    while child.poll() is None:
        memory_mib, cpu_s = _looked(child.pid, cpu_s)
        if memory_mib:
            run.memory_mib.append((time.monotonic() - begun_s, memory_mib))
        if kill_every_s is not None and first_s == math.inf and calls_of(url) > n_before:
            first_s = time.monotonic()
        if kill_every_s is not None and time.monotonic() - first_s >= kill_every_s:
            child.send_signal(signal.SIGKILL)
            child.wait()
            run.n_kills += 1
            run.cpu_s += cpu_s
            return True
        time.sleep(_LOOK_S)
    run.cpu_s += cpu_s
    return False


def _looked(pid: int, cpu_s: float) -> tuple[float, float]:
    """Resident memory in MiB and CPU seconds of a process; the CPU's of before if it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        ticks = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    except (OSError, IndexError):
        return 0.0, cpu_s
    memory_mib = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return memory_mib, sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def calls_of(url: str) -> int:
    """Requests that the server had so far."""
    with urllib.request.urlopen(f"{url}/stats") as answer:  # noqa: S310 - our own server # nosec B310
        stats: Mapping[str, float] = json.load(answer)
    return int(stats["n_requests"])


def check(paths: Sequence[Path], scores: Path, *, every: int = 97) -> list[str]:
    """Return problems of the scores: lost, doubled or moved rows, and wrong scores.

    Args:
        paths: The input files.
        scores: Folder of the files of scores.
        every: Each so many rows' score is computed again from what the server says.
    """
    problems = []
    for path in paths:
        wanted = pq.read_table(path)
        try:
            found = pq.read_table(scores / path.name)
        except OSError as error:
            problems.append(f"{path.name}: {error}")
            continue
        if found.column("clip_id").to_pylist() != wanted.column("clip_id").to_pylist():
            problems.append(f"{path.name}: its rows are not those of the input")
            continue
        for place in range(0, wanted.num_rows, every):
            row = wanted.slice(place, 1).to_pylist()[0]
            score = found.column("capf1")[place].as_py()
            if score != expected_score(row):
                problems.append(f"{row['clip_id']}: {score}, expected {expected_score(row)}")
    return problems


def expected_score(row: Mapping[str, Any]) -> float:
    """A row's score from what the scripted server says to its prompts, without an engine."""
    n_right = n_wrong = 0
    for question in row["questions"]:
        options = [*question["options"], UNKNOWN]
        listed = "\n".join(f"{at}. {text}" for at, text in zip(LETTERS, options, strict=True))
        messages = (
            Prompts()
            .load("capquiz_answer")
            .render(
                caption=row["caption"],
                question=question["question"],
                options=listed,
                option_id_str="A, B, C, D, E, or F",
            )
        )
        chosen = options[LETTERS.index(capquiz_reply(str(messages[-1]["content"])))]
        n_right += chosen == question["answer"]
        n_wrong += chosen not in (question["answer"], UNKNOWN)
    return 200.0 * n_right / (n_right + n_wrong + len(row["questions"]))


def tell(run: Run, *, n_rows: int, concurrency: int) -> None:
    """Print what was measured."""
    n_needed = n_rows * N_QUESTIONS
    print(f"{n_rows:,} rows x {N_QUESTIONS} questions, {run.n_kills} kills")
    print(f"  {run.wall_s:.0f} s, {n_needed / run.wall_s:,.0f} calls/s of those that were needed")
    print(f"  {1e3 * run.cpu_s / n_needed:.2f} ms of CPU per call")
    quarters = [
        max((mib for at_s, mib in run.memory_mib if 4 * at_s // run.wall_s == part), default=0.0)
        for part in range(4)
    ]
    print(f"  memory by quarter of the run: {', '.join(f'{mib:.0f} MiB' for mib in quarters)}")
    again = run.n_calls - n_needed
    print(f"  {again:,} requests were asked again, {concurrency * run.n_kills:,} may be")


def main() -> int:
    """Measure, and check every row."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--shards", type=int, default=20)
    parser.add_argument("--latency", type=float, default=0.02, help="seconds until a reply")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--kill-every", type=float, metavar="SECONDS")
    parser.add_argument("--port", type=int, default=8460)
    arguments = parser.parse_args()
    url = f"http://127.0.0.1:{arguments.port}"
    with tempfile.TemporaryDirectory() as name, serving(arguments.port, arguments.latency):
        folder = Path(name)
        paths = write_shards(folder / "in", n_rows=arguments.rows, n_shards=arguments.shards)
        run = score_all(
            folder / "in",
            folder,
            url,
            concurrency=arguments.concurrency,
            kill_every_s=arguments.kill_every,
        )
        tell(run, n_rows=arguments.rows, concurrency=arguments.concurrency)
        problems = run.problems + check(paths, folder / "out" / "scores")
        again = run.n_calls - arguments.rows * N_QUESTIONS
        if again > arguments.concurrency * run.n_kills:
            problems.append(f"{again:,} requests were asked again")
        if problems:
            print((folder / "log").read_text()[-3_000:])
    for problem in problems[:10]:
        print(problem)
    print("every row is there, once and right" if not problems else f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
