"""Verdicts of finished runs as one tidy table, for analyses of the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_captions.analysis.captioners import captioners_of

if TYPE_CHECKING:
    import pandas as pd


def read_verdicts(folders: str | Path | Sequence[str | Path]) -> pd.DataFrame:
    """Read the verdicts of finished runs into one table.

    Args:
        folders: Results folders (lmms-eval's ``--output_path``) or results files. Each model below
            a folder is a captioner; of several runs of a task the newest counts.

    Returns:
        A row per captioner, task, caption, question and judge run, with the columns

        - ``captioner``, ``judge``, ``benchmark``, ``task``, ``video``, ``caption`` (number of the
          caption in its task), ``question_index``, ``question``, ``run``;
        - ``verdict`` for benchmarks whose judge gives labels, ``score`` or the name of a metric for
          numbers; missing if the question is unscored, then ``reason`` says why;
        - the question's group in each section of the benchmark's breakdown, such as ``aspects`` and
          ``categories`` (VDC) or ``dimensions`` (VidCapBench);
        - ``input_tokens``, ``output_tokens``, ``n_words``, ``caption_digest``, ``no_caption``.

        A caption about which nothing was asked has one row without a question.

    Raises:
        DataError: If a folder has no verdicts, or a file cannot be read; the message names it.

    Example:
        Share of right answers in each category of VDC, by captioner::

            table = read_verdicts(["results/alpha", "results/beta"])
            right = table["verdict"].eq("yes").where(table["verdict"].notna())
            right.groupby([table["captioner"], table["categories"]]).mean()
    """
    import pandas as pd

    paths = [folders] if isinstance(folders, str | Path) else folders
    tables = [
        table.rows.assign(
            captioner=captioner.name,
            judge=table.head["judge"],
            benchmark=table.benchmark.name,
            task=table.task,
        )
        for captioner in captioners_of([Path(path) for path in paths])
        for task in captioner.tasks
        for table in captioner.verdicts(task).tables
    ]
    first = ["captioner", "judge", "benchmark", "task", "video", "caption"]
    first += ["question_index", "question", "run"]
    found = pd.concat(tables, ignore_index=True).drop(columns=["copy", "occurrence"])
    return found[[*first, *(name for name in found.columns if name not in first)]]
