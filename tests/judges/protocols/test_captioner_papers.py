"""Readers of lists and objects: replies that are hard to read, and others that must not be."""

from __future__ import annotations

import pytest

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.protocols.caption_qa import UNKNOWN, read_option
from lmms_eval_captions.judges.protocols.caption_rating import read_ratings
from lmms_eval_captions.judges.protocols.events import read_events, read_relations
from lmms_eval_captions.judges.protocols.missed_events import collapse_repetitions, read_errors

TWO = ("entailment", "contradiction")
REST = '"audio": 2, "details": 3'
TEN = '["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('["entailment", "contradiction"]', TWO),
        ('```json\n["entailment", "contradiction"]\n```', TWO),
        ("['entailment', 'contradiction']", TWO),
        ('["Entailment.", "contradicts"]', TWO),
        ('{"labels are": 2, "relations": ["entailment", "contradiction"]}', TWO),
        ('[{"event": 1, "label": "entailment"}, {"event": 2, "label": "contradiction"}]', TWO),
        ('<think>["neutral", "neutral"]</think>["entailment", "contradiction"]', TWO),
        ('The labels are ["entailment", "contradiction"], as asked.', TWO),
        ('["entailment"]', None),
        ('["entailment", "contradiction", "neutral"]', None),
        ('["entailment", "maybe"]', None),
        ('["entailment", null]', None),
        ('["entailment", ["contradiction"]]', None),
        ('["entailment", "contradiction"] or ["neutral", "contradiction"]', None),
        ("entailment, contradiction", None),
        ("", None),
        ('I think [reference] says so.\n["entailment", "contradiction"]', TWO),
        ('["entailment", "contradiction"]\n["entailment", "contradiction"]', TWO),
        ("[\"entailment\", \"neutral\"]\nWait: ['entailment', 'contradiction']", None),
        ('["entailment", "contradiction"]; on reflection the second is neutral', None),
        ('["entailment", "contradiction"] or [neutral, neutral]', None),
        ('For example ["entailment", "contradiction"]', None),
        ('[{"label": "entailment", "relation": "neutral"}, {"label": "contradiction"}]', None),
    ],
)
def test_relations(text: str, expected: tuple[str, ...] | None) -> None:
    assert read_relations(Reply(text, "stop"), 2) == expected


def test_a_list_that_was_cut_is_not_read() -> None:
    assert read_relations(Reply('["entailment", "neutral"', "length"), 2) is None
    assert read_events(Reply('["a man runs", "he fa', "length")) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('["a man runs"]', ("a man runs",)),
        ('{"events": ["a man runs"]}', ("a man runs",)),
        ("['a man\\'s dog runs', \"it's gone\"]", ("a man's dog runs", "it's gone")),
        ("[]", ()),
        ('Events:\n["a man runs",]', ("a man runs",)),
        (TEN, tuple("abcdefghij")),
        (f"[{', '.join(['1'] * 3)}]", None),
        ('["a man runs", ""]', None),
        ('["a man runs", {"event": "he falls"}]', None),
        (f"[{', '.join(f'{chr(34)}e{n}{chr(34)}' for n in range(41))}]", None),
        ("1. a man runs\n2. he falls", None),
        ("I cannot do that [sorry]", None),
        ("No events in [caption].", None),
        ("['a man's dog runs', 'b']", None),
    ],
)
def test_events(text: str, expected: tuple[str, ...] | None) -> None:
    assert read_events(Reply(text, "stop")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"missed": ["a"], "incorrect": [], "hallucinated": ["b", "c"]}', (1, 0, 2)),
        ('{"missed": 1, "incorrect": 0, "hallucinated": 2}', (1, 0, 2)),
        ('{"missed": {"count": 1, "events": ["a"]}, "incorrect": 0, "hallucinated": 0}', (1, 0, 0)),
        ("{'missed': ['it\\'s'], 'incorrect': [], 'hallucinated': []}", (1, 0, 0)),
        ('{"missed": {"count": 2, "events": ["a"]}, "incorrect": 0, "hallucinated": 0}', None),
        ('{"missed": ["a", "b", "c"], "incorrect": ["d"], "hallucinated": []}', None),
        ('{"missed": -1, "incorrect": 0, "hallucinated": 0}', None),
        ('{"missed": true, "incorrect": 0, "hallucinated": 0}', None),
        ('{"missed": [], "incorrect": []}', None),
        ("Missed: 1, incorrect: 0, hallucinated: 2", None),
        ('{"Missed_events": ["a"], "incorrect": ["none"], "hallucinated": []}', (1, 0, 0)),
        ('{"missed": ["a"], "missed": [], "incorrect": [], "hallucinated": []}', None),
        ('{"missed": ["a", ""], "incorrect": [], "hallucinated": []}', None),
        ("{'missed': ['it's x'], 'incorrect': [], 'hallucinated': []}", None),
        ('{"missed": ["a", "incorrect": [], "hallucinated": []}', None),
        ('{"missed": [], "incorrect": [], "hallucinated": []}, hmm, {missed: [a]}', None),
    ],
)
def test_errors(text: str, expected: tuple[int, int, int] | None) -> None:
    assert read_errors(Reply(text, "stop"), 3) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"visual": 4, "audio": 3, "details": 5}', (4.0, 3.0, 5.0)),
        ('{"Visual": "4/5", "Audio": {"score": 3, "why": "no music"}, "Details": 5}', (4, 3, 5)),
        ('{"visual": 3.5, "audio": 3, "details": 5, "average": 3.8}', (3.5, 3.0, 5.0)),
        ('{"visual": 0, "audio": 3, "details": 5}', None),
        ('{"visual": 6, "audio": 3, "details": 5}', None),
        ('{"visual": 4, "audio": 3}', None),
        ('{"visual": "good", "audio": 3, "details": 5}', None),
        ('{"visual": "2 / 5", "audio": "3", "details": 5}', (2.0, 3.0, 5.0)),
        ('{"visual": "3/10", "audio": 3, "details": 5}', None),
        (f'{{"visual": 3, "visual": 5, {REST}}}', None),
        (f'{{"visual": 3 or 4, {REST}}}', None),
        (f'Reply with nothing but an object such as {{"visual": 3, {REST}}}.', None),
        (f'{{"visual": 3, {REST}}}\nCorrection: {{visual: 1, audio: 1, details: 1}}', None),
        (
            '{"visual": 3, "audio": 2, "details": 3} or {"visual": 4, "audio": 2, "details": 3}',
            None,
        ),
    ],
)
def test_ratings(text: str, expected: tuple[float, float, float] | None) -> None:
    assert read_ratings(Reply(text, "stop")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("B", "A dog"),
        ("(B)", "A dog"),
        ("The answer is B.", "A dog"),
        ("B. A dog", "A dog"),
        ("C", UNKNOWN),
        ("D", None),
        ("A or B", None),
        ("B. A cat", None),
        ("I cannot tell.", None),
        ("N/A", UNKNOWN),
        ("Answer: n/a.", UNKNOWN),
        ("The caption does not say.", UNKNOWN),
        ("N/A (C)", UNKNOWN),
        ("N/A (A)", None),
    ],
)
def test_options(text: str, expected: str | None) -> None:
    assert read_option(Reply(text, "stop"), ["A cat", "A dog", UNKNOWN]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- He runs\n- He runs\n- He runs", "- He runs"),
        ("He runs. He stops. He runs. He stops. He runs. He stops.", "He runs. He stops."),
        ("He runs. He runs.", "He runs. He runs."),
        ("10 10 100 people", "10 10 100 people"),
        ("the car the car the carpet", "the car the car the carpet"),
    ],
)
def test_repetitions(text: str, expected: str) -> None:
    assert collapse_repetitions(text) == expected
