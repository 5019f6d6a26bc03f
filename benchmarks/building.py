"""Measures ``build``: what its filters find of planted faults, and how long it takes.

    python benchmarks/building.py filters                # every kind
    python benchmarks/building.py speed --rate 200       # 200 clips, 40 questions of each

``filters`` builds each kind on the clips of the built-in sample with the scripted models of
``builder_server.py``: 20% of the questions can be answered without the clip, 10% are wrong, 15%
unstable, 10% duplicates, 5% malformed, 10% contradicted and 10% seen by one road alone, each
where the kind has such; models that know better slip in 3% of their replies. Precision and recall
of each filter are counted among the questions that came to it; the goal is 95% of each. Solvers
who only guess are both right in two of three trials at one question in a hundred: so 4% of what
the paper's rule drops as answered blind is not, whoever applies it. What solvers know of the
questions that stay is measured in trials of its own, as those that chose the questions would
flatter them; it must be within 5 points of 20%. Exits with 1 where a goal is missed.

``speed`` builds capquiz against a server that works on so many requests at once: at most ``--rate``
of them a second. The ideal is calls / rate; the goal is 1.2 times that. Then the same build is
killed (SIGKILL) halfway and started again: nothing may be asked twice whose reply was sent a second
before the kill. Seconds, CPU time and memory are those of the build's own process, from its start
to its end, reading the clips included; the server has its share of the same cores. Exits with 1
where a goal is missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

import _support  # noqa: F401 - an import path
from builder_replies import Told
from builder_server import Builder, BuilderServer
from building_runs import in_this_process
from building_speed import Wish, measure_speed
from lmms_eval_captions.construction.build import Built
from lmms_eval_captions.construction.filters import blind_accuracy, blind_check
from lmms_eval_captions.construction.models import ModelPool
from lmms_eval_captions.construction.pipeline import kept
from lmms_eval_captions.judges.settings import read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from planted_builds import KINDS, Recovered, recovered

CHANCE: Final = 0.2
FROM_CHANCE: Final = 0.05
"""Largest distance of the solvers from chance at the kept questions."""


def main() -> int:
    """Measure and print; 1 where a goal is missed."""
    options = _options()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.what == "speed":
            width, height = map(int, options.size.split("x"))
            return (
                1
                if measure_speed(
                    Wish(
                        n_clips=options.clips,
                        n_questions=options.questions or 40,
                        rate=options.rate,
                        size=(width, height),
                        n_frames=options.frames,
                    ),
                    folder,
                )
                else 0
            )
        clips = sample_root(folder / "sample") / "capquiz/videos"
        missed = 0
        for kind in options.kinds:
            told = Told(seed=options.seed, n_questions=options.questions or 400)
            missed += print_filters(kind, told, clips, folder / kind)
    return 1 if missed else 0


def print_filters(kind: str, told: Told, clips: Path, folder: Path) -> int:
    """Build, print what its filters found, and return how many goals were missed."""
    print(f"\n{kind}, seed {told.seed}:\n")
    print("| fault | planted | dropped for it | precision | recall |\n|---|---|---|---|---|")
    with BuilderServer(Builder(told)) as server:
        built, filters = measure_filters(kind, told, clips, folder, server.url)
        for each in filters:
            print(each.text() + ("" if each.reaches() else " MISSED"), flush=True)
        missed = sum(not each.reaches() for each in filters)
        if "blind" in built.context.rows:
            before = blind_accuracy(built.context.rows["blind"])
            after = blind_accuracy_of_kept(built, folder)
            is_met = abs(after - CHANCE) <= FROM_CHANCE
            missed += not is_met
            print(
                f"\nanswered without the clip: {before:.1%} before, {after:.1%} of what is left in "
                f"trials of its own (chance: 20 %){'' if is_met else ' MISSED'}"
            )
    return missed


def measure_filters(
    kind: str, told: Told, clips: Path, folder: Path, url: str
) -> tuple[Built, list[Recovered]]:
    """A build, and what its filters found.

    Args:
        kind: The benchmark.
        told: What the server behind the address plants.
        clips: Folder of clips.
        folder: Where it is built.
        url: The server's.
    """
    per_video = told.n_questions
    built = in_this_process(
        kind, clips, folder / "data", url, cache=folder / "cache", per_video=per_video
    )
    return built, recovered(kind, built.options.folder, told)


def blind_accuracy_of_kept(built: Built, folder: Path) -> float:
    """Return the solvers' accuracy at the kept questions, in trials that did not choose them."""
    options = replace(built.options, seed=built.options.seed + 1)
    settings = read_judge_settings({"LMMS_CAPTIONS_CACHE": str(folder / "cache")})
    context = replace(built.context, options=options, pool=ModelPool(settings, None))
    try:
        rows = kept(built.context.rows[list(built.context.rows)[-1]])
        return blind_accuracy(blind_check(context, rows))
    finally:
        context.pool.close()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure what builds find, and how fast they are.")
    parser.add_argument("what", choices=("filters", "speed"))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="of filters")
    parser.add_argument("--seed", type=int, default=0, help="of what is planted")
    parser.add_argument("--questions", type=int, help="of a clip (40), of a reply in filters (400)")
    parser.add_argument("--clips", type=int, default=200, help="of speed, at most 256")
    parser.add_argument("--frames", type=int, default=16, help="of each clip, in speed")
    parser.add_argument("--size", default="160x120", help="of the frames, in speed")
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second, in speed")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
