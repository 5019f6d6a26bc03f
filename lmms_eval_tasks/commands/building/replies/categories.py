"""The categories that questions are written in: their names, and the text that defines them.

They stand in prompt files of their own (``build_*_categories.yaml``), so that a file of the same
layout in the folder of ``LMMS_CAPTIONS_PROMPTS`` puts categories of one's own in their place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.protocols.prompt import Prompts
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.objects import objects_in

_KEY: Final = "categories"
_NUMBERED: Final = re.compile(r"^[-* ]*[0-9]+\. Category: `?([^`*\n]+)`?", re.MULTILINE)
"""CapQuiz's layout: ``- **1. Category: `Entity`**``."""
_HEADING: Final = re.compile(r"([^\s#*-][^\n]*):")
_MEMBER: Final = re.compile(r"[-*]\s+([^:\n]+):\s*\S.*")


@dataclass(frozen=True, slots=True)
class Categories:
    """Categories, as one text for prompts and as names for readers."""

    text: str
    """What goes into the slot ``categories``."""
    groups: Mapping[str, tuple[str, ...]]
    """Names by their group, in order; of categories without groups the group is the empty text."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all of them, in order."""
        return tuple(name for names in self.groups.values() for name in names)

    @property
    def examples(self) -> tuple[str, ...]:
        """The questions that the text gives as examples: a writer that repeats one copies."""
        shown = (dict(pairs).get("question") for pairs in objects_in(self.text))
        return tuple(question for question in shown if isinstance(question, str))

    def named(self, name: str) -> str | None:
        """The category that a model means by a name: the same but for case, blanks and marks."""
        plain = _plain(name)
        return next((known for known in self.names if _plain(known) == plain), None)


def load_categories(prompts: Prompts, name: str) -> Categories:
    """The categories of a prompt file, such as ``build_capquiz_categories``.

    Raises:
        SettingsError: If the file of one's own names none, or one of them twice.

    >>> load_categories(Prompts(), "build_vcapsbench_categories").names[:3]
    ('proper noun', 'action', 'relation')
    """
    text = prompts.text(name, _KEY)
    categories = Categories(text, _groups(text))
    if len({_plain(name) for name in categories.names}) != len(categories.names) or not all(
        categories.groups.values()
    ):
        raise _refusal(name, f"each category once, got {', '.join(categories.names)!r:.300}")
    if not categories.names:
        raise _refusal(name, f"at least one category, got {text!r:.200}")
    return categories


def _refusal(name: str, problem: str) -> SettingsError:
    return SettingsError(
        f"LMMS_CAPTIONS_PROMPTS: {name}.yaml: expected {problem}; write them in the layout of the "
        "packaged file of that name"
    )


def _groups(text: str) -> Mapping[str, tuple[str, ...]]:
    numbered = tuple(found.strip() for found in _NUMBERED.findall(text))
    if numbered:
        return {"": numbered}
    groups: dict[str, tuple[str, ...]] = {}
    for group, name in _members(text):
        groups[group] = (*groups.get(group, ()), name)
    return groups


def _members(text: str) -> Iterator[tuple[str, str]]:
    group = ""
    for line in map(str.strip, text.split("\n")):
        member, heading = _MEMBER.fullmatch(line), _HEADING.fullmatch(line)
        if member is not None:
            yield group, member[1].strip()
        elif heading is not None:
            group = heading[1].strip()


def _plain(name: str) -> str:
    return " ".join(re.findall(r"\w+", name.casefold().replace("_", " ")))
