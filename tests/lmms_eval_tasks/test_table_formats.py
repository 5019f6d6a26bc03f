"""Reports in every format, with names that others chose."""

from __future__ import annotations

import pytest

from lmms_eval_captions.lmms_eval_tasks.table_formats import RENDERERS, Part, Table

HOSTILE = "a\nb\x1b[2J\u202e\udcff\t| *c*"


@pytest.mark.parametrize("kind", RENDERERS)
def test_no_name_ends_a_line_or_moves_the_cursor(kind: str) -> None:
    """A line break in a name would end LaTeX's comment; other controls are for terminals."""
    table = Table([HOSTILE, HOSTILE], [[HOSTILE, HOSTILE]], title=HOSTILE)
    told = RENDERERS[kind]([Part(HOSTILE, [HOSTILE], [table], [HOSTILE])])
    assert all(line.isprintable() for line in told.split("\n"))
    assert not [line for line in told.split("\n") if line.startswith("b")]


def test_titles_are_wrapped_and_escaped_as_sentences_are() -> None:
    """Of many captioners a title has no room in a line; Markdown would read a star as its own."""
    title = " and ".join(["a_long_name_of_a_captioner"] * 9)
    told = RENDERERS["text"]([Part(title, tables=[Table(["a"], [["b"]], title=title)])])
    assert max(map(len, told.splitlines())) <= 100
    assert "### \\*c\\*" in RENDERERS["markdown"]([Part("*c*")])
