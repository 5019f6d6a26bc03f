"""A digest of the code that a captioner consists of, so that its captions go with it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import blake2b
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import resolve_name
from pathlib import Path
from typing import Final

_OURS: Final = "lmms_eval_captions."
_ROOM_DEPTH: Final = 4
"""Parts of a module's name in one of the rooms of ``model_wrappers``, such as ``video``. What is
not in a room is the plumbing of all captioners, and moves no caption."""
_FRAMEWORKS: Final = frozenset({"accelerate", "lmms_eval", "torch", "transformers", "vllm"})
"""Large, and at times run from a checkout: their versions count, and not their code."""


_SITES: Final = frozenset({"site-packages", "dist-packages"})


def code_digest(modules: Iterable[str]) -> str:
    """What the code of modules is, and of the user's own modules that they import.

    Neither the standard library nor installed packages are looked into, but the package of a
    module that was named. Nothing is imported for it.

    Args:
        modules: Names of imported modules, such as those of a captioner's classes.
    """
    files = _files(modules)
    digest = blake2b(digest_size=16)
    # By content alone: a file may be imported under several names, and lie anywhere.
    for content in sorted({blake2b(code).digest() for code in files.values()}):
        digest.update(content)
    return digest.hexdigest()


def packages_of(modules: Iterable[str]) -> set[str]:
    """What the user's own modules among these, and those that they import, import beside.

    Args:
        modules: Names of imported modules, such as those of a captioner's classes.

    Returns:
        First parts of names, of this package, of the standard library and of nowhere left out.
    """
    files = _files(name for name in modules if not name.startswith(_OURS))
    tops = {
        imported.partition(".")[0]
        for name, code in files.items()
        if not name.startswith(_OURS)
        for imported in _imports(code, name, is_package=False)
    }
    return tops - sys.stdlib_module_names - {_OURS.rstrip(".")}


def _files(modules: Iterable[str]) -> dict[str, bytes]:
    """Code by module: of modules that were named, and of the user's own that they import."""
    named = set(modules)
    own = {name.partition(".")[0] for name in named}
    files: dict[str, bytes] = {}
    seen: set[str] = set()
    left = sorted(named)
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        path = _file(name) if name in named or _is_users(name, own) else None
        if path is not None:
            files[name] = path.read_bytes()
            left += _imports(files[name], name, is_package=path.name == "__init__.py")
    return files


def _is_users(name: str, own: set[str]) -> bool:
    """Whether a module that another one imports is part of a captioner."""
    top = name.partition(".")[0]
    if name.startswith(_OURS):
        is_wrapper = name.startswith(f"{_OURS}model_wrappers.")
        return is_wrapper and len(name.split(".")) >= _ROOM_DEPTH
    if top in sys.stdlib_module_names or top in _FRAMEWORKS:
        return False
    return top in own or not _is_installed(top)


@cache
def _is_installed(package: str) -> bool:
    """Whether a package is one of the environment's, or nowhere."""
    loaded = sys.modules.get(package)
    spec = loaded.__spec__ if loaded is not None else _spec(package)
    places = [spec.origin or "", *(spec.submodule_search_locations or ())] if spec else []
    is_there = any(Path(place).exists() for place in places if place)
    return not is_there or any(_SITES & {*Path(place).parts} for place in places)


def _imports(code: bytes, name: str, *, is_package: bool) -> Iterator[str]:
    """Names that may be of modules that a module imports, wherever in it."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):  # imported before it was damaged
        return
    package = name if is_package else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_parents(alias.name)
        elif isinstance(node, ast.ImportFrom):
            try:
                origin = resolve_name("." * node.level + (node.module or ""), package or None)
            except ImportError:
                continue
            yield from _with_parents(origin)
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def _with_parents(name: str) -> list[str]:
    """A module, and the packages that importing it imports.

    >>> _with_parents("a.b.c")
    ['a', 'a.b', 'a.b.c']
    """
    parts = name.split(".")
    return [".".join(parts[: n + 1]) for n in range(len(parts))]


def _file(name: str) -> Path | None:
    """The Python file of a module, ``None`` where it has none."""
    loaded = getattr(sys.modules.get(name), "__file__", None)
    spec = None if loaded else _spec(name)
    origin = loaded or (spec.origin if spec is not None and spec.has_location else None)
    if origin is None or not origin.endswith(".py") or not Path(origin).is_file():
        return None
    return Path(origin).resolve()


def _spec(name: str) -> ModuleSpec | None:
    """Where a module would be loaded from; unlike ``importlib`` it imports no package for that."""
    parent = name.rpartition(".")[0]
    if not parent:
        return PathFinder.find_spec(name)
    if parent in sys.modules:
        folders = getattr(sys.modules[parent], "__path__", None)
    else:
        spec = _spec(parent)
        folders = spec.submodule_search_locations if spec is not None else None
    try:
        return None if folders is None else PathFinder.find_spec(name, list(folders))
    except (ImportError, KeyError):  # within a package without a file that was not imported
        return None
