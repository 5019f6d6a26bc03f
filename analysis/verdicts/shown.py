"""What of several captioners is shown: their tasks and groups, and groups of questions."""

from __future__ import annotations

from collections.abc import Sequence

from lmms_eval_captions.analysis.verdicts.captioners import Captioner, common_names
from lmms_eval_captions.analysis.verdicts.parts import Group
from lmms_eval_captions.analysis.verdicts.verdicts import Verdicts
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.judging_document import leaves_of


def names_to_show(captioners: Sequence[Captioner], asked: Sequence[str] = ()) -> list[str]:
    """The tasks and groups to show.

    Args:
        captioners: All that must have them.
        asked: Those that are asked for; empty for all, but tasks of a group that is shown.

    Raises:
        SettingsError: If one is not there.
        DataError: If there is none.
    """
    common = common_names(captioners)
    for name in asked:
        if name not in common:
            raise SettingsError(
                f"--tasks: expected any of {', '.join(common) or 'none'}, which all results have, "
                f"got {name!r:.80}"
            )
    if not common:
        of_each = "; ".join(f"{c.name}: {', '.join(c.runs)}" for c in captioners)
        raise DataError(f"the results have no task and no group in common: {of_each}")
    if asked:
        return list(dict.fromkeys(asked))
    document = captioners[0]
    members = {
        task
        for name in common
        for task in leaves_of(document.runs[name].document, name)
        if task != name
    }
    return [name for name in common if name not in members]


def sections_of(verdicts: Verdicts) -> dict[str, dict[str, int]]:
    """Section to its groups and their questions in the first judge run, in the paper's order."""
    found: dict[str, dict[str, int]] = {name: {} for name in verdicts.benchmark.sections}
    for task in verdicts.tasks:
        for caption in task.captions:
            for section, runs in caption.groups.items():
                numbers = found.setdefault(section, {})
                for name in runs[0] if runs else ():
                    if name is not None:
                        numbers[name] = numbers.get(name, 0) + 1
    return {section: numbers for section, numbers in found.items() if numbers}


def groups_of(verdicts: Verdicts, section: str | None) -> list[Group]:
    """The groups of a section, those that the benchmark names first, then the largest."""
    found = sections_of(verdicts)
    known = verdicts.benchmark.sections
    if section is None:
        # One group is all questions; where the benchmark names none they are free text.
        named = (name for name in found if known.get(name) and len(found[name]) > 1)
        section = next(named, None)
    if section is None or section not in found:
        return []
    numbers = found[section]
    first = [name for name in known.get(section, ()) if name in numbers]
    others = sorted((name for name in numbers if name not in first), key=lambda n: -numbers[n])
    return [(section, name) for name in (*first, *others)]


def tasks_of_groups(verdicts: Verdicts, groups: Sequence[Group]) -> dict[Group, str]:
    """Each group's task, where every one is the questions of one task, as aspects of VDC are."""
    found: dict[Group, str] = {}
    for task in verdicts.tasks:
        names = {
            (section, name)
            for section, _ in groups[:1]
            for caption in task.captions
            for names in caption.groups.get(section, ())
            for name in names
            if name is not None
        }
        if len(names) == 1:
            found[names.pop()] = task.task
    is_each = len(groups) == len(verdicts.tasks) == len(found)
    return {group: found[group] for group in groups} if is_each else {}
