"""What tests of the report share: a page that is opened in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page as BrowserPage

from report_pages import Open


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a page, ready to be used; no error of its own and no request may come of it."""
    trouble: list[str] = []
    contexts: list[Any] = []

    def open_page(html: str, **context: Any) -> BrowserPage:
        path = tmp_path / f"report-{len(contexts)}.html"
        path.write_text(html, encoding="utf-8")
        contexts.append(browser.new_context(**context))
        page: BrowserPage = contexts[-1].new_page()
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.on("console", lambda message: trouble.append(f"console: {message.text}"))
        page.on(
            "request",
            lambda request: (
                trouble.append(request.url)
                if not request.url.startswith((path.as_uri(), "data:", "blob:"))
                else None
            ),
        )
        page.on("dialog", lambda dialog: trouble.append(f"dialog: {dialog.message}"))
        page.goto(path.as_uri())
        if context.get("java_script_enabled", True):
            page.evaluate("report.ready")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert trouble == []
