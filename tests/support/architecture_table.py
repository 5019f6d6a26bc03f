"""The table of docs/architectures.md: what came of each architecture of the zoo."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from zoo import ARCHITECTURES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from architectures import Trial

_COLUMNS: Final = ("architecture", "for example", "sees", "captions", "prompts of a clip")
_HEAD: Final = f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}\n"
_BEGIN: Final = "<!-- made by python tests/support/architectures.py, with transformers "
_END: Final = "<!-- end -->"
_TABLE: Final = re.compile(f"{re.escape(_BEGIN)}(.*?) -->\n(.*?){re.escape(_END)}", re.DOTALL)


def table(trials: Mapping[str, Trial]) -> str:
    """One line for each architecture, by name."""
    return _HEAD + "".join(f"{_row(trials[name])}\n" for name in sorted(trials))


def version_of(page: str) -> str:
    """The version of transformers with which a page's table was made."""
    return _found(page)[1]


def table_of(page: str) -> str:
    """A page's table."""
    return _found(page)[2].strip() + "\n"


def with_table(page: str, version: str, rows: str) -> str:
    """A page with another table."""
    return _TABLE.sub(lambda _: f"{_BEGIN}{version} -->\n\n{rows}\n{_END}", page)


def _found(page: str) -> re.Match[str]:
    found = _TABLE.search(page)
    if found is None:
        raise ValueError(f"docs/architectures.md: expected a line with {_BEGIN!r}, got none")
    return found


def _row(trial: Trial) -> str:
    architecture = ARCHITECTURES[trial.name]
    of_long_prompt = [caption.text for caption in trial.alone[len(trial.documented) :]]
    checks = {
        "batches": trial.together == trial.alone,
        "as documented": of_long_prompt == trial.documented,
        "pictures": trial.picture.text == trial.documented_picture,
    }
    differing = [name for name, same in checks.items() if not same]
    cells = [
        f"`{trial.name}`",
        architecture.example,
        "videos" if architecture.shown == "video" else "images",
        f"**differ**: {', '.join(differing)}" if differing else "equal",
        _shared(trial),
    ]
    return f"| {' | '.join(cells)} |"


def _shared(trial: Trial) -> str:
    if trial.shared != trial.alone:
        return "**differ**"
    return "together" if trial.is_shared else "apart"
