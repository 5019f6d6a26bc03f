"""How documents of the repository become pages of a site."""

from __future__ import annotations

from typing import Final

import pytest
from docs_site import for_site, linked_files, section, source_page

PLACES: Final = {
    "README.md": "index.md",
    "docs/judge.md": "judge.md",
    "docs/roads/student.md": "roads/student.md",
    "model_wrappers/README.md": "captioners.md",
    "judges/prices.yaml": "source/judges/prices.yaml.md",
}


@pytest.mark.parametrize(
    ("link", "document", "moved"),
    [
        pytest.param("docs/judge.md", "README.md", "judge.md", id="from-the-front"),
        pytest.param("../README.md#tasks", "docs/judge.md", "index.md#tasks", id="to-a-heading"),
        pytest.param("../judge.md", "docs/roads/student.md", "../judge.md", id="within-docs"),
        pytest.param(
            "../docs/roads/student.md", "model_wrappers/README.md", "roads/student.md", id="across"
        ),
        pytest.param("#doctor", "docs/judge.md", "#doctor", id="same-page"),
        pytest.param(
            "../judges/prices.yaml",
            "docs/judge.md",
            "source/judges/prices.yaml.md",
            id="a-file-that-is-no-document",
        ),
        pytest.param(
            "https://example.org/x.md", "README.md", "https://example.org/x.md", id="away"
        ),
        pytest.param("docs/report.png", "README.md", "report.png", id="a-picture"),
        pytest.param("../report.png", "docs/roads/student.md", "../report.png", id="from-a-road"),
        pytest.param("nowhere.md", "README.md", "nowhere.md", id="dead-so-that-mkdocs-says-so"),
    ],
)
def test_links_lead_to_the_place_on_the_site(link: str, document: str, moved: str) -> None:
    shown = for_site(f"See [it]({link}).", document, PLACES[document], PLACES)
    assert shown == f"See [it]({moved})."


def test_code_stays_as_it_is() -> None:
    """A program may hold what looks like a link or an include."""
    code = "````text\n```\n[a](README.md)\n<!-- include: x.md#y -->\n```\n````"
    assert for_site(code, "docs/judge.md", "judge.md", PLACES) == code


def test_a_section_ends_at_the_next_of_its_level() -> None:
    """Deeper headings and marks in code belong to it."""
    text = "# A\n## One thing\ntext\n### deep\n```\n## code\n```\n## Two\nmore"
    assert section(text, "one-thing") == "text\n### deep\n```\n## code\n```"
    assert section(text, "two") == "more"
    with pytest.raises(ValueError, match="'three', found none"):
        section(text, "three")


def test_an_included_section_brings_its_links_along() -> None:
    """They are read from where the section stands, and lead from where it is shown."""
    text = "<!-- include: ../ARCHITECTURE.md#a-benchmark -->"
    places = {"examples/caption_facts": "source/toy.md"}
    shown = for_site(text, "docs/add-a-benchmark.md", "deep/page.md", places)
    assert "](../source/toy.md)" in shown
    assert "Hooks, `estimate`" in shown


def test_files_that_are_linked_are_shown() -> None:
    """One file is a page, and a folder is one with all of its files."""
    assert "judges/protocols/prompts/vdc_vdd.yaml" in linked_files()
    assert "``````yaml\n" in source_page("judges/protocols/prompts/vdc_vdd.yaml")
    folder = source_page("examples/caption_facts")
    assert folder.count("\n## examples/caption_facts/") == 11
    assert "__pycache__" not in folder
