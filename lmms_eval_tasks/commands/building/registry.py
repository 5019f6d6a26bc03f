"""The kinds of benchmarks that can be built, by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.kind import Kind

_KINDS: Final = "lmms_eval_captions.lmms_eval_tasks.commands.building.kinds"
NAMES: Final = ("capquiz", "vcapsbench", "vdc", "vidcapbench")


def kind_of(name: str) -> Kind:
    """The kind of a name, one of :data:`NAMES`; its module is imported now."""
    kind: Kind = getattr(import_module(f"{_KINDS}.{name}"), name.upper())
    return kind
