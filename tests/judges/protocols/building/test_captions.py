"""Five captions are read from a dictionary, or from the labels that the paper's reply has."""

from __future__ import annotations

import json

import pytest

from conftest import SHARED
from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.protocols.building.captions import NAMES, read_captions

TEXTS = {
    "short": "A dog runs.",
    "background": "A beach, early in the morning.",
    "main_object": 'It\'s a brown dog: small, "fluffy".',
    "camera": "The camera pans. It then stands still.",
    "reference": "A brown dog runs.\n\nIt stops at the water.",
}
LABELS = {name: name.replace("_", " ").title() + " Caption" for name in NAMES}
LABELLED = "\n".join(f"{LABELS[name]}: {text}" for name, text in TEXTS.items())


def _dictionary(ending: str = " caption") -> dict[str, str]:
    return {name.replace("_", " ") + ending: text for name, text in TEXTS.items()}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(str(_dictionary()), id="python"),
        pytest.param(json.dumps(_dictionary()), id="json"),
        pytest.param(f"```python\n{_dictionary()}\n```", id="fenced"),
        pytest.param(json.dumps(_dictionary("")), id="without-caption"),
        pytest.param(json.dumps({LABELS[name]: text for name, text in TEXTS.items()}), id="title"),
        pytest.param(json.dumps({f"{name}_caption": TEXTS[name] for name in NAMES}), id="snake"),
        pytest.param(json.dumps({**_dictionary(), "title": "x"}), id="one-more"),
        pytest.param("captions = {\n" + str(_dictionary())[1:], id="assigned"),
        pytest.param(LABELLED, id="labels"),
        pytest.param(LABELLED.replace("\n", "\n\n"), id="blank-lines"),
        pytest.param(
            "Sure!\n" + "\n".join(f"**{LABELS[n]}:** {t}" for n, t in TEXTS.items()), id="bold"
        ),
        pytest.param(
            "\n".join(f"{i}. {LABELS[n]}: {TEXTS[n]}" for i, n in enumerate(NAMES, 1)), id="numbers"
        ),
        pytest.param(LABELLED.replace("morning.\nMain", "morning. Main"), id="within-a-line"),
    ],
)
def test_captions_are_read_by_their_names(text: str) -> None:
    """Keys and labels in any case, with or without the word caption."""
    read = read_captions(Reply(text, "stop"))
    assert read is not None
    assert tuple(read) == NAMES
    blanks = {name: " ".join(caption.split()) for name, caption in read.items()}
    assert blanks == {name: " ".join(caption.split()) for name, caption in TEXTS.items()}


@pytest.mark.parametrize(
    ("text", "finish_reason"),
    [
        pytest.param(str(_dictionary())[:-20], "length", id="cut-dictionary"),
        pytest.param(LABELLED[:-10], "length", id="cut-labels"),
        pytest.param(str({**_dictionary(), "camera caption": ""}), "stop", id="empty-caption"),
        pytest.param(str({**_dictionary(), "camera caption": ["a"]}), "stop", id="list"),
        pytest.param(str(_dictionary()) * 2, "stop", id="twice"),
        pytest.param(json.dumps({**_dictionary(), "Camera": "x"}), "stop", id="one-caption-twice"),
        pytest.param(LABELLED.replace("Camera Caption: ", ""), "stop", id="missing-label"),
        pytest.param(LABELLED + "\nCamera Caption: It pans.", "stop", id="label-twice"),
        pytest.param("I cannot see the video.", "stop", id="refusal"),
        pytest.param("", "stop", id="empty"),
    ],
)
def test_less_than_five_captions_are_none(text: str, finish_reason: str) -> None:
    """A video whose captions are half is asked about again."""
    assert read_captions(Reply(text, finish_reason)) is None


def test_the_reply_that_the_paper_prints_is_read() -> None:
    """Two of its labels stand within a paragraph."""
    path = SHARED / "papers" / "004_dec2e5a25833334d.txt"
    if not path.is_file():
        pytest.skip(f"no text of the paper at {path}")
    paper = path.read_text(encoding="utf-8")
    start = paper.index("Short Caption: In a sunny outdoor setting")
    reply = paper[start : paper.index("- User** The video has been describe")]
    read = read_captions(Reply(reply, "stop"))
    assert read is not None
    assert read["short"].endswith("showcasing teamwork and focus.")
    assert read["camera"].startswith("The camera captures the scene from a low angle")
    assert read["camera"].endswith("more immersive.")
    assert read["background"].startswith("The scene is set in a residential area")
    assert read["main_object"].endswith("next steps in their project.")
    assert read["reference"] == "The video unfolds ... (300 words) ... through them."
