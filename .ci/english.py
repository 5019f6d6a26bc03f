"""Check of the English of docstrings, messages and pages: words that nobody writes in this field.

Prints every finding as ``file:line: text`` and exits with 1 if there is one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

OPENERS = {"What", "Whether", "How", "Of", "Those", "That", "Its", "Where", "Who", "As"}
"""Words that no docstring begins with: a noun phrase or an imperative does."""
WORDS = re.compile(
    r"\b(anew|mend(ed)?|in vain|but for|one's own|is no (score|problem|error)|is told|are told"
    r"|goes on from there|labels? 1s)\b|\d %"
)
"""Words of no page and no message."""


def opening_words(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and first word of every docstring, those of fields and constants included."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        is_owner = isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        )
        has_fields = isinstance(node, ast.Module | ast.ClassDef)
        for index, statement in enumerate(body):
            follows = index > 0 and isinstance(body[index - 1], ast.Assign | ast.AnnAssign)
            if (is_owner and index == 0) or (has_fields and follows):
                text = _constant(statement)
                if text and text.split():
                    yield statement.lineno, text.split()[0].strip("`,.:")


def _constant(statement: ast.stmt) -> str:
    value = statement.value if isinstance(statement, ast.Expr) else None
    is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return value.value if is_text else ""  # type: ignore[union-attr]


def findings(path: Path) -> Iterator[str]:
    """Yield the findings in a Python file or a page."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        for number, line in enumerate(text.splitlines(), 1):
            if (match := WORDS.search(line)) and not line.startswith("    "):
                yield f"{path}:{number}: {match[0]!r}"
        return
    tree = ast.parse(text)
    for line_number, word in opening_words(tree):
        if word in OPENERS:
            yield f"{path}:{line_number}: docstring begins with {word!r}"
    if path.parts[0] in ("tests", "benchmarks", ".ci"):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            match = WORDS.search(node.value)
            if match:
                yield f"{path}:{node.lineno}: {match[0]!r}"


def main() -> int:
    """Check every Python file and page of the repository."""
    made = {"build", "dist", "site", "demo-results"}
    folders = [path for path in Path().iterdir() if path.is_dir() and path.name not in made]
    kept = [path for path in folders if not path.name.startswith(".") or path.name == ".ci"]
    paths = [*Path().glob("*.py"), *Path().glob("*.md")]
    paths += [path for folder in kept for kind in ("*.py", "*.md") for path in folder.rglob(kind)]
    found = [line for path in sorted(paths) for line in findings(path)]
    print("\n".join(found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
