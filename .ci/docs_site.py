"""Makes one site of documents that lie all over the repository, for ``make docs`` (mkdocs.yml).

Documents link to each other as files of the repository, so that the links work on a code host. Here
each document gets its place on the site, and the links are written anew. A comment in a document,

    <!-- include: ../ARCHITECTURE.md#a-benchmark -->

stands for a section of another one: the site shows its text, a code host nothing, so that a link
stands beside it. A file that is linked and is no document gets a page that shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from posixpath import dirname, normpath, relpath
from typing import TYPE_CHECKING, Final

from docs_messages import messages_page

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parents[1]
PLACES: Final[Mapping[str, str]] = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "model_wrappers/README.md": "captioners.md",
}
"""Document of the repository to its place on the site; those of ``docs/`` stay where they are."""
_LINK: Final = re.compile(r"(?<=\]\()(?P<target>[^)\s]+)(?=\))")
_INCLUDE: Final = re.compile(r"^<!-- include: (?P<file>[^#\s]+)#(?P<anchor>\S+) -->$")
_FENCE: Final = re.compile(r"^\s*(`{3,}|~{3,})")
_HEADING: Final = re.compile(r"^(?P<marks>#+) (?P<text>.+)$")
_PICTURES: Final = (".png", ".svg")
"""Endings of files of ``docs/`` that a page shows, and that mkdocs takes as they are."""
_LANGUAGES: Final = {".py": "python", ".yaml": "yaml", ".json": "json", ".sh": "bash"}


def documents(root: Path = ROOT) -> dict[str, str]:
    """Every document of the repository that is a page, and its place on the site."""
    own = {f"docs/{path}": path for path in _below(root / "docs") if path.endswith(".md")}
    tasks = {
        path.relative_to(root).as_posix(): f"benchmarks/{path.parent.name}.md"
        for path in sorted((root / "lmms_eval_tasks").glob("*/README.md"))
    }
    return {**PLACES, **tasks, **own}


def section(text: str, anchor: str) -> str:
    """Return the text below a heading, up to the next one of its level.

    Raises:
        ValueError: If there is no such heading.
    """
    taken: list[str] = []
    level = 0
    for line, is_code in _lines(text):
        heading = None if is_code else _HEADING.match(line)
        if level and heading and len(heading["marks"]) <= level:
            break
        if level:
            taken.append(line)
        elif heading and anchor_of(heading["text"]) == anchor:
            level = len(heading["marks"])
    if not level:
        raise ValueError(f"expected a heading whose anchor is {anchor!r}, found none")
    return "\n".join(taken).strip("\n")


def anchor_of(heading: str) -> str:
    """A heading's anchor, as code hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.casefold()).replace(" ", "-")


def for_site(text: str, origin: str, page: str, places: Mapping[str, str]) -> str:
    """A document's text as the site shows it.

    Args:
        text: Markdown.
        origin: Path of the document that it stands in, from the repository's root.
        page: Place on the site where it is shown.
        places: Places of all documents and linked files.
    """
    shown = []
    for line, is_code in _lines(text):
        include = None if is_code else _INCLUDE.match(line)
        if include:
            file = normpath(f"{dirname(origin)}/{include['file']}".lstrip("/"))
            part = section((ROOT / file).read_text(encoding="utf-8"), include["anchor"])
            shown.append(for_site(part, file, page, places))
        elif is_code:
            shown.append(line)
        else:
            shown.append(_LINK.sub(lambda found: _moved(found[0], origin, page, places), line))
    return "\n".join(shown)


def linked_files(root: Path = ROOT) -> dict[str, str]:
    """Files and folders that documents link to and that are no documents, with their places."""
    known, found = documents(root), set[str]()
    for document in known:
        text = (root / document).read_text(encoding="utf-8")
        for line, is_code in _lines(text):
            targets = () if is_code else (match[0] for match in _LINK.finditer(line))
            found.update(_file(target, document) for target in targets if not _is_away(target))
    files = sorted(path for path in found - set(known) if not path.endswith(_PICTURES))
    return {path: f"source/{path}.md" for path in files}


def source_page(path: str, root: Path = ROOT) -> str:
    """A page that shows a file, or all files of a folder."""
    whole = root / path
    files = [path] if whole.is_file() else [f"{path}/{name}" for name in _below(whole)]
    parts = [f"# {path}"]
    for file in files:
        language = _LANGUAGES.get(PurePosixPath(file).suffix, "text")
        text = (root / file).read_text(encoding="utf-8").rstrip("\n")
        heading = [] if file == path else [f"## {file}"]
        parts += [*heading, f"``````{language}\n{text}\n``````"]
    return "\n\n".join(parts) + "\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not lie in ``docs/``; a hook of mkdocs."""
    from mkdocs.structure.files import File

    for document, place in documents().items():
        if not document.startswith("docs/"):
            text = (ROOT / document).read_text(encoding="utf-8")
            files.append(File.generated(config, place, content=text))
    for path, place in linked_files().items():
        files.append(File.generated(config, place, content=source_page(path)))
    files.append(File.generated(config, "messages.md", content=messages_page(ROOT)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Write a page's links anew; a hook of mkdocs."""
    origins = {place: document for document, place in documents().items()}
    place = page.file.src_uri
    if place not in origins:
        return markdown
    return for_site(markdown, origins[place], place, {**documents(), **linked_files()})


def _moved(target: str, origin: str, page: str, places: Mapping[str, str]) -> str:
    """A link's target on the site."""
    if _is_away(target):
        return target
    anchor = target.partition("#")[2]
    file = _file(target, origin)
    is_picture = file.startswith("docs/") and file.endswith(_PICTURES)
    place = file.removeprefix("docs/") if is_picture else places.get(file)
    if place is None:
        return target  # mkdocs says that it leads nowhere
    moved = "" if place == page else relpath(place, dirname(page) or ".")
    return f"{moved}#{anchor}" if anchor else moved or PurePosixPath(place).name


def _file(target: str, origin: str) -> str:
    """Return the target of a link, relative to the repository's root."""
    name = target.partition("#")[0]
    return normpath(f"{dirname(origin)}/{name}".lstrip("/")) if name else origin


def _is_away(target: str) -> bool:
    return re.match(r"[a-z]+:", target) is not None


def _below(folder: Path) -> Iterable[str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [
        path.relative_to(folder).as_posix() for path in files if "__pycache__" not in path.parts
    ]


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is code."""
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        is_code = bool(fence) or mark is not None
        if mark and not fence:
            fence = mark[1]
        elif mark and line.strip() == fence:
            fence = ""
        yield line, is_code
