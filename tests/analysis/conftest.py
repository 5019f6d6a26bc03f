"""Fixtures of pages: the sample, the offline judge, a headless browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page as BrowserPage
from playwright.sync_api import sync_playwright

from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from priorities import be_scheduled_as_usual
from report_pages import Open

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in sample, rendered once."""
    return sample_root(tmp_path_factory.mktemp("sample"))


@pytest.fixture
def offline(bench: pytest.MonkeyPatch, sample: Path) -> pytest.MonkeyPatch:
    """The sample's data and the offline judge, in two runs."""
    bench.setenv("LMMS_CAPTIONS_DATA", str(sample))
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    bench.setenv("LMMS_CAPTIONS_JUDGE_RUNS", "2")
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "1")
    return bench


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless browser that is installed. It may not outlive a module: it runs an event loop."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium or chrome on this machine")
    # A library may have raised this process's priority to a real-time one, which the browser would
    # inherit: see tests/conftest.py.
    be_scheduled_as_usual()
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a page, ready to be used; no error of its own and no request may come of it."""
    trouble: list[str] = []
    asked: list[str] = []
    contexts: list[Any] = []

    def open_page(html: str, **context: Any) -> BrowserPage:
        path = tmp_path / f"report-{len(contexts)}.html"
        path.write_text(html, encoding="utf-8")
        contexts.append(browser.new_context(**context))
        page: BrowserPage = contexts[-1].new_page()
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.on("console", lambda message: trouble.append(f"console: {message.text}"))
        page.on("request", lambda request: asked.append(request.url))
        page.on("dialog", lambda dialog: trouble.append(f"dialog: {dialog.message}"))
        page.goto(path.as_uri())
        if context.get("java_script_enabled", True):
            page.evaluate("report.ready")
        return page

    yield open_page
    for context in contexts:
        context.close()
    own = (tmp_path.as_uri(), "data:", "blob:")
    assert trouble + [url for url in asked if not url.startswith(own)] == []
