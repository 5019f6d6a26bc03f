"""Hook of mkdocs: link the report page to the report of the sample that ``make docs`` adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.structure.pages import Page

_LINK = '\n<a href="sample-report.html">Open the report of the built-in sample</a>\n\n## '


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Add the link before the page's first section."""
    return markdown.replace("\n## ", _LINK, 1) if page.file.src_uri == "report.md" else markdown
