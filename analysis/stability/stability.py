"""What ``lmms-eval-captions stability`` finds out, from results folders to documents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lmms_eval_captions.analysis.stability.fates import Rule
from lmms_eval_captions.analysis.stability.opinions import Opinions, opinions_of
from lmms_eval_captions.analysis.stability.split import Split, split
from lmms_eval_captions.analysis.verdicts.captioners import captioners_of
from lmms_eval_captions.analysis.verdicts.shown import names_to_show
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import DataSettings


def stability(folders: Sequence[Path], names: Sequence[str], *, within: float) -> list[Opinions]:
    """What is known of the stability of each task and group.

    Args:
        folders: Results folders, of one captioner or more.
        names: Tasks and groups; none for all with a judge that every captioner has, without the
            tasks of a group that is among them.
        within: Numbers are the same that are at most so far apart, as a share of their scale.

    Raises:
        SettingsError: If a name is not among what all have.
        DataError: If there is nothing to look at, or a task that was named asks no judge.
    """
    captioners = captioners_of(folders)
    several = [
        opinions_of(name, captioners, within=within) for name in names_to_show(captioners, names)
    ]
    judged = [opinions for opinions in several if opinions.benchmark.measure is None]
    unjudged = [opinions.name for opinions in several if opinions.benchmark.measure is not None]
    if unjudged and (names or not judged):
        raise DataError(
            f"stability: expected tasks with a judge, got {', '.join(unjudged)}: captions are "
            "measured there, and no judge is asked"
        )
    return judged


def split_all(
    several: Sequence[Opinions], settings: DataSettings, folder: Path, rule: Rule
) -> list[Split]:
    """Split every benchmark that was judged, see :func:`split`.

    Raises:
        DataError: As :func:`split`, and if two kinds of verdicts are on the same questions.
    """
    by_folder: dict[str, list[Opinions]] = {}
    with_files = [of for of in several if of.benchmark.question_file is not None]
    for opinions in with_files or several:
        by_folder.setdefault(opinions.benchmark.name, []).append(opinions)
    for name, of_folder in by_folder.items():
        if any(opinions.benchmark is not of_folder[0].benchmark for opinions in of_folder):
            raise DataError(
                f"--split: {', '.join(o.name for o in of_folder)} are different verdicts on the "
                f"questions of {name}; say by --tasks which of them the split is made from"
            )
    return [split(of_folder, settings, folder, rule) for of_folder in by_folder.values()]
