"""A benchmark split into the questions that are judged the same every time, and the others."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval_captions.analysis.stability.fates import (
    PART_OF,
    PARTS,
    Fate,
    Part,
    Question,
    Rule,
    fates_of,
    require_groups,
)
from lmms_eval_captions.analysis.stability.opinions import Occurrences, Opinions
from lmms_eval_captions.analysis.stability.split_words import manifest_of, readme_of
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import write_atomically
from lmms_eval_captions.judges.settings import SAMPLE, DataSettings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Task
from lmms_eval_captions.lmms_eval_tasks.data.files import find_file
from lmms_eval_captions.lmms_eval_tasks.data.question_file import QuestionFile
from lmms_eval_captions.lmms_eval_tasks.data.split_folder import MANIFEST


@dataclass(frozen=True, slots=True)
class Split:
    """A benchmark that was split."""

    benchmark: str
    folders: Mapping[Part, Path]
    """Each a value of ``LMMS_CAPTIONS_DATA``."""
    files: Mapping[str, Mapping[Fate, int]]
    """Official file to what became of its questions."""

    def n_of(self, part: Part) -> int:
        """The questions of a part."""
        return sum(
            n for of in self.files.values() for fate, n in of.items() if PART_OF[fate] == part
        )


def split(several: Sequence[Opinions], settings: DataSettings, folder: Path, rule: Rule) -> Split:
    """Write the official files of a benchmark anew, in two parts.

    A question is stable where every captioner's caption got the same verdict in all judge runs, in
    every task that asks it and was judged. All others are unstable.

    Args:
        several: Tasks and groups of one benchmark.
        settings: Where the official files are.
        folder: Gets the folders ``<benchmark>-stable`` and ``<benchmark>-unstable``.
        rule: Which questions are unstable.

    Raises:
        DataError: If the benchmark has no file of questions, there is but one judge run, a folder
            is there already, or what was judged is not in the files.
    """
    benchmark = several[0].benchmark
    question_file = benchmark.question_file
    if question_file is None:
        raise DataError(f"--split: {several[0].name} has no questions in a file to be split")
    if any(opinions.n_runs < 2 for opinions in several):
        raise DataError(
            f"--split: expected at least 2 judge runs of {benchmark.name}, got 1, in which every "
            "question is stable; set LMMS_CAPTIONS_JUDGE_RUNS=3 and score the captions again"
        )
    require_groups(several, rule.groups)
    folders = {
        part: _new_folder(folder.expanduser() / f"{benchmark.name}-{part}") for part in PARTS
    }
    files = {}
    for name, tasks in _tasks_by_file(benchmark, question_file, several).items():
        official = _official(benchmark, settings, tasks[0])
        fates = fates_of(official, {task.name for task in tasks}, several, rule)
        files[name] = Counter(fates.values())
        if files[name]["never judged"] == len(official):
            raise DataError(
                f"{name}: expected the questions that were judged, got none of them; set "
                "LMMS_CAPTIONS_DATA to the data with which the captions were scored"
            )
        path = find_file(settings, benchmark.source, name)
        for part, root in folders.items():
            wanted = [question for question, fate in fates.items() if PART_OF[fate] == part]
            if wanted:
                text = _selected(question_file, path, wanted)
                _write(root / benchmark.source.benchmark / name, text)
    done = Split(benchmark.name, folders, files)
    n_runs = min(opinions.n_runs for opinions in several)
    for part, root in folders.items():
        manifest = manifest_of(several, files, part, rule=rule, data=_origin(settings))
        _write(root / MANIFEST, f"{json.dumps(manifest, indent=1, ensure_ascii=False)}\n")
        _write(root / "README.md", readme_of(benchmark, files, part, n_runs=n_runs, rule=rule))
    return done


def _new_folder(path: Path) -> Path:
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise DataError(
            f"--split: {path} is there already; delete it, or name another folder: the files of "
            "two splits must not be mixed"
        )
    return path


def _tasks_by_file(
    benchmark: Benchmark[Any, Any], question_file: QuestionFile, several: Sequence[Opinions]
) -> dict[str, list[Task]]:
    """Each official file to the judged tasks that ask its questions."""
    judged = {task for opinions in several for task, _, _, _ in opinions.asked}
    files: dict[str, list[Task]] = {}
    for task in benchmark.tasks.values():
        if task.name in judged:
            files.setdefault(question_file.name(task.fields), []).append(task)
    return files


def _official(benchmark: Benchmark[Any, Any], settings: DataSettings, task: Task) -> list[Question]:
    """The questions of a task's file, as the task asks them."""
    occurrences = Occurrences()
    return [
        occurrences.next_of(benchmark.video_id(doc), benchmark.question_text(question))
        for doc in benchmark.read(settings, task)
        for question in benchmark.questions(doc)
    ]


def _selected(question_file: QuestionFile, path: Path, wanted: Sequence[Question]) -> str:
    """The text of a file with these questions alone."""
    occurrences, missing = Occurrences(), set(wanted)

    def keep(video_id: str, text: str) -> bool:
        question = occurrences.next_of(video_id, text)
        is_wanted = question in missing
        missing.discard(question)
        return is_wanted

    selected = question_file.select(path, keep)
    if missing:
        raise DataError(
            f"{path}: expected {len(wanted):,} questions, did not find {len(missing):,} of them, "
            f"such as {min(missing)!r:.120}; was the file changed meanwhile? Split again"
        )
    return selected


def _origin(settings: DataSettings) -> str | None:
    """Where the data are, for whoever looks for the clips from another folder."""
    if settings.data is None or settings.data == SAMPLE:
        return settings.data
    return str(Path(settings.data).expanduser().resolve())


def _write(path: Path, text: str) -> None:
    # Half of a surrogate pair, which JSON may hold, is written as JSON's escape of it.
    try:
        write_atomically(path, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise DataError(f"--split: {path} cannot be written: {error}") from error
