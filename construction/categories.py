"""Categories of questions: names for readers, and the text that defines them for writers.

The papers' stand in prompt files (``build_*_categories.yaml``); ``--categories`` and files in the
folder of ``LMMS_CAPTIONS_PROMPTS`` replace them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from lmms_eval_captions.construction.pipeline import BuildContext, Kind
from lmms_eval_captions.construction.replies import objects_in
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.files import read_yaml_file
from lmms_eval_captions.judges.protocols.prompt import Prompts

_NUMBERED: Final = re.compile(r"^[-* ]*[0-9]+\. Category: `?([^`*\n]+)`?", re.MULTILINE)
"""CapQuiz's layout: ``- **1. Category: `Entity`**``."""
_HEADING: Final = re.compile(r"([^\s#*-][^\n]*):")
_MEMBER: Final = re.compile(r"[-*]\s+([^:\n]+):\s*\S.*")


class Categories(NamedTuple):
    """Categories as text for prompts, and as names by group for readers; ``""`` without groups."""

    text: str
    groups: Mapping[str, tuple[str, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in order."""
        return tuple(name for names in self.groups.values() for name in names)

    @property
    def examples(self) -> tuple[str, ...]:
        """Example questions in the text, which a writer may copy."""
        blocks = re.findall(r"\{[^{}]*\}", self.text)
        objects = [value for block in blocks for value in objects_in(block)]
        return tuple(str(value["question"]) for value in objects if "question" in value)


def load_categories(prompts: Prompts, name: str) -> Categories:
    """Return the categories of a prompt file; raises if a custom file names none, or one twice."""
    text = prompts.text(name, "categories")
    categories = Categories(text, _groups(text))
    names = categories.names
    if not names or len({letters_of(each) for each in names}) != len(names):
        raise SettingsError(
            f"LMMS_CAPTIONS_PROMPTS: {name}.yaml: expected each category once, got "
            f"{', '.join(names) or text!r:.200}; write them in the layout of the packaged file"
        )
    return categories


def _groups(text: str) -> Mapping[str, tuple[str, ...]]:
    if numbered := _NUMBERED.findall(text):
        return {"": tuple(name.strip() for name in numbered)}
    groups: dict[str, tuple[str, ...]] = {}
    group = ""
    for line in map(str.strip, text.split("\n")):
        member, heading = _MEMBER.fullmatch(line), _HEADING.fullmatch(line)
        if member is not None:
            groups[group] = (*groups.get(group, ()), member[1].strip())
        elif heading is not None:
            group = heading[1].strip()
    return groups


def flat_categories(
    context: BuildContext, name: str, layout: str = "- {name}: {definition}"
) -> Categories:
    """Return the categories of a prompt file, or the custom ones in a layout, without groups."""
    if context.options.categories is None:
        return load_categories(context.prompts, name)
    lines = [
        layout.format(number=number, name=name, definition=definition)
        for number, (name, definition) in enumerate(context.categories.items(), 1)
    ]
    return Categories("\n".join(lines), {"": tuple(context.categories)})


def dimensions(context: BuildContext, name: str) -> Categories:
    """Return sub categories by dimension; custom ones are "dimension/sub category", or just one."""
    if context.options.categories is None:
        return load_categories(context.prompts, name)
    lines: dict[str, list[str]] = {}
    groups: dict[str, tuple[str, ...]] = {}
    for category, definition in context.categories.items():
        dimension, _, sub = (part.strip() for part in category.partition("/"))
        sub = sub or dimension
        groups[dimension] = (*groups.get(dimension, ()), sub)
        lines.setdefault(dimension, [f"{dimension}:"]).append(f"- {sub}: {definition}")
    return Categories("\n".join(line for each in lines.values() for line in each), groups)


def place_of(primary: object, sub: object, categories: Categories) -> tuple[str, str] | None:
    """Return the dimension and the sub category that a model means; ``None`` for neither.

    A sub category of one dimension only needs no correct dimension.

    >>> categories = Categories("", {"motion": ("body", "object"), "content": ("object",)})
    >>> place_of("content", "Body", categories), place_of("Motion", "object", categories)
    (('motion', 'body'), ('motion', 'object'))
    >>> place_of("sound", "object", categories) is None
    True
    """
    places = [
        (dimension, name)
        for dimension, names in categories.groups.items()
        for name in names
        if category_of(sub, [name]) == name
    ]
    of_dimension = [place for place in places if category_of(primary, [place[0]]) == place[0]]
    return next(iter(of_dimension or (places if len(places) == 1 else ())), None)


def category_of(name: object, categories: Collection[str]) -> object:
    """Return a category as it was asked for, however a model spells it; unchanged if unknown.

    >>> category_of("causal_reasoning", ["Entity", "Causal Reasoning"])
    'Causal Reasoning'
    >>> category_of("Causal", ["Entity", "Causal Reasoning"])
    'Causal Reasoning'
    """
    if not isinstance(name, str):
        return name
    spelled = letters_of(name)
    known = {letters_of(category): category for category in categories}
    return known.get(spelled) or known.get(f"{spelled}reasoning") or name


def letters_of(name: str) -> str:
    """Return a name without case, spaces and signs."""
    return "".join(letter for letter in name.casefold().replace("&", "and") if letter.isalnum())


def read_categories(kind: Kind, path: Path | None) -> Mapping[str, str]:
    """Return the kind's categories, or those of a file of names and definitions."""
    if path is None:
        return kind.categories
    if not kind.categories:
        raise SettingsError(
            f"--categories: {kind.name} has fixed aspects; leave it out, or build another kind"
        )
    try:
        loaded = read_yaml_file(path)
    except (OSError, ValueError) as error:
        raise SettingsError(f"--categories: {path}: cannot be read: {error}") from error
    texts = [text for pair in loaded.items() for text in pair] if isinstance(loaded, dict) else []
    is_valid = all(isinstance(text, str) and text.strip() and "*" not in text for text in texts)
    letters = {letters_of(name) for name in texts[::2]} if is_valid else set()
    if not isinstance(loaded, dict) or not letters or "" in letters or len(letters) < len(loaded):
        raise SettingsError(
            f"--categories: {path}: expected names of categories that differ in letters or digits, "
            "each with its definition, such as 'safety: whether a rule of safety is broken' (no "
            f"'*'), got {loaded!r:.120}"
        )
    return {" ".join(name.split()): definition for name, definition in loaded.items()}
