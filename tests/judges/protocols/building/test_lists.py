"""Lists of questions: what was written whole is read, and what cannot be read is told why."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import SHARED
from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.protocols.building.lists import (
    Fault,
    Written,
    fault_of,
    read_items,
    read_pairs,
)

QUIZ = ("category", "question", "options", "answer")
ASKED = [
    {"category": "Entity", "question": f"What is {n}?", "options": list("abcde"), "answer": "a"}
    for n in range(10)
]
LETTERED = {"A": "a", "B": "b", "C": "c", "D": "d", "E": "e"}
PAIR = {"question": "Who?", "answer": "A man"}


def _quiz(text: str, finish_reason: str = "stop") -> Written | None:
    return read_items(Reply(text, finish_reason), QUIZ, most=100)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps(ASKED), id="as-asked"),
        pytest.param(json.dumps(ASKED, indent=2), id="indented"),
        pytest.param(str(ASKED), id="python"),
        pytest.param(f"Here you go:\n```json\n{json.dumps(ASKED)}\n```\nEnjoy!", id="fenced"),
        pytest.param("\n".join(map(json.dumps, ASKED)), id="one-per-line"),
        pytest.param(json.dumps({"qa_pairs": ASKED}), id="in-an-object"),
        pytest.param(json.dumps({"x": {"y": ASKED}, "n": 10}), id="in-objects"),
        pytest.param(f"<think>[{json.dumps(PAIR)}]</think>{json.dumps(ASKED)}", id="reasoning"),
        pytest.param(json.dumps(ASKED).replace('"question"', '"Question "'), id="keys-in-any-case"),
        pytest.param(json.dumps(ASKED).replace("}]", "},]"), id="trailing-comma"),
        pytest.param(json.dumps([{**item, "why": "x"} for item in ASKED]), id="a-key-more"),
        pytest.param(
            json.dumps([{**item, "options": LETTERED} for item in ASKED]),
            id="options-by-letter",
        ),
    ],
)
def test_a_list_is_read_in_whatever_form(text: str) -> None:
    """All of its items, in order, with the asked keys alone."""
    assert _quiz(text) == Written(tuple(ASKED), n_wrong_keys=0, n_repeated=0, is_cut=False)


@pytest.mark.parametrize("finish_reason", ["length", "stop"])
def test_what_was_written_before_a_cut_is_read(finish_reason: str) -> None:
    """The item that the cut is in is left out, and the cut is told."""
    text = json.dumps(ASKED)
    written = _quiz(text[: text.index("What is 7?")], finish_reason)
    assert written == Written(tuple(ASKED[:7]), n_wrong_keys=0, n_repeated=0, is_cut=True)


def test_a_reply_that_the_server_cut_between_items_is_cut() -> None:
    """Its last bracket may be missing, or more items."""
    text = ", ".join(map(json.dumps, ASKED))
    assert _quiz(text, "length") == Written(tuple(ASKED), 0, 0, is_cut=True)
    assert _quiz(text, "stop") == Written(tuple(ASKED), 0, 0, is_cut=False)


@pytest.mark.parametrize(
    "item",
    [
        pytest.param({"category": "Entity", "question": "What?", "options": ["a"]}, id="missing"),
        pytest.param({**ASKED[0], "question": " "}, id="empty"),
        pytest.param({**ASKED[0], "question": "..."}, id="left-out"),
        pytest.param({**ASKED[0], "answer": None}, id="null"),
        pytest.param({**ASKED[0], "answer": ["a", "b"]}, id="list"),
        pytest.param({**ASKED[0], "answer": {"text": "a"}}, id="object"),
        pytest.param({**ASKED[0], "options": "a, b, c"}, id="options-as-text"),
        pytest.param({**ASKED[0], "options": [["a"], "b"]}, id="options-of-lists"),
        pytest.param({**ASKED[0], "options": []}, id="no-options"),
        pytest.param({"title": "Entity"}, id="other-keys"),
    ],
)
def test_items_without_the_keys_are_counted(item: dict[str, object]) -> None:
    """They cost themselves alone; a reply of nothing else cannot be read."""
    written = _quiz(json.dumps([*ASKED, item]))
    assert written == Written(tuple(ASKED), n_wrong_keys=1, n_repeated=0, is_cut=False)
    assert _quiz(json.dumps([item])) is None
    assert fault_of(json.dumps([item]), QUIZ, most=100) == "wrong keys"


def test_six_options_are_read_as_they_are() -> None:
    """Whether a question has the right form is not for the reader to say."""
    written = _quiz(json.dumps([{**ASKED[0], "options": list("abcdef")}]))
    assert written is not None
    assert written.items[0]["options"] == list("abcdef")


def test_values_are_texts() -> None:
    """A number is its text, true and false are yes and no; blanks stay within and not around."""
    item = {"question": "  How  many?\n", "answer": 3}
    written = read_pairs(Reply(json.dumps([item, {**item, "answer": True}]), "stop"), most=9)
    assert written is not None
    assert written.items == (
        {"question": "How  many?", "answer": "3"},
        {"question": "How  many?", "answer": "yes"},
    )
    options = read_items(Reply('{"options": [1, 2.5, " a "]}', "stop"), ["options"], most=1)
    assert options is not None
    assert options.items == ({"options": ["1", "2.5", "a"]},)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("", "empty", id="empty"),
        pytest.param(" \n", "empty", id="blank"),
        pytest.param("<think>[...]", "empty", id="reasoning-alone"),
        pytest.param("I am sorry, I cannot see any video.", "no JSON", id="refusal"),
        pytest.param("1. What is it? [A] a [B] b", "no JSON", id="list-of-lines"),
        pytest.param('[{"category": "Entity", "question": "Wh', "unreadable", id="cut-early"),
        pytest.param("[{category, question, options, answer}]", "unreadable", id="form"),
        pytest.param(json.dumps([PAIR] * 3), "wrong keys", id="other-keys"),
        pytest.param("{}", "wrong keys", id="empty-object"),
        pytest.param(
            json.dumps([{**ASKED[0], "question": f"What is {n}?"} for n in range(2_000)]),
            "too many",
            id="2000-questions",
        ),
        pytest.param(json.dumps(ASKED[:1] * 700), "repeats itself", id="loop"),
        pytest.param(json.dumps(ASKED[:1] * 700)[:-40], "repeats itself", id="loop-until-cut"),
        pytest.param(
            json.dumps([*ASKED[:3], *({**ASKED[0], "category": f"c{n}"} for n in range(3))]),
            "repeats itself",
            id="half-of-six",
        ),
        pytest.param("[" * 1_000, "no JSON", id="brackets"),
    ],
)
def test_a_reply_that_cannot_be_read_is_told_why(text: str, fault: Fault) -> None:
    """It costs that reply alone, and is counted by this reason."""
    assert _quiz(text) is None
    assert _quiz(text, "length") is None
    assert fault_of(text, QUIZ, most=100) == fault


def test_as_many_items_as_are_allowed_are_read() -> None:
    """One more are too many."""
    text = json.dumps(ASKED)
    assert read_items(Reply(text, "stop"), QUIZ, most=10) is not None
    assert read_items(Reply(text, "stop"), QUIZ, most=9) is None
    assert fault_of(text, QUIZ, most=9) == "too many"


def test_some_repetition_is_read_and_counted() -> None:
    """Below a half; of fewer than six items any share. Case and blanks make no other item."""
    again = {**ASKED[0], "question": "what  is 0?"}
    written = _quiz(json.dumps([*ASKED[:4], again, again]))
    assert written == Written((*ASKED[:4], again, again), 0, 2, is_cut=False)
    few = _quiz(json.dumps([ASKED[0], again, again]))
    assert few is not None
    assert few.n_repeated == 2
    other = _quiz(json.dumps([*ASKED[:4], {**ASKED[0], "answer": "b"}]))
    assert other is not None
    assert other.n_repeated == 0


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[('Who?', 'A man'), ('What?', 'It\\'s a car')]", id="tuples"),
        pytest.param('```python\n[("Who?", "A man"),\n("What?", "It\'s a car")]\n```', id="fenced"),
        pytest.param(
            '[{"question": "Who?", "answer": "A man", '
            '"question": "What?", "answer": "It\'s a car"}]',
            id="one-object",
        ),
        pytest.param(
            "[{'question': 'Who?', 'answer': 'A man'}, "
            "{'question': 'What?', 'answer': 'It's a car'}]",
            id="quotes",
        ),
    ],
)
def test_pairs_are_read_in_the_forms_of_appendix_l(text: str) -> None:
    """As AuroraCap's prompt asks for them, and as its reply is printed."""
    written = read_pairs(Reply(text, "stop"), most=20)
    pairs = (PAIR, {"question": "What?", "answer": "It's a car"})
    assert written == Written(pairs, n_wrong_keys=0, n_repeated=0, is_cut=False)


def test_the_reply_that_the_paper_prints_is_read() -> None:
    """All six pairs of appendix L's example, although its end is left out."""
    path = SHARED / "papers" / "004_dec2e5a25833334d.txt"
    if not path.is_file():
        pytest.skip(f"no text of the paper at {path}")
    paper = path.read_text(encoding="utf-8")
    start = paper.index('[{"question": "What is the style of camera work')
    written = read_pairs(Reply(paper[start : paper.index("\n", start)], "stop"), most=20)
    assert written is not None
    assert [item["answer"] for item in written.items] == [
        "dynamic",
        "realism and immersion",
        "smooth",
        "through low light",
        "following the subject’s movements",
        "sense of realism and immersion",
    ]
    assert (written.n_wrong_keys, written.is_cut) == (0, False)


_TEXTS = st.text(st.characters(exclude_characters="{}[]()<"), min_size=1, max_size=12)
_ITEMS = st.lists(st.fixed_dictionaries({"question": _TEXTS, "answer": _TEXTS}), max_size=5)


@given(_ITEMS, st.integers(0, 400))
def test_a_cut_list_never_says_anything_else(items: list[dict[str, str]], length: int) -> None:
    """What is read from the beginning of a reply is the beginning of what is read from it."""
    text = json.dumps(items)
    whole, part = (read_pairs(Reply(t, "length"), most=20) for t in (text, text[:length]))
    if part is not None:
        assert whole is not None
        assert part.items == whole.items[: len(part.items)]
