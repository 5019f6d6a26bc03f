"""The table of who judged the published numbers: in the code, and on its page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks

ROOT = Path(__file__).resolve().parents[4]
PAPERS = ROOT.parent / "shared" / "papers"
FILES = {
    "AuroraCap": "004_dec2e5a25833334d.txt",
    "VidCapBench": "000_278cce88e5c9a5a7.txt",
    "VCapsBench": "001_bc8512359d09c059.txt",
    "CapQuiz": "003_b7038d4830a5474f.txt",
    "G-VEval": "002_12c73a71e1c9a3b4.txt",
}
PUBLISHED = {
    name: benchmark.verification.published
    for name, benchmark in all_benchmarks().items()
    if benchmark.verification is not None
}
ROWS = [row for rows in PUBLISHED.values() for row in rows]


def test_the_page_has_every_row() -> None:
    """Numbers, judge and source, word for word."""
    page = (ROOT / "docs" / "published-judges.md").read_text(encoding="utf-8")
    rows = [
        tuple(cells) for cells in re.findall(r"^\| (.*) \| (.*) \| (.*) \| (.*) \|$", page, re.M)
    ]
    assert [cells[1:] for cells in rows[1:]] == [
        (row.numbers, row.judge, row.source) for row in ROWS
    ]


def test_every_benchmark_with_anchors_has_a_row() -> None:
    """And each row says where it is from."""
    assert all(PUBLISHED.values())
    assert all(row.numbers and row.judge and row.source for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.numbers)
def test_what_is_quoted_of_a_paper_stands_in_it(row: object) -> None:
    """Up to white space; quotes of other pages are not looked up."""
    source = str(getattr(row, "source", ""))
    name = next((name for name in FILES if source.startswith(name)), None)
    if name is None:
        pytest.skip("the source is no paper")
    if not PAPERS.is_dir():
        pytest.skip(f"no papers at {PAPERS}")
    plain = re.sub(r"\W+", " ", (PAPERS / FILES[name]).read_text(encoding="utf-8")).lower()
    for quote in re.findall(r'"([^"]+)"', source):
        assert re.sub(r"\W+", " ", quote).strip().lower() in plain, quote
