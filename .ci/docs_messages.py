"""Every message that a user can meet, from the code: a page of the site, and what tests look in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOMS: Final = (
    "analysis", "cli", "construction", "judges", "lmms_eval_tasks", "metrics", "model_wrappers",
    "scorer", "verification",
)  # fmt: skip
HOLE: Final = "..."
"""Stands for what a message fills in."""
_FORMATTED: Final = re.compile(r"\{(:[^{}]*|![rs])?\}")
_LEVELS: Final = {"info": "told", "warning": "warning", "error": "error", "critical": "error"}
_SHORTEST: Final = 20
"""Characters below which a text says nothing by itself."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message: an error that is raised, or a line of the log."""

    text: str
    """Message, with ``...`` for inserted values."""
    kind: str
    """``error``, ``warning`` or ``told``."""
    file: str
    """File, relative to the repository's root."""


def texts(root: Path) -> Iterator[str]:
    """Every text in the code, with ``...`` for what is filled in."""
    for _, tree in _modules(root):
        inner = {id(part) for node in ast.walk(tree) for part in _parts(node)}
        for node in ast.walk(tree):
            if id(node) not in inner and (text := _text(node)):
                yield text


def messages(root: Path) -> list[Message]:
    """Errors that are raised with words of their own, and what is logged, by file."""
    found: dict[tuple[str, str], Message] = {}
    for file, tree in _modules(root):
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or (kind := _kind(node)) is None:
                continue
            words = next((text for argument in node.args if (text := _text(argument))), None)
            if words and len(words.replace(HOLE, "").strip()) >= _SHORTEST:
                text = " ".join(words.split())
                found.setdefault((file, text), Message(text, kind, file))
    return list(found.values())


def messages_page(root: Path) -> str:
    """A page of all of them, in Markdown."""
    parts = [
        "# Every message",
        "Taken from the code when these pages were made: what a run, a captioner or a command can "
        "say, by the file that says it; `...` stands for what is filled in. Errors end what they "
        "concern, warnings do not. Those that people meet most often are explained under "
        "[Troubleshooting](troubleshooting.md).",
    ]
    by_file: dict[str, list[Message]] = {}
    for message in messages(root):
        by_file.setdefault(message.file, []).append(message)
    for file, said in by_file.items():
        lines = [f"- {message.kind}: `` {message.text} ``" for message in said]
        parts += [f"## {file}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _modules(root: Path) -> Iterator[tuple[str, ast.Module]]:
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            yield path.relative_to(root).as_posix(), tree


def _kind(call: ast.Call) -> str | None:
    name = call.func
    if isinstance(name, ast.Attribute):
        is_logger = isinstance(name.value, ast.Name) and name.value.id == "logger"
        return _LEVELS.get(name.attr) if is_logger else None
    return "error" if isinstance(name, ast.Name) and name.id.endswith("Error") else None


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant):
        return _FORMATTED.sub(HOLE, node.value) if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or HOLE for part in node.values)
    return None


def _parts(node: ast.AST) -> list[ast.expr]:
    return node.values if isinstance(node, ast.JoinedStr) else []
