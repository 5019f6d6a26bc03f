"""README.md and ARCHITECTURE.md speak of what is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
DOCUMENTS: Final = ("README.md", "ARCHITECTURE.md", "SECURITY.md", "model_wrappers/README.md")
ROOMS: Final = ("judges", "lmms_eval_tasks", "metrics", "model_wrappers")
SHOWN_AS_EXAMPLE: Final = ("mybench", "caption_mine.py", "my-prompts")
"""What a document makes up."""


def _text(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def _anchors(document: Path) -> set[str]:
    """Anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.casefold()) for heading in headings)
    return {heading.replace(" ", "-") for heading in kept}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    """Each link to a file or a heading has its end."""
    for target in re.findall(r"\]\(([^)\s]+)\)", _text(document)):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        path = (ROOT / document).parent / name if name else ROOT / document
        assert path.exists(), target
        assert not anchor or anchor in _anchors(path), target


@pytest.mark.parametrize("document", ["README.md", "ARCHITECTURE.md"])
def test_paths_that_are_named_are_there(document: str) -> None:
    """Each is a path of the repository, or the end of one where its folder was named before."""
    listed = [
        path for folder in (*ROOMS, "benchmarks", "tests") for path in (ROOT / folder).rglob("*")
    ]
    ends = tuple(f"/{path.relative_to(ROOT).as_posix()}" for path in listed)
    words = re.findall(r"`([\w.\-/]+)`", _text(document))
    paths = [word for word in words if re.search(r"^(\w+/)+|\.(py|yaml|toml)$", word)]
    named = [path for path in paths if not any(mark in path for mark in SHOWN_AS_EXAMPLE)]
    assert len(named) > 5
    for path in named:
        exists = (ROOT / path).exists() or any(end.endswith(f"/{path.strip('/')}") for end in ends)
        assert exists, path


def test_every_folder_is_a_room_of_the_architecture() -> None:
    """A newcomer finds each folder of modules, and of tests that are no mirror, in the table."""
    text = _text("ARCHITECTURE.md")
    inits = [path for room in ROOMS for path in (ROOT / room).rglob("__init__.py")]
    folders = {path.parent.relative_to(ROOT).as_posix() for path in inits}
    folders -= {"lmms_eval_tasks/commands/estimate", "lmms_eval_tasks/commands/meta_eval"}
    assert len(folders) > 20
    assert [folder for folder in sorted(folders) if f"`{folder}/`" not in text] == []


def test_the_steps_for_a_new_benchmark_are_the_lines_that_are_there() -> None:
    """The registration and the independence line have the form of their neighbours."""
    text = _text("ARCHITECTURE.md")
    for file, neighbour in (
        ("lmms_eval_tasks/registry.py", '"capquiz": f"{_HERE}.capquiz.benchmark.CAPQUIZ",'),
        ("pyproject.toml", '"lmms_eval_captions.lmms_eval_tasks.capquiz",'),
    ):
        assert neighbour in _text(file)
        line = neighbour.replace("capquiz", "mybench").replace("CAPQUIZ", "MYBENCH")
        assert f"`{line}`" in text
