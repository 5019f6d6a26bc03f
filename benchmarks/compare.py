"""Time and memory of ``lmms-eval-captions compare`` over two runs of the full VDC.

Plants two results folders of 1,027 videos x 5 aspects with 96,825 verdicts each, compares them by
the command line in a process of its own, and prints seconds and peak memory: of all, and beyond
what the command takes to start.

    python benchmarks/compare.py --rounds 3
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final

from loguru import logger

import _support  # noqa: F401 - an import path

ASPECTS: Final = ("camera", "short", "background", "main_object", "detailed")
N_VIDEOS: Final = 1_027
N_QUESTIONS: Final = 96_825
N_CATEGORIES: Final = 1_500
"""The real file has categories in free words, most of them used once or twice."""
COMMAND: Final = (sys.executable, "-m", "lmms_eval_captions.cli.main")


def plant(folder: Path, *, right: float, seed: int) -> None:
    """Write what a run over the full VDC leaves.

    Args:
        folder: As lmms-eval's ``--output_path``.
        right: Share of questions that captions answer, in [0, 1].
        seed: Of what the judge says; the questions are the same for every seed.
    """
    import numpy as np

    from planted_runs import PlantedCaption, Question, record_of, write_run

    logger.remove()
    of_questions, of_verdicts = np.random.default_rng(0), np.random.default_rng(seed)
    n_captions = N_VIDEOS * len(ASPECTS)
    n_more = N_QUESTIONS - n_captions * (N_QUESTIONS // n_captions)
    tasks = {}
    for place, aspect in enumerate(ASPECTS):
        records = []
        for video in range(N_VIDEOS):
            n = N_QUESTIONS // n_captions + (place * N_VIDEOS + video < n_more)
            categories = (N_CATEGORIES * of_questions.random(n) ** 4).astype(int)
            questions = [
                Question(
                    f"What is said of thing {q} of {aspect} in the video with the number {video}?",
                    {"aspects": aspect, "categories": f"category {category}"},
                )
                for q, category in enumerate(categories)
            ]
            hard = of_verdicts.normal(0, 0.15)
            verdicts = ["yes" if r < right + hard else "no" for r in of_verdicts.random(n)]
            caption = PlantedCaption(f"video_{video:04}.mp4", questions, [verdicts])
            records.append(record_of(f"vdc_{aspect}", caption))
        tasks[f"vdc_{aspect}"] = records
    write_run(folder, tasks, groups={"vdc_score": list(tasks)})


def measured(arguments: list[str]) -> tuple[float, float, float]:
    """Seconds that a command takes, those of a processor, and its peak memory in MiB."""
    started_s = time.perf_counter()
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, arguments)
    took_s = time.perf_counter() - started_s
    return took_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure `compare` over two runs of full VDC.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plant", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.plant:
        plant(arguments.plant, right=0.40 + 0.01 * arguments.seed, seed=arguments.seed)
        return
    with tempfile.TemporaryDirectory() as name:
        folders = [str(Path(name, folder)) for folder in ("first", "second")]
        for seed, folder in enumerate(folders):
            # Elsewhere: the peak memory of a process is at least that of the one that starts it.
            own = (sys.executable, __file__, "--plant", folder, "--seed", str(seed))
            subprocess.run(own, check=True)
        starts = [measured([*COMMAND, "compare", "--help"]) for _ in range(arguments.rounds)]
        compares = [measured([*COMMAND, "compare", *folders]) for _ in range(arguments.rounds)]
    start_s, start_cpu_s, start_mib = (median(values) for values in zip(*starts, strict=True))
    took_s, took_cpu_s, took_mib = (median(values) for values in zip(*compares, strict=True))
    print(
        f"start-up (--help): {start_s:.2f} s ({start_cpu_s:.2f} s of a processor), "
        f"{start_mib:.0f} MiB\n2 x {N_QUESTIONS:,} verdicts after it: {took_s - start_s:.2f} s "
        f"({took_cpu_s - start_cpu_s:.2f} s of a processor), {took_mib - start_mib:.0f} MiB "
        f"(medians of {arguments.rounds})"
    )


if __name__ == "__main__":
    main()
