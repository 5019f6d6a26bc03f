"""Delay of lmms-eval's start by this package.

Starts lmms-eval's own start-up (import, model registry, task index) in fresh processes, with this
package's entry point and with it hidden, by turns, and prints the medians and their difference.

    python benchmarks/startup.py --rounds 5
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from statistics import median

_START = """
import sys, time
started_s = time.perf_counter()
if sys.argv[1] == "hidden":
    import importlib.metadata as metadata
    original = metadata.entry_points
    class Others:
        def select(self, group):
            return [e for e in original(group=group) if e.name != "lmms_eval_captions"]
    metadata.entry_points = lambda **chosen: original(**chosen) if chosen else Others()
import lmms_eval.evaluator
from lmms_eval.tasks import TaskManager
known = "vdc_score" in TaskManager().all_tasks
assert known == (sys.argv[1] == "with"), "the entry point is not what makes the tasks known"
print(time.perf_counter() - started_s)
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure the cost of the plug-in at start-up.")
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    seconds: dict[str, list[float]] = {"with": [], "hidden": []}
    for _ in range(rounds):
        for way, measured in seconds.items():
            line = [sys.executable, "-W", "ignore", "-c", _START, way]
            done = subprocess.run(line, capture_output=True, text=True, check=True)
            measured.append(float(done.stdout.split()[-1]))
    with_s, hidden_s = median(seconds["with"]), median(seconds["hidden"])
    print(
        f"start-up of lmms-eval: {hidden_s:.2f} s without the plug-in, {with_s:.2f} s with it: "
        f"{with_s - hidden_s:+.2f} s (medians of {rounds}, by turns; single runs "
        f"{min(seconds['hidden']):.2f}-{max(seconds['hidden']):.2f} and "
        f"{min(seconds['with']):.2f}-{max(seconds['with']):.2f})"
    )


if __name__ == "__main__":
    main()
