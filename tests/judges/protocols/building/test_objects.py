"""Values that a model wrote are read whole, in JSON, in Python and nearly so."""

from __future__ import annotations

import ast
import json
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval_captions.judges.protocols.building.objects import (
    objects_in,
    outermost,
    said,
    tuples_in,
)
from lmms_eval_captions.judges.protocols.building.values import Object

ONE = [[("question", "Who?"), ("answer", "A man")]]
TWO = [*ONE, [("question", "What?"), ("answer", "A car")]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('[{"question": "Who?", "answer": "A man"}]', ONE, id="json"),
        pytest.param("[{'question': 'Who?', 'answer': 'A man'}]", ONE, id="python"),
        pytest.param("{'question': \"Who?\", \"answer\": 'A man'}", ONE, id="mixed-quotes"),
        pytest.param("{“question”: “Who?”, ‘answer’: ‘A man’}", ONE, id="typographic"),
        pytest.param('{question: "Who?", answer: "A man"}', ONE, id="bare-keys"),
        pytest.param('{"question": "Who?", "answer": "A man",}', ONE, id="trailing-comma"),
        pytest.param('{"question": "Who?", # him\n "answer": "A man"} // end', ONE, id="comments"),
        pytest.param("{'question': '''Who?''', 'answer': \"\"\"A man\"\"\"}", ONE, id="triple"),
        pytest.param(
            'Sure! ```json\n[\n{"question":"Who?","answer":"A man"}\n]\n``` Anything else?',
            ONE,
            id="fence-and-prose",
        ),
        pytest.param('{{"question": "Who?", "answer": "A man"}}', ONE, id="doubled-braces"),
        pytest.param(
            '{"question": "Who?", "answer": "A man"}\n{"question": "What?", "answer": "A car"}',
            TWO,
            id="one-per-line",
        ),
        pytest.param(
            '[{"question": "Who?", "answer": "A man"}, '
            '{"question": "What?", "answer": "A car"}, {"qu',
            TWO,
            id="cut",
        ),
        pytest.param(
            '[{"question": "Who?", "answer": "A man"}, {"question": What?}, '
            '{"question": "What?", "answer": "A car"}]',
            TWO,
            id="one-broken",
        ),
        pytest.param("Nothing {of the kind} (at [all]).", [], id="prose"),
        pytest.param('{"question": "Who?", "answer": "A man"', [], id="unfinished"),
        pytest.param("", [], id="empty"),
    ],
)
def test_objects_are_found(text: str, expected: list[list[tuple[str, object]]]) -> None:
    """Whatever is around them; what is broken costs itself alone."""
    assert objects_in(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("{'a': 'It's a dog's toy'}", "It's a dog's toy", id="apostrophes"),
        pytest.param('{"a": "The sign says "stop""}', 'The sign says "stop"', id="at-the-end"),
        pytest.param('{"a": "A "red", old car", "b": 1}', 'A "red", old car', id="comma-behind"),
        pytest.param(r'{"a": "\"Stop\" \u00e9\n\/ \d"}', '"Stop" é\n/ \\d', id="escapes"),
        pytest.param(r"{'a': 'It\'s \x41 \U0001F600'}", "It's A \U0001f600", id="python-escapes"),
        pytest.param(r'{"a": "\ud83d\ude00 \ud83d"}', "\U0001f600 \ufffd", id="half-characters"),
        pytest.param('{"a": "}{][)("}', "}{][)(", id="brackets-in-a-string"),
        pytest.param('{"a": ""}', "", id="empty"),
        pytest.param('{"a": "two\nlines"}', "two\nlines", id="line-break"),
        pytest.param('{"a": -1.5}', -1.5, id="number"),
        pytest.param('{"a": true}', True, id="true"),
        pytest.param("{'a': None}", None, id="none"),
        pytest.param("{'a': ('x', ['y', 2,],)}", ("x", ["y", 2]), id="nested-lists"),
        pytest.param('{"a": {"b": "c"}}', Object([("b", "c")]), id="nested-object"),
    ],
)
def test_values_are_what_was_written(text: str, expected: object) -> None:
    """Quotes that should have been escaped belong to their string."""
    [pairs] = objects_in(text)
    key, value = pairs[0]
    assert (key, value, type(value)) == ("a", expected, type(expected))


@pytest.mark.parametrize(
    "text", ["{'a': 1 2}", "{'a'}", "{'a': x}", "{'a': 80%}", "{1: 2}", "{'a': [1}", "{'a': 1;}"]
)
def test_what_is_no_object_is_none(text: str) -> None:
    """A value is read whole or not at all."""
    assert objects_in(text) == []


@pytest.mark.parametrize(
    ("end", "is_cut"),
    [
        pytest.param("}]", False, id="whole"),
        pytest.param(', "question": "Whe', True, id="cut"),
        pytest.param(", . . .}]", False, id="left-out"),
    ],
)
def test_repeated_keys_are_kept(end: str, is_cut: bool) -> None:
    """The reply that AuroraCap's appendix L prints is one object; cut, its pairs still count."""
    text = '[{"question": "Who?", "answer": "A man", "question": "What?", "answer": "A car"' + end
    found = outermost(text, "{")
    assert found.values == ([*TWO[0], *TWO[1]],)
    assert found.is_cut == is_cut


@pytest.mark.parametrize("end", ['"A "red"', '"A "red",', "1", "1."])
def test_a_value_that_a_cut_may_have_shortened_is_none(end: str) -> None:
    """What stands at the very end of a text may go on behind it."""
    text = '{"question": "Who?", "answer": "A man", "question": "What?", "answer": ' + end
    assert objects_in(text) == [[*ONE[0], ("question", "What?")]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("[('Who?', 'A man'), ('What?', \"It's\")]", 2, id="python"),
        pytest.param('[("Who?", "A man"),\n ("What?", "A car"),]', 2, id="double-quotes"),
        pytest.param('("Who?", "A man")\n("What?", "A car")', 2, id="one-per-line"),
        pytest.param("pairs = [('Who?', 'A man'), ('What?', 'A car'), ('Whe", 2, id="cut"),
        pytest.param("[('Who?', 'A man', 'x'), (Who, what), ('Who?', 3)]", 0, id="others"),
        pytest.param("[(the question 1, the answer 1), . . .]", 0, id="form-of-the-prompt"),
        pytest.param("['Who?', 'What?']", 0, id="list-of-texts"),
    ],
)
def test_tuples_of_two_texts_are_found(text: str, expected: int) -> None:
    """As appendix L of AuroraCap asks for them."""
    rows = tuples_in(text)
    assert len(rows) == expected
    assert [row[0] for row in rows] == ["Who?", "What?"][:expected]


def test_a_text_is_looked_at_within_bounds() -> None:
    """Objects behind 400,000 characters, or behind 5,000 others, are not."""
    assert len(objects_in('{"a": 1}' * 6_000)) == 5_000
    assert len(said("<think>" + "x" * 500_000 + "</think>[1]")) == 3
    assert len(said("x" * 500_000)) == 400_000


def test_half_characters_are_made_whole() -> None:
    """Two halves become their character, one alone the sign for what cannot be shown."""
    assert said("\ud83d\ude00 \ud83d") == "\U0001f600 \ufffd"


def test_deep_nesting_is_no_value() -> None:
    """No reply can exhaust the stack; what is around and inside it is still found."""
    deep = "[" * 50_000 + "]" * 50_000
    assert objects_in('{"a": ' + deep + '} {"b": 1}') == [[("b", 1)]]
    assert objects_in('{"a":' * 50_000) == []


@pytest.mark.parametrize("unit", ["[", "{", "(", '{"a":', '{"a":"', "['", '{"a":"\\', '{"x":1,'])
def test_long_broken_texts_take_no_time(unit: str) -> None:
    """A megabyte of brackets or quotes is over in a second."""
    text = said(unit * (1_000_000 // len(unit)))
    begin = process_time()
    objects_in(text), tuples_in(text)
    assert process_time() - begin < 1.0


_scalars = st.text() | st.integers(-(10**9), 10**9) | st.booleans() | st.none()
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def _plain(value: object) -> object:
    """A value with dictionaries in the place of objects."""
    if isinstance(value, Object):
        return {key: _plain(inner) for key, inner in value}
    if isinstance(value, list | tuple):
        return type(value)(_plain(inner) for inner in value)
    return value


@settings(max_examples=60)
@given(st.dictionaries(st.text(), _values, max_size=4))
def test_json_and_python_are_read_as_their_own_readers_do(value: dict[str, object]) -> None:
    """Whatever a dictionary holds, it is read as :mod:`json` and :mod:`ast` read it."""
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), repr(value)):
        [read] = outermost(text, "{").values
        assert _plain(read) == ast.literal_eval(repr(value)) == value
