"""Captioners by the results folders that a user names: one for each model below a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lmms_eval_captions.analysis.verdicts.verdicts import (
    Verdicts,
    names_with_verdicts,
    read_verdicts,
)
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.results_folder import (
    RESULTS,
    RunResults,
    read_all_results,
)

_MOST: Final = 24
"""Characters of a captioner's name; a longer one loses its middle."""
_CUT: Final = "..."


@dataclass(frozen=True, slots=True)
class Captioner:
    """A captioner with what was judged of it."""

    name: str
    """Distinct from those of the others that were named beside it, and short."""
    runs: Mapping[str, RunResults]
    """Each task and group whose verdicts can be looked at, to the newest run that has it."""

    @property
    def run(self) -> RunResults:
        """The newest of its runs."""
        return max(self.runs.values(), key=lambda run: run.finished_s)

    def verdicts(self, name: str) -> Verdicts:
        """The verdicts of one of its tasks or groups.

        Raises:
            DataError: If they are not there, cannot be read, or are of a sample of the questions.
        """
        return read_verdicts(self.runs.get(name, self.run), name)

    def verdicts_in_part(self, name: str) -> Verdicts:
        """The same, also of a sample of the questions."""
        return read_verdicts(self.runs.get(name, self.run), name, in_part=True)


def captioners_of(folders: Sequence[Path]) -> list[Captioner]:
    """The captioners of results folders, in the order in which the folders are named.

    A folder with several models below it is several captioners; of several runs of one model the
    newest that has a task counts for it. A captioner is called as its folder, one of several below
    a folder as its own; where that is not distinct, the names of the folders above stand before it.

    Args:
        folders: As lmms-eval had them as ``--output_path``; also results files.

    Raises:
        DataError: If one has no results, none of our tasks, or was named twice.
    """
    found = [pair for folder in folders for pair in _models(folder)]
    _check_each_once(found)
    paths = [parts for parts, _ in found]
    names = _distinct_names(paths)
    return [Captioner(name, runs) for name, (_, runs) in zip(names, found, strict=True)]


def common_names(captioners: Sequence[Captioner]) -> list[str]:
    """Tasks and groups that all captioners have, in the order of the first."""
    first, *others = captioners
    return [name for name in first.runs if all(name in other.runs for other in others)]


def _models(folder: Path) -> Iterator[tuple[tuple[str, ...], dict[str, RunResults]]]:
    """Each model below a folder: the parts of its path, and the newest run for each name."""
    given = folder.expanduser()
    if given.name in ("", ".."):
        given = given.resolve()
    models = read_all_results(given)
    for runs in models:
        newest = {name: run for run in runs for name in names_with_verdicts(run)}
        if not newest:
            raise DataError(
                f"{runs[-1].path}: expected a run with verdicts of a task of lmms-eval-captions, "
                "found none: was it --predict_only, or another package's task?"
            )
        if given.is_file():
            parts = (*given.parent.parts, given.name.removesuffix(RESULTS))
        elif len(models) > 1:
            parts = (*given.parts, *runs[-1].path.parent.relative_to(given).parts)
        else:
            parts = given.parts
        yield parts, newest


def _check_each_once(found: Sequence[tuple[tuple[str, ...], Mapping[str, RunResults]]]) -> None:
    """A captioner beside itself would be a tie that means nothing.

    Raises:
        DataError: If a run counts for two captioners, however their folders are written.
    """
    owners: dict[Path, tuple[str, ...]] = {}
    for parts, runs in found:
        for path in {run.path.resolve() for run in runs.values()}:
            if path in owners:
                first, second = Path(*owners[path]), Path(*parts)
                which = f"{first}" if first == second else f"{first} (again as {second})"
                raise DataError(f"{which} is named twice; name each results folder once")
        owners.update(dict.fromkeys((run.path.resolve() for run in runs.values()), parts))


def _distinct_names(paths: Sequence[tuple[str, ...]]) -> list[str]:
    """The shortest ends of the paths that tell one from another, cut in the middle where long."""
    lengths = [1] * len(paths)
    names = ["/".join(path[-1:]) for path in paths]
    while True:
        n_of = Counter(names)
        again = [n_of[name] > 1 and lengths[i] < len(paths[i]) for i, name in enumerate(names)]
        if not any(again):
            break
        lengths = [n + longer for n, longer in zip(lengths, again, strict=True)]
        names = ["/".join(path[-n:]) for path, n in zip(paths, lengths, strict=True)]
    short = [_shortened(name) for name in names]
    n_of = Counter(short)
    return [cut if n_of[cut] == 1 else f"{cut}#{place}" for place, cut in enumerate(short, start=1)]


def _shortened(name: str) -> str:
    if len(name) <= _MOST:
        return name
    n_last = (_MOST - len(_CUT)) * 2 // 3
    return name[: _MOST - len(_CUT) - n_last] + _CUT + name[-n_last:]
