"""The page as one file of HTML, which loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lmms_eval_captions.analysis.web_page.embedding import source_hash

_PAGE: Final = Path(__file__).parent / "page"
_SCRIPTS: Final = ("data", "charts", "table", "details", "diff", "main")
"""Parts of the page's script, in their order."""
LIBRARY: Final = "echarts-6.1.0"
"""The chart library as it was published, Apache-2.0; its licence lies beside it."""


def render(context: Mapping[str, object], packs: Mapping[str, str]) -> str:
    """The page.

    Args:
        context: What the template shows, all of which is escaped.
        packs: Name of each element of data to what it holds; letters that end no element.
    """
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(
        loader=FileSystemLoader(_PAGE), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    # The template takes these files of ours, and the packs, as they are; all else is escaped.
    style = _read("page.css")
    script = "\n".join(_read(f"{name}.js") for name in _SCRIPTS)
    library = _read(f"vendor/{LIBRARY}/echarts.min.js")
    return environment.get_template("page.html").render(
        **context,
        packs=packs,
        style=style,
        script=script,
        library=library,
        style_hash=source_hash(style),
        script_hash=source_hash(script),
        library_hash=source_hash(library),
    )


def _read(name: str) -> str:
    return _PAGE.joinpath(name).read_text("utf-8")
