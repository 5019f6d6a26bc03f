"""Share of equally good captioners that ``compare`` calls different.

    python benchmarks/family_error.py --simulations 2000

draws comparisons of three captioners on VDC's five tasks whose verdicts have the same chances: the
questions of a video go together, and a captioner has good and bad videos of its own. Counts how
often any difference of a metric is called significant: of any task or group and any two captioners,
in the whole report and in that of each task alone. Exits with 1 if a share is above 5.5%.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import _support  # noqa: F401 - an import path

if TYPE_CHECKING:
    import numpy as np

    from lmms_eval_captions.analysis.captioners import Captioner

TASKS: Final = ("vdc_camera", "vdc_short", "vdc_background", "vdc_main_object", "vdc_detailed")
N_CAPTIONERS: Final = 3
N_QUESTIONS: Final = 6
MOST: Final = 0.055
_SIGNIFICANT: Final = 0.05


def main() -> int:
    """Run the campaign; 1 if a share is too high."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--videos", type=int, default=100)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _plant(root, options.videos)
        with ProcessPoolExecutor(options.processes) as pool:
            chunk = partial(_any_significant, root)
            starts = range(0, options.simulations, 20)
            seeds = [range(at, min(at + 20, options.simulations)) for at in starts]
            found = [one for many in pool.map(chunk, seeds) for one in many]
    shares = {
        metric: sum(metric in one for one in found) / len(found)
        for metric in ("vdc_acc", "vdc_score")
    }
    for metric, share in shares.items():
        print(
            f"{metric}: {100 * share:.2f}% of {len(found):,} comparisons (limit {100 * MOST:.1f}%)"
        )
    return int(any(share > MOST for share in shares.values()))


def _plant(root: Path, n_videos: int) -> None:
    """Write three runs, whose verdicts are drawn anew for each comparison."""
    from loguru import logger

    from planted_runs import PlantedCaption, Question, record_of, write_run

    logger.remove()
    for captioner in range(N_CAPTIONERS):
        tasks = {}
        for task in TASKS:
            aspect = task.removeprefix("vdc_")
            asked = [
                Question(f"{aspect} {q}?", {"aspects": aspect, "categories": f"kind {q % 3}"})
                for q in range(N_QUESTIONS)
            ]
            verdicts = [["yes", "no"] * (N_QUESTIONS // 2)]
            captions = (PlantedCaption(f"v{v:04}", asked, verdicts) for v in range(n_videos))
            tasks[task] = [record_of(task, caption) for caption in captions]
        write_run(root / f"captioner-{captioner}", tasks, groups={"vdc_score": TASKS})


def _any_significant(root: Path, seeds: Sequence[int]) -> list[set[str]]:
    """Return the metrics with a significant difference, of each comparison."""
    import numpy as np

    from lmms_eval_captions.analysis.captioners import captioners_of
    from lmms_eval_captions.analysis.compare.comparison import Comparer

    planted = captioners_of([root / f"captioner-{place}" for place in range(N_CAPTIONERS)])
    found = []
    for seed in seeds:
        captioners = _drawn(planted, np.random.default_rng(seed))
        comparer = Comparer(captioners)
        whole = comparer.compare("vdc_score")
        rows = [*whole.rows]
        for task in TASKS:
            rows += comparer.compare(task).overall
            # Alone, as with --tasks.
            if seed == seeds[0] and Comparer(captioners).compare(task) != comparer.compare(task):
                raise AssertionError("a comparison depends on the tasks that are shown")
        found.append({
            row.cell.metric
            for row in rows
            for contrast in row.contrasts.values()
            if contrast.p_value is not None and contrast.p_value < _SIGNIFICANT
        })  # fmt: skip
    return found


def _drawn(planted: Sequence[Captioner], rng: np.random.Generator) -> list[Captioner]:
    """Return the captioners with verdicts of the same chances."""
    import numpy as np
    import pandas as pd

    from lmms_eval_captions.analysis.captioners import Captioner

    tables = [[captioner.verdicts(task).tables[0] for task in TASKS] for captioner in planted]
    n_videos = tables[0][0].rows["video"].nunique()
    hard = rng.normal(0, 0.8, n_videos)
    captioners = []
    for captioner, own in zip(planted, tables, strict=True):
        path = captioner.newest.path
        known = {}
        for table in own:
            lean = hard + rng.normal(0, 0.6, n_videos)
            chance = 1 / (1 + np.exp(-lean - 0.3))
            is_right = rng.random((n_videos, N_QUESTIONS)) < chance[:, None]
            rows = table.rows.copy()
            column = table.head["values"]
            rows[column["vdc_acc"]] = pd.Series(
                np.where(is_right, "yes", "no").ravel(), dtype=object
            )
            grades = np.where(
                is_right, rng.integers(3, 6, is_right.shape), rng.integers(0, 3, is_right.shape)
            )
            rows[column["vdc_score"]] = pd.Series(
                grades.ravel().astype(float).tolist(), dtype=object
            )
            known[path, table.task] = table.only(rows)
        captioners.append(Captioner(captioner.name, captioner.runs, known))
    return captioners


if __name__ == "__main__":
    sys.exit(main())
