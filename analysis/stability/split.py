"""A benchmark split into the questions that are judged the same every time, and the others."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from lmms_eval_captions.analysis.stability.stability import (
    KEY,
    PAPER_RUNS,
    WITHIN,
    Document,
    Repeated,
    notes_of,
)
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import write_atomically
from lmms_eval_captions.judges.settings import SAMPLE, DataSettings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Task
from lmms_eval_captions.lmms_eval_tasks.data.files import (
    SPLIT_DATA,
    SPLIT_MANIFEST,
    QuestionFile,
    find_file,
)
from lmms_eval_captions.lmms_eval_tasks.signature import DISTRIBUTION, package_version

Question = tuple[str, str, int]
"""A question of a file: its video, its text, and how often the text came before."""
Part = Literal["stable", "unstable"]
PARTS: Final[tuple[Part, ...]] = ("stable", "unstable")
FATES: Final[Mapping[str, Part]] = {
    # Every captioner's caption got the same verdict in all judge runs.
    "stable": "stable",
    # It did not, but --only names other groups.
    "other group": "stable",
    # A captioner's caption got different verdicts.
    "different": "unstable",
    # No verdicts differ, but one is missing.
    "not known": "unstable",
    # No captioner's caption was asked about.
    "never judged": "unstable",
}
"""Part of the split that a question goes to, by what became of it."""


def split_all(
    several: Sequence[Repeated], settings: DataSettings, folder: Path, *, only: Sequence[str] = ()
) -> list[Document]:
    """Write the official files of every benchmark again, in two parts below a folder.

    Returns the folders of each benchmark, values of ``LMMS_CAPTIONS_DATA``, and the number of
    questions of each file by their fate.

    A question is stable if every captioner's caption got the same verdict in all judge runs, in
    every task that asks it and was judged. All others are unstable, or with ``only`` those of some
    groups.

    Raises:
        DataError: If a benchmark has no file of questions, there is one judge run, a folder exists,
            or what was judged is not in the files.
    """
    by_benchmark: dict[str, list[Repeated]] = {}
    with_files = [of for of in several if of.benchmark.question_file is not None]
    for repeated in with_files or several:
        by_benchmark.setdefault(repeated.benchmark.name, []).append(repeated)
    for name, own in by_benchmark.items():
        if any(of.benchmark is not own[0].benchmark for of in own):
            raise DataError(
                f"--split: {', '.join(of.name for of in own)} are different verdicts on the "
                f"questions of {name}; name with --tasks which of them to split by"
            )
    columns = [column.dropna() for of in several for _, column in _groups(of).items()]
    known = dict.fromkeys(chain(*columns))
    for group in only:
        if group not in known:
            raise DataError(
                f"--only: expected any of {', '.join(list(known)[:40])}, got {group!r:.80}"
            )
    return [_split(own, settings, folder, only) for own in by_benchmark.values()]


def _groups(repeated: Repeated) -> pd.DataFrame:
    """Return the groups of each question, a column per section of the breakdown."""
    names = dict.fromkeys(name for table in repeated.tables for name in table.head["sections"])
    return repeated.questions[[name for name in names if name in repeated.questions]]


def _split(
    several: Sequence[Repeated], settings: DataSettings, folder: Path, only: Sequence[str]
) -> Document:
    benchmark = several[0].benchmark
    question_file, source = benchmark.question_file, benchmark.source
    if question_file is None:
        raise DataError(f"--split: {several[0].name} has no questions in a file to be split")
    if any(of.n_runs < 2 for of in several):
        raise DataError(
            f"--split: expected at least 2 judge runs of {benchmark.name}, got 1, in which every "
            f"question is stable; set LMMS_CAPTIONS_JUDGE_RUNS={PAPER_RUNS} and score again"
        )
    folders = _new_folders(folder.expanduser(), benchmark.name)
    judged = _judged_questions(several, only)
    tasks_of: dict[str, list[Task]] = {}
    for task in benchmark.tasks.values():
        if task.name in set(judged["task"]):
            tasks_of.setdefault(question_file.name(task.fields), []).append(task)
    files: dict[str, Counter[str]] = {}
    for name, tasks in tasks_of.items():
        fates = _fates(benchmark, settings, tasks, judged, only)
        files[name] = Counter(fates.values())
        if files[name]["never judged"] == len(fates):
            raise DataError(
                f"{name}: none of the questions that were judged; set LMMS_CAPTIONS_DATA to the "
                "data with which the captions were scored"
            )
        path = find_file(settings, source, name)
        for part, root in folders.items():
            wanted = {question for question, fate in fates.items() if FATES[fate] == part}
            if wanted:
                _write(root / source.benchmark / name, _selected(question_file, path, wanted))
    n_of = Counter(FATES[fate] for of in files.values() for fate in of.elements())
    done = {
        "benchmark": benchmark.name,
        "folders": {part: str(root) for part, root in folders.items()},
        "n_questions": {part: n_of[part] for part in folders},
        "files": {name: dict(of) for name, of in files.items()},
    }
    for part, root in folders.items():
        manifest = _manifest(done, part, several, settings.data, only)
        _write(root / SPLIT_MANIFEST, f"{json.dumps(manifest, indent=1, ensure_ascii=False)}\n")
    return done


def _judged_questions(several: Sequence[Repeated], only: Sequence[str]) -> pd.DataFrame:
    """Return a row per task and question: if any verdicts differ, and if all are the same."""
    found = []
    for repeated in several:
        same, groups = repeated.headline.reset_index(drop=True), _groups(repeated)
        rows = repeated.questions[KEY].assign(
            differs=(~same).fillna(value=False).any(axis=1),
            is_same=same.fillna(value=False).all(axis=1),
            is_chosen=groups.isin(list(only)).any(axis=1),
        )
        found.append(rows)
    return pd.concat(found).drop_duplicates(KEY, keep="last")


def _new_folders(root: Path, name: str) -> dict[Part, Path]:
    folders = {part: root / f"{name}-{part}" for part in PARTS}
    for path in folders.values():
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise DataError(
                f"--split: {path} exists; delete it, or name another folder: the files of two "
                "splits must not be mixed"
            )
    return folders


def _fates(
    benchmark: Benchmark[Any, Any],
    settings: DataSettings,
    tasks: Sequence[Task],
    judged: pd.DataFrame,
    only: Sequence[str],
) -> dict[Question, str]:
    """Return what becomes of each question of the file that some tasks share."""
    is_own = judged["task"].isin([task.name for task in tasks])
    of_questions = judged[is_own].groupby(KEY[1:], sort=False)
    is_stable = of_questions["is_same"].all() & (of_questions.size() == len(tasks))
    is_other = ~of_questions["is_chosen"].any() & bool(only)
    flags = [is_stable, is_other, of_questions["differs"].any()]
    names = np.select(flags, list(FATES)[:3], "not known").tolist()
    known = dict(zip(is_stable.index, names, strict=True))
    number = _numbering()
    official = [
        number(benchmark.video_id(doc), benchmark.question_text(question))
        for doc in benchmark.read(settings, tasks[0])
        for question in benchmark.questions(doc)
    ]
    return {question: known.get(question, "never judged") for question in official}


def _numbering() -> Callable[[str, str], Question]:
    """Return what numbers questions with the same text about a video."""
    met: Counter[tuple[str, str]] = Counter()

    def number(video: str, text: str) -> Question:
        met[video, text] += 1
        return video, text, met[video, text] - 1

    return number


def _selected(question_file: QuestionFile, path: Path, wanted: set[Question]) -> str:
    number = _numbering()
    return question_file.select(path, lambda video, text: number(video, text) in wanted)


def _write(path: Path, text: str) -> None:
    # JSON may hold half of a surrogate pair, which is written as JSON's escape of it.
    try:
        write_atomically(path, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise DataError(f"--split: {path} cannot be written: {error}") from error


def _manifest(
    done: Document, part: Part, several: Sequence[Repeated], data: str | None, only: Sequence[str]
) -> dict[str, object]:
    """Return how a part was made."""
    source = several[0].benchmark.source
    if data is not None and data != SAMPLE:
        data = str(Path(data).expanduser().resolve())
    captioners: dict[str, dict[str, object]] = {}
    for of in several:
        for name, verdicts, path in zip(of.captioners, of.verdicts, of.results, strict=True):
            for table in verdicts.tables:
                made = {"results": path.as_posix(), "signature": str(table.signature)}
                captioners.setdefault(name, {})[table.task] = made
    return {
        "part": f"{done['benchmark']}-{part}",
        "license": source.license,
        "page": source.page,
        "made_by": f"{DISTRIBUTION} {package_version()}",
        SPLIT_DATA: data,
        "rule": {
            "n_runs": min(of.n_runs for of in several),
            "verdict": several[0].benchmark.headline,
            "numbers_within_percent_of_scale": 100 * WITHIN,
            "split_off_groups": list(only) or "all",
        },
        "n_questions": done["n_questions"][part],
        "files": done["files"],
        "judges": list(dict.fromkeys(judge for of in several for judge in of.judges)),
        "captioners": [{"name": name, "tasks": tasks} for name, tasks in captioners.items()],
        "notes": list(dict.fromkeys(note for of in several for note in notes_of(of))),
    }
