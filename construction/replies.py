"""Readers of replies of writers, solvers and viewers.

A writer's reply is read as far as it is usable: prose around it, single quotes or a cut end cost
nothing that was written in full. A verdict is read as strictly as a judge's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

from json_repair import repair_json

from lmms_eval_captions.judges.endpoint.replies import strip_reasoning
from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.files import whole, whole_json
from lmms_eval_captions.judges.protocols.capquiz import LETTERS, read_choice
from lmms_eval_captions.judges.protocols.vcapsbench import read_answer

Fault = Literal["empty", "no JSON", "wrong keys", "too many", "repeats itself", "unreadable"]
"""Why no question is read from a reply."""
CaptionFault = Literal["empty", "repeats itself", "data"]
"""Why a reply is not a caption; ``data`` is an object in place of prose."""
Look = Literal["yes", "no", "unknown"]
Clusters = tuple[tuple[tuple[int, ...], ...], ...]

_MAX_CHARS: Final = 400_000
_MAX_OBJECT_CHARS: Final = 20_000
_MAX_BRACKETS: Final = 16
"""Opening brackets in one object; repairing takes quadratic time in their number."""
_OBJECT: Final = re.compile(r"\{[^{}]*\}")
_LETTERED_OPTIONS: Final = re.compile(
    r"(\boptions[\"'\u201d]?\s{0,9}:\s{0,9})\{([^{}]{0,4000})\}", re.I
)
_LETTER_KEY: Final = re.compile(r"(?:^|(?<=,))\s{0,99}[\"']?[A-Za-z0-9][\"']?\s{0,9}:")
_TUPLE: Final = re.compile(
    r"\(\s{0,9}([\"'])((?:(?!\1\s{0,9},|\([\"']).){1,2000})(?<!\\)\1\s{0,9},\s{0,9}"
    r"([\"'])((?:(?!\3\s{0,9}[,)]|\([\"']).){1,2000})(?<!\\)\3\s{0,9},?\s{0,9}\)",
    re.DOTALL,
)
"""A pair of Python strings; ends where the next one begins, so that it is linear."""
_PAIR: Final = ("question", "answer")
_LEFT_OUT: Final = " \t\r\n.\u2026"
"""A text of nothing else stands for an omission, as in the form that a prompt shows."""
_MIN_LOOP: Final = 6
"""Number of items from which on repetition indicates a model in a loop."""


def said(text: str) -> str:
    r"""Return a reply without reasoning and half characters, up to 400,000 characters."""
    return whole(strip_reasoning(text)[:_MAX_CHARS])


class Written(NamedTuple):
    """Questions that were read from a writer's reply."""

    items: tuple[Mapping[str, Any], ...]
    """In order, with the requested keys only; repetitions included."""
    n_wrong_keys: int
    """Objects that lack a key, or repeat the key's name as its value."""
    n_repeated: int
    is_cut: bool
    """True if the reply ended before its list did."""


def read_items(reply: Reply, keys: Sequence[str], *, most: int) -> Written | None:
    """Return the items of a reply, at most so many; ``None`` if :func:`fault_of` says why not.

    Each has all keys, which are read in any case. Values are texts, of ``options`` a list of texts.

    >>> read_items(Reply("[{'a': 1}, {'a': 'x', 'b': 2}]", "stop"), ["a"], most=9).items
    ({'a': '1'}, {'a': 'x'})
    >>> read_items(Reply("[('Who?', 'A man')]", "stop"), ["question", "answer"], most=20).items
    ({'question': 'Who?', 'answer': 'A man'},)
    """
    outcome = _read(reply.text, keys, most=most, is_cut=reply.finish_reason == "length")
    return outcome if isinstance(outcome, Written) else None


def fault_of(text: str, keys: Sequence[str], *, most: int) -> Fault:
    """Return why :func:`read_items` reads nothing from a reply of this text."""
    outcome = _read(text, keys, most=most, is_cut=False)
    return "unreadable" if isinstance(outcome, Written) else outcome


def _read(text: str, keys: Sequence[str], *, most: int, is_cut: bool) -> Written | Fault:
    text = said(text)
    if not text:
        return "empty"
    parted = text
    if text.count("{") == 1:
        # One object that repeats its first key, as AuroraCap's appendix L prints, is several.
        parted = re.sub(rf",\s*([\"']{keys[0]}[\"']\s*:)", r"}, {\1", text, flags=re.IGNORECASE)
    candidates = [_item(part, keys) for part in objects_in(parted)]
    if not candidates and tuple(keys) == _PAIR:
        plain = re.compile(r"\\([\"'\\])")
        tuples = ((found[2], found[4]) for found in _TUPLE.finditer(text))
        candidates = [
            {key: plain.sub(r"\1", part) for key, part in zip(_PAIR, pair, strict=True)}
            for pair in tuples
        ]
    if not candidates:
        return "unreadable" if "{" in text else "no JSON"
    items = [item for item in candidates if item is not None]
    if not items:
        return "wrong keys"
    questions = ["question"] if "question" in keys else keys
    if len(items) >= _MIN_LOOP and 2 * _n_repeated(items, questions) >= len(items):
        return "repeats itself"
    if len(items) > most:
        return "too many"
    is_cut = is_cut or text.rfind("{") > text.rfind("}")
    n_wrong_keys = len(candidates) - len(items)
    return Written(tuple(items), n_wrong_keys, _n_repeated(items, keys), is_cut)


def objects_in(text: str) -> list[dict[str, Any]]:
    """Return the complete objects of a text, in order; of nested ones the innermost.

    >>> objects_in("Here: [{'question': 'Who?', 'answer': 'A man'}, {'question': 'Wh")
    [{'question': 'Who?', 'answer': 'A man'}]
    """
    start, end = re.search(r"[{\[]", text), max(text.rfind("}"), text.rfind("]"))
    value = _strict(text[start.start() : end + 1]) if start else None
    if isinstance(value, dict):
        # Such as {"items": [...]}, which a schema asks for.
        value = next((inner for inner in value.values() if _are_objects(inner)), [value])
    if _are_objects(value):
        return list(value or ())
    text = _LETTERED_OPTIONS.sub(lambda m: f"{m[1]}[{_LETTER_KEY.sub('', m[2])}]", text)
    repaired = (_repaired(chunk[0]) for chunk in _OBJECT.finditer(text))
    return [each for each in repaired if each]


def _strict(text: str) -> Any:  # noqa: ANN401 - JSON
    """Return the value of strict JSON; ``None`` for other text, ``{}`` with a repeated key."""
    repeated: list[object] = []

    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            repeated.append(pairs)
        return dict(pairs)

    try:
        value = json.loads(whole_json(text), object_pairs_hook=object_of)
    except (ValueError, RecursionError):
        return None
    return {} if repeated else value


def _are_objects(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


def _repaired(chunk: str) -> dict[str, Any] | None:
    n_brackets = chunk.count("[") + chunk.count("(")
    if len(chunk) > _MAX_OBJECT_CHARS or n_brackets > _MAX_BRACKETS:
        return None
    value = _strict(chunk)
    if value is None:
        try:
            value = repair_json(chunk, return_objects=True)
        except (ValueError, RecursionError, IndexError):
            return None
    return value if isinstance(value, dict) else None


def _item(part: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any] | None:
    by_key = {_key(str(key)): value for key, value in part.items()}
    item: dict[str, Any] = {}
    for key in keys:
        value = _options(by_key.get(key)) if key == "options" else _text(by_key.get(key))
        # The form itself, echoed, has each key's name for its value.
        if not value or (isinstance(value, str) and _key(value) == key):
            return None
        item[key] = value
    return item


def _options(value: object) -> list[str] | None:
    values = list(value.values()) if isinstance(value, dict) else value
    texts = [_text(each) for each in values] if isinstance(values, list) else [None]
    return None if None in texts else [text for text in texts if text is not None]


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return whole(value).strip() if value.strip(_LEFT_OUT) else ""
    return str(value) if isinstance(value, int | float) else None


def _key(key: str) -> str:
    return "_".join(key.casefold().replace("-", " ").split())


def _n_repeated(items: Sequence[Mapping[str, Any]], keys: Iterable[str]) -> int:
    texts = {repr([" ".join(str(item[key]).casefold().split()) for key in keys]) for item in items}
    return len(items) - len(texts)


def read_clusters(reply: Reply, n: int) -> Clusters | None:
    """Return groups of questions, each of groups of answers, as CapQuiz's figure 7 asks for.

    Every index from 0 to n - 1 is in it once, a missing one in a group of its own. ``None`` without
    a list of three levels, if two differ, or if more than a fifth is missing or unknown.

    >>> read_clusters(Reply("[[[0, 2], [1]], [[3]]]", "stop"), 5)
    (((0, 2), (1,)), ((3,),), ((4,),))
    """
    return _known_indices(_levels(reply, 3), n)


def read_groups(reply: Reply, n: int) -> tuple[tuple[int, ...], ...] | None:
    """Return groups of questions from a list of two levels; see :func:`read_clusters`."""
    clusters = _known_indices([[group] for group in _levels(reply, 2)], n)
    return None if clusters is None else tuple(group for [group] in clusters)


def _levels(reply: Reply, depth: int) -> list[Any]:
    """Return the reply's one list of this depth; empty without one."""
    text = said(reply.text)
    found: list[Any] = []
    for chunk in re.findall(r"\[[\[\]\d\s,\"']*", text):
        plain = re.sub(r"[\"']", "", chunk[: chunk.rfind("]") + 1])
        value = _strict(re.sub(r",\s{0,99}\]", "]", plain))
        if _depth(value) == depth and value not in found:
            found.append(value)
    is_cut = text.count("[") > text.count("]")
    return found[0] if len(found) == 1 and not is_cut else []


def _depth(value: object, deepest: int = 4) -> int | None:
    """Return the levels of lists around indices; ``None`` if they differ."""
    if not isinstance(value, list):
        return 0 if isinstance(value, int) else None
    depths = {_depth(inner, deepest - 1) for inner in value} if deepest else set()
    depth = depths.pop() if len(depths) == 1 else None
    return None if depth is None else depth + 1


def _known_indices(clusters: Sequence[Sequence[Sequence[int]]], n: int) -> Clusters | None:
    left, n_unknown = dict.fromkeys(range(n)), 0
    known: list[tuple[tuple[int, ...], ...]] = []
    for cluster in clusters:
        groups: list[tuple[int, ...]] = []
        for group in cluster:
            n_unknown += sum(not 0 <= index < n for index in group)
            groups.append(tuple(index for index in dict.fromkeys(group) if index in left))
            for index in groups[-1]:
                del left[index]
        known.append(tuple(group for group in groups if group))
    if not clusters or 5 * max(len(left), n_unknown) > n:
        return None
    return (*(cluster for cluster in known if cluster), *(((index,),) for index in left))


OTHERS: Final = "Others"
"""Domain of a clip that fits none (CapQuiz, figure 5)."""


def read_domains(reply: Reply, known: Sequence[str]) -> Mapping[str, float] | None:
    """Return up to three known domains or ``Others``, the likeliest first, with probabilities.

    ``None`` if it has another name, a probability outside [0, 1], or two objects that differ.

    >>> read_domains(Reply('{"sports": 0.2, "Game": 0.7}', "stop"), ["Game", "Sports"])
    {'Game': 0.7, 'Sports': 0.2}
    """
    read = [_domains(value, known) for value in objects_in(said(reply.text))]
    return read[0] if read and all(other == read[0] for other in read) else None


def _domains(value: Mapping[str, object], known: Sequence[str]) -> Mapping[str, float] | None:
    def plain(name: object) -> str:
        return " ".join(str(name).casefold().replace("\u2019", "'").split())

    names = {plain(name): name for name in (*known, OTHERS)}
    shares: dict[str, float] = {}
    for key, share in value.items():
        name = names.get(plain(key))
        is_number = re.fullmatch(r"\s*(?:[01](?:\.[0-9]{0,12})?|\.[0-9]{1,12})\s*", str(share))
        if name is None or name in shares or not is_number or float(str(share)) > 1:
            return None
        shares[name] = float(str(share))
    is_valid = shares and len(shares.keys() - {OTHERS}) <= 3
    return dict(sorted(shares.items(), key=lambda item: -item[1])) if is_valid else None


CAPTIONS: Final = ("short", "background", "main_object", "camera", "reference")
"""Captions of VDC's first prompt; a second one makes the detailed caption of the last."""
_CAPTION: Final = "short|background|main[ _-]?object|camera|reference"
_LABEL: Final = re.compile(
    rf"(?:^[ \t*_#>\"'(-]{{0,8}}(?:[0-9][.)][ \t*_]{{0,4}})?(?P<line>{_CAPTION})(?:[ _]caption)?"
    # Within a line only with the full name after a sentence, as the paper prints it.
    rf"|(?<=[.!?]\s)(?P<within>{_CAPTION})[ ]caption)[ \t*_\"']{{0,4}}:[ \t*_]{{0,4}}",
    re.IGNORECASE | re.MULTILINE,
)


def read_captions(reply: Reply) -> Mapping[str, str] | None:
    """Return the five captions of a clip by name; ``None`` if one is missing or repeated.

    AuroraCap's appendix K asks for a Python dictionary and prints labels ("Short Caption: ...").

    >>> text = "{'short caption': 'A dog runs.', 'Background Caption': 'A beach.', "
    >>> text += "'main_object': 'A dog.', 'camera': 'It pans.', 'reference caption': 'A dog ...'}"
    >>> read_captions(Reply(text, "stop"))["main_object"]
    'A dog.'
    """
    text = said(reply.text)
    objects = [value for value in objects_in(text) if any(map(_caption_name, value))]
    if len(objects) > 1 or (not objects and reply.finish_reason == "length"):
        return None  # the last one of a cut reply may be half a caption
    pairs: list[tuple[str, object]] = list(objects[0].items()) if objects else []
    if not objects:
        labels = list(_LABEL.finditer(text))
        ends = [*(label.start() for label in labels[1:]), len(text)]
        for label, end in zip(labels, ends, strict=False):
            caption = text[label.end() : end].strip(" \t\r\n*_`")
            pairs.append((label["line"] or label["within"], caption))
    named = [(_caption_name(key), _text(caption)) for key, caption in pairs if _caption_name(key)]
    captions = {name: dict(named).get(name) or "" for name in CAPTIONS}
    return captions if len(named) == len(CAPTIONS) and all(captions.values()) else None


def _caption_name(key: str) -> str | None:
    words = re.split(r"[\s_-]+", str(key).strip().casefold())
    name = "_".join(words[:-1] if words[-1] == "caption" else words)
    return name if name in CAPTIONS else None


def read_free_caption(reply: Reply) -> str | None:
    """Return the caption that a reply is; ``None`` if :func:`caption_fault` says why not."""
    return said(reply.text) if caption_fault(reply.text) is None else None


def caption_fault(text: str) -> CaptionFault | None:
    """Return why a reply of this text is not a caption. Linear in its length."""
    caption = said(text).lstrip()
    words = caption.casefold().split(maxsplit=20_000)[:20_000]
    if not words:
        return "empty"
    if re.match(r"(?:```[a-z]{0,9}\s{0,9})?\[?\s{0,9}\{\s{0,99}[\"']", caption):
        return "data"
    # Eight words in a row that a description hardly says twice.
    rows = [tuple(words[start : start + 8]) for start in range(len(words) - 7)]
    return "repeats itself" if len(rows) >= 48 and 2 * len(set(rows)) < len(rows) else None


def read_option(reply: Reply, options: Sequence[str]) -> str | None:
    """Return the option, of at most six, that a reply chooses by its letter; else ``None``."""
    letter = read_choice(reply, (*options, *[""] * (len(LETTERS) - len(options))))
    index = len(options) if letter is None else LETTERS.index(letter)
    return options[index] if index < len(options) else None


def read_yes_no(reply: Reply) -> Look | None:
    """Return yes, no, or ``unknown`` for what cannot be determined; ``None`` if unclear.

    >>> read_yes_no(Reply("Cannot be determined. The door is never shown.", "stop"))
    'unknown'
    """
    unknown = r"\bcan(?:\s?not|['\u2019]t)\s+be\s+determined\b"
    answer = read_answer(
        replace(reply, text=re.sub(unknown, "Unanswerable", reply.text, flags=re.IGNORECASE))
    )
    return "unknown" if answer == "unanswerable" else answer


class Review(NamedTuple):
    """Decision of a reviewer about a pair, with its new texts if it is rewritten."""

    decision: Literal["keep", "rewrite", "drop"]
    question: str | None = None
    answer: str | None = None


def read_review(reply: Reply) -> Review | None:
    """Return a reviewer's decision; ``None`` if it is unclear, or lacks a new text.

    >>> read_review(Reply('{"decision": "drop", "question": "Who?", "answer": "A man"}', "stop"))
    Review(decision='drop', question=None, answer=None)
    """
    text = said(reply.text)
    objects = [{_key(str(key)): v for key, v in value.items()} for value in objects_in(text)]
    reviews = [_review(fields) for fields in objects if "decision" in fields]
    # What follows a cut may decide otherwise, and a key that stands twice says nothing.
    is_cut = text.rfind("{") > text.rfind("}")
    n_decisions = len(re.findall(r"\bdecision[\"']?\s{0,9}:", text, re.IGNORECASE))
    is_one = len(set(reviews)) == 1 and n_decisions == len(reviews) and not is_cut
    return reviews[0] if is_one else None


def _review(fields: Mapping[str, object]) -> Review | None:
    decision = str(fields["decision"]).strip().casefold()
    # "decision": "keep", "rewrite" or "drop" is the prompt's form, repaired to a key with quotes.
    if decision not in ("keep", "rewrite", "drop") or any('"' in key for key in fields):
        return None
    if decision != "rewrite":
        return Review("keep" if decision == "keep" else "drop")
    question, answer = _text(fields.get("question")), _text(fields.get("answer"))
    return Review("rewrite", question, answer) if question and answer else None
