"""The dictionary of CapQuiz's figure 5 is read, and nothing that is none."""

from __future__ import annotations

import pytest

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.protocols.building.domains import domains_in, read_domains
from lmms_eval_captions.judges.protocols.prompt_folder import Prompts
from lmms_eval_captions.lmms_eval_tasks.capquiz.data import DOMAINS

KNOWN = [name for names in DOMAINS.values() for name in names]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('{"Sports": 0.2, "Game": 0.7}', [("Game", 0.7), ("Sports", 0.2)], id="json"),
        pytest.param("{'Sports': 1, 'Game': 0}", [("Sports", 1.0), ("Game", 0.0)], id="python"),
        pytest.param('```json\n{"sports": "0.9"}\n```', [("Sports", 0.9)], id="fence-case-text"),
        pytest.param(
            '{"Buyer’s  guide": 0.5, "others": 0.5}',
            [("Buyer's Guide", 0.5), ("Others", 0.5)],
            id="apostrophe",
        ),
        pytest.param(
            '{"News": 0.1, "Others": 0.9, "Sports": 0.3, "Game": 0.2}',
            [("Others", 0.9), ("Sports", 0.3), ("Game", 0.2), ("News", 0.1)],
            id="three-and-others",
        ),
        pytest.param('{"News": 0.5} So: {"News": 0.5}', [("News", 0.5)], id="restated"),
        pytest.param(
            'As {"subcategory1": probability1, ...}: {"News": 1.0}', [("News", 1.0)], id="form"
        ),
        pytest.param('{"News": 0.5} {"News": 0.6}', None, id="two-answers"),
        pytest.param('{"News": 0.1, "Sports": 0.1, "Game": 0.1, "Cooking": 0.1}', None, id="four"),
        pytest.param('{"Weather": 0.9}', None, id="unknown"),
        pytest.param('{"News": 0.9, "Weather": 0.1}', None, id="one-unknown"),
        pytest.param('{"News": 1.2}', None, id="above-the-scale"),
        pytest.param('{"News": -0.1}', None, id="below-the-scale"),
        pytest.param('{"News": 80%}', None, id="percent"),
        pytest.param('{"News": "high"}', None, id="word"),
        pytest.param('{"News": true}', None, id="true"),
        pytest.param('{"News": 0.5, "news": 0.4}', None, id="twice"),
        pytest.param('{"News": 0.5', None, id="cut"),
        pytest.param("{}", None, id="empty-object"),
        pytest.param("News: 0.9", None, id="no-json"),
        pytest.param("", None, id="empty"),
    ],
)
def test_domains_are_known_names_with_probabilities(
    text: str, expected: list[tuple[str, float]] | None
) -> None:
    """In the taxonomy's own spelling, the likeliest first; anything else is unreadable."""
    read = read_domains(Reply(text, "stop"), KNOWN)
    assert (None if read is None else list(read.items())) == expected


def test_the_prompt_lists_the_taxonomy_of_the_benchmark() -> None:
    """The 5 domains and 24 subcategories by which CapQuiz's scores are broken down."""
    [message] = Prompts().messages("build_capquiz_domain")
    assert domains_in(message["content"]) == DOMAINS
    assert len(KNOWN) == 24


def test_a_text_without_headings_lists_none() -> None:
    """A prompt of one's own may say anything."""
    assert domains_in("- **News**: Reports.") == {}
