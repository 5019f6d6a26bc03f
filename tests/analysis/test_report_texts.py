"""Captions, replies and names that would be more than text: nothing of them runs or is lost."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from label_runs import judged_run
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task
from report_pages import TASKS, Open, html_of, parsed

PIECES = (
    "</script><script>document.title='taken'</script>", "<img src=x onerror=alert(1)>", "<!--",
    "-->", "]]>", "</style><style>body{display:none}</style>", "{{ 7 * 7 }}", "{% raw %}",
    "${alert(1)}", "javascript:alert(1)", "\u202e\u05d0\u05d1 right to left",
    "\u2066isolate\u2069", "\ud83d", "\udc00 half", "\u2028\u2029", "\x00\x01\x1b[31m",
    '=HYPERLINK("http://example.com")', "+1", "-1", "@SUM(A1)", "&lt;script&gt;", "&amp;#60;",
    "\"'`", "\\u003c/script\\u003e", "<svg onload=alert(1)>", "\ufeff", "__proto__",
    "constructor", "{name|text}", "a\tb\nc\rd", "\U0001f469\u200d\U0001f4bb", "NaN", "null",
    "<a href='http://example.com'>link</a>", "<iframe src='http://example.com'></iframe>", "\x07",
)  # fmt: skip
N = 500
LONG = "a long reply </script> " * 45_000
"""A text of 1 MB."""


def hostile_texts() -> list[str]:
    """Return different texts, as many as asked for."""
    rng = random.Random(0)
    return [" ".join(rng.sample(PIECES, rng.randrange(1, 6))) + f" {place}" for place in range(N)]


@pytest.fixture
def run(tmp_path: Path, offline: pytest.MonkeyPatch) -> Path:
    """A run whose sample logs are full of such texts, on a task of each benchmark."""
    texts = iter(hostile_texts() * 9)
    results = judged_run(tmp_path / "run", dict.fromkeys(TASKS, ["A circle."] * 12))
    for task in TASKS:
        (log,) = results.parent.glob(f"*_samples_{task}.jsonl")
        samples = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
        for sample in samples:
            sample["filtered_resps"] = [next(texts)]
            for judgement in sample[benchmark_of_task(task).headline]["judgements"]:
                for name in ("reply", "reason", "answer", "predicted_answer", "choice"):
                    if name == "reply" or name in judgement:
                        judgement[name] = next(texts)
        samples[0][benchmark_of_task(task).headline]["judgements"][0]["reply"] = LONG
        log.write_text("".join(f"{json.dumps(sample)}\n" for sample in samples), encoding="utf-8")
    return results


def test_every_text_comes_through_as_it_is(run: Path) -> None:
    """Captions, replies and answers are those of the log; halves of characters become one sign."""
    page = parsed(html_of(run.parent))
    n_compared = 0
    for task in TASKS:
        (log,) = run.parent.glob(f"*_samples_{task}.jsonl")
        samples = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
        shown = [row for row in page.questions() if row[0] == task]
        for sample, (_, _, captions, questions) in zip(samples, shown, strict=True):
            assert captions == [whole(sample["filtered_resps"][0])]
            for judgement in sample[benchmark_of_task(task).headline]["judgements"]:
                replies = [question.said[0][judgement["run"]]["reply"] for question in questions]
                assert whole(judgement["reply"]) in replies
                n_compared += 1
    assert n_compared >= N


def test_nothing_of_them_runs(run: Path, opened: Open) -> None:
    """Searched, opened and read: no script, no request, no other title, no broken page."""
    html = html_of(run.parent)
    page = opened(html)
    title = page.title()
    for task in TASKS:
        page.select_option("#view", label=task)
        page.fill("#search", "<script>")
        page.evaluate("searched.isRead")
        page.fill("#search", "")
        page.select_option("#sort", "name")
        page.locator("#video-table tr.row button").first.click()
        page.locator("tr.detail .question").first.wait_for()
        for summary in page.locator("tr.detail summary").all()[:12]:
            summary.click()
        page.locator("tr.detail .reply").first.wait_for()
    assert page.title() == title
    assert (
        page.evaluate("document.querySelectorAll('iframe, img:not([src^=\"data:\"]), svg').length")
        == 0
    )
    # One element of style, the library and the script; the others hold data.
    assert page.locator("style").count() == 1
    assert page.locator("script:not([type])").count() == 2
    assert page.locator("tr.detail .reply").first.inner_text().startswith("a long reply </script>")


def test_the_policy_lets_nothing_in() -> None:
    """No source but the page's own, by its hashes, and pictures within it."""
    template = Path(__file__).parents[2] / "analysis/report/page/page.html"
    (policy,) = re.findall(
        r'Content-Security-Policy" content="([^"]*)"', template.read_text("utf-8")
    )
    rules: dict[str, Any] = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data: blob:"
    known = "default-src img-src style-src script-src base-uri form-action"
    assert set(rules) == set(known.split())
    assert not any("unsafe" in rule or "http" in rule for rule in rules.values())
