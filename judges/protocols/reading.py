"""Parts that the readers of all protocols share.

A reader collects every statement of a verdict in a reply, and answers only if all of them agree. A
verdict counts if it is the complete reply, a complete line or field, or follows an introduction
("So my final answer is"), and nothing but an explanation follows it. Two verdicts that contradict,
one off the menu, a range, another scale, a condition or an echo of the prompt's example make the
reply unreadable, and so does a cut right after the verdict. All of it is linear in the reply's
length. Objects may be JSON, Python, or nearly.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, TypeVar

from lmms_eval_captions.judges.endpoint.replies import strip_reasoning
from lmms_eval_captions.judges.endpoint.request import Reply

T = TypeVar("T")

Unclear = Literal["unclear"]
UNCLEAR: Final[Unclear] = "unclear"
"""Stands among the statements of a reply for one that cannot be relied on."""

MOST_CHARACTERS: Final = 50_000
"""Characters, reasoning left out, above which a reply says too much to be read."""
MOST_STATEMENTS: Final = 40
"""Statements above which a reply repeats itself rather than to answer."""
_COMPLETE: Final = ("stop", "stop_sequence", "end_turn", "eos", "eos_token")
"""Reasons to finish that say that the judge itself ended its reply."""
# One character for one, so that positions stay.
_PLAIN: Final = str.maketrans(
    {0xFF01 + offset: 0x21 + offset for offset in range(94)}
    | dict(zip("\u3002\u3001\u201c\u201d\u201e\u2018\u2019\u2212\u2013\u3010\u3011",
               ".,\"\"\"''--[]", strict=True))
)  # fmt: skip
_SPECIAL_TOKEN: Final = re.compile(r"<\|[a-z_]{1,30}\|>", re.IGNORECASE)
_LATEX: Final = re.compile(
    r"\\(?:boxed|fbox|text|textbf|textit|mathbf|mathrm|bf|underline)\s{0,4}\{([^{}]{0,200})\}"
)
_ESCAPED: Final = re.compile(r"\\(['\"])")
_ESCAPED_OBJECT: Final = re.compile(r"\{\s{0,8}\\['\"]")
"""An object whose quotes are all escaped, as a string of JSON has them."""
_DOUBT_BEFORE: Final = re.compile(
    # "The wrong answer is", "Maximum score:", "A previous final score is".
    r"\b(?:wrong|incorrect|opposite|previous|(?<!best\s)(?<!only\s)possible|plausible|potential|another|other"
    r"|alternative|second[\s-]best|max(?:imum)?|min(?:imum)?|highest|lowest|eliminated|rejected)"
    r"[ \t*_]{1,4}(?:(?:final|overall)\s+)?(?:score\b[ \t*_]{0,4}(?:is\b|of\b|:)?)?[^\w\n.]{0,8}\Z"
    # "I do not think that the answer is".
    r"|(?:\bnot|n't)\s+(?:think|believe|agree|say)\b[^.!\n{}]{0,64}\Z"
    r"|\b(?:example|sample)\b[^.!{}]{0,70}\Z",
    re.IGNORECASE,
)
_DOUBT_AFTER: Final = re.compile(
    r"[^\n{}]{0,20}\b(?:is|was|as)\b[^\n{}]{0,30}\b(?:example|sample|form|format|template)\b"
    # Taken back in the next sentence: "Wait, no".
    r"|[\s*_`'\"\])}$.,;:!\u2014-]{0,16}(?:that(?:'s|\s+is|\s+was)\s+(?:wrong|incorrect|not)\b"
    r"|(?:no,\s{1,2})?(?:wait|actually|correction|sorry|hmm+|scratch\s+that|revised"
    r"|on\s+(?:second\s+thoughts?|reflection)|alternatively|never\s*mind|I\s+meant?)\b)"
    # On a condition, or denied, in the same one.
    r"|[ \t*_`'\"\])}$]{0,8}(?:(?:,\s{0,2})?(?:if|unless|(?:or\s+)?(?:maybe|possibly|perhaps))\b"
    r"|,?\s{0,2}but\b[^.\n]{0,60}\b(?:(?:yes|no|unanswerable)(?=[.,;:!'\"]|\Z)|[B-F]\b|[0-9])"
    r"|\((?:or|no|if|maybe|possibly|perhaps|previously)\b|[\u2260\u2717\u2718\u274c]"
    r"|(?:is|was|seems?|looks)\s+(?:not\b|wrong\b|incorrect\b|too\b|excluded\b|what\b|given\b))",
    re.IGNORECASE,
)
_DECLINED: Final = re.compile(
    r"\bI(?:\s+am|'m)?\s+(?:cannot|can't|can\s+not|unable\s+to|not\s+able\s+to)\s+(?:\w{3,12}ly\s+)?"
    r"(?:evaluate|judge|assess|score|rate|grade|comply|tell|decide|be\s+(?:sure|certain)"
    r"|provide\s+(?:an?|the|any)\s+(?:evaluation|score|verdict))\b"
    r"|\bI(?:\s+am|'m)\s+(?:not\s+(?:sure|certain)|unsure)\b|\bI\s+(?:do\s+not|don't)\s+know\b",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"[.!?][\"')\]*]{0,3}(?=\s)|\n")
_CLAUSE: Final = re.compile(
    r"[,;:|(\[{=\u2014]|->|=>|\s-\s|\b(?:and|but|so|while|therefore|thus|hence)\b", re.IGNORECASE
)
_WORD: Final = re.compile(r"[^\W\d_]+")
_INTRODUCING: Final = frozenset(
    re.findall(
        r"\w+",
        "a an the my your this it that its final overall correct right best most likely "
        "accurate only answer option choice letter verdict result evaluation assessment "
        "judgement judgment score scores rating grade pred prediction output response json "
        "dict dictionary python question is was are of would be give given assign choose "
        "select pick go with have one to for so therefore thus hence and but in short "
        "conclusion summary finally yes no i accuracy completeness conciseness relevance "
        "trustworthiness coverage precision recall quality \u03b1 \u03b2 \u03c8 \u03b4 \u0251 "
        "ss alpha beta psi delta",
    )
)
"""The words of an introduction: "So my final answer is", "I would give this a score of"."""
_OPENING: Final = re.compile(
    r"\b(?:(?<!ask )(?<!asks )(?<!asked )if|unless|whether|suppose|supposing|assum\w+|saying"
    r"|claim\w*"
    r"|examples?|samples?|(?<!requested )(?<!required )(?<!desired )format|template|schema"
    r"|please|could|might|may|perhaps|maybe|instead|following|like|assert|return|else"
    r"|otherwise|e\.g)\b|==",
    re.IGNORECASE,
)
"""Words that leave open whether the clauses after them hold."""
_OF_TASK: Final = re.compile(
    r"(?:(?:\A|\n|[.!?]\s)[ \t*_-]{0,4}You\s"
    r"|\byou\s+(?:then\s+|must\s+|should\s+)?(?:provide|give|assign|accept)\s)[^.!?\n]*\Z"
)
_REACH: Final = 96
"""Characters around a statement that are looked at for a doubt."""

_REST: Final = re.compile(r"[\W_]*\Z")

NUMBER: Final = r"(?<![.\w])(?<![0-9],)(?P<number>[-+]?[0-9]{1,6}(?:\.[0-9]{1,6})?)"
"""A number with a sign and decimals; whether it ends there tells :func:`ends_clearly`."""
SIGNS: Final = r"[\s*_`'\":=>(\[|$]{0,8}"
"""Signs between a label and what it names. Bounded: no reply may take long to read."""
GREATER: Final = r"(?<![\w\"'/=-])>"
"""A sign of comparison before a number: no closed tag and no arrow."""
SCORE_LABEL: Final = re.compile(
    rf"\bscore\b(?:\s{{1,2}}for\s{{1,2}}(?:this|the)\s{{1,2}}(?:question|answer|pair|prediction)\b)?{SIGNS}"
    rf"(?:\b(?:is|of)\b{SIGNS})?{NUMBER}",
    re.IGNORECASE,
)
_DIRTY: Final = re.compile(
    r"[.,]?[0-9]|\w|\.\.|[-+^]\S|[+-]\Z|[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u209c\u2150-\u218b]",
    re.ASCII,
)
_CLOSING: Final = re.compile(r"[ \t*_`'\")\]$]{0,8}")
_SCALE: Final = re.compile(
    r"(?:(?:points?\s+)?\(?(?:/|out\s+of\b|of\b)"
    r"|[(,]?\s?(?:on\s+(?:a|the)\s+)?scale:?\s(?:(?:of|from)\s)?[-+]?[0-9]{1,6}\s?(?:-|to\b))"
    r"\s{0,4}([0-9]{1,6}(?:\.[0-9]+)?)",
    re.IGNORECASE,
)
_GOES_ON: Final = re.compile(
    r"%|\?|/(?!/)|\\|->|=>|\u2192|[-~\u2014]{1,3}\s{0,2}[-+.0-9]|\.\."
    r"|(?:to|and|through|then|but|not)\b\s{0,2}[-+.0-9]|(?:or|percent|out|of)\b"
    r"|,?\s{0,2}which\s{1,2}(?:is|means)\s{1,2}[-+]?[0-9]"
    r"|(?:indicates?|means?|would|denotes?|represents?|implies)\b"
    r"|,\s{1,2}(?:[-+]?[0-9]|(?:or|no|not)\b)|[+\u00b1\u00d7|&:;=]\s{0,2}[-+]?[0-9]|[-+]?[0-9]|\u00b1|==?\s"
    r"|for\b[^.\n]{0,60}\band\s{1,2}[-+]?[0-9]",
    re.IGNORECASE,
)
_DECISIVE: Final = re.compile(r"[\n;}]|[.!][\s\"'*)]|,\s{0,4}[^\s0-9]")


def plain(reply: Reply) -> str:
    """A reply without reasoning, full-width signs and LaTeX boxes; empty if far too long."""
    text = strip_reasoning(reply.text).translate(_PLAIN)
    if len(text) > MOST_CHARACTERS:
        return ""
    if "<|" in text:
        text = _SPECIAL_TOKEN.sub("", text)
    if "\\" in text:
        text = _ESCAPED.sub(r"\1", text) if _ESCAPED_OBJECT.search(text) else text
        text = _LATEX.sub(r" \1 ", _LATEX.sub(r" \1 ", text))
    return text.strip() if not may_be_cut(reply) else text


def same_signs(text: str) -> str:
    """A text with full-width and typographic signs as plain ones, every position kept."""
    return text.translate(_PLAIN)


def may_be_cut(reply: Reply) -> bool:
    """Return whether a reply may be cut; also if the server does not say why it ended."""
    return reply.finish_reason not in _COMPLETE


def the_one(statements: Collection[T | Unclear]) -> T | None:
    """Return what all statements of a reply say, ``None`` if they differ or one is unclear."""
    if len(statements) > MOST_STATEMENTS:
        return None
    different = set(statements)
    if len(different) != 1 or UNCLEAR in different:
        return None
    return different.pop()  # type: ignore[return-value]  # it is not UNCLEAR


def places(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """Find a pattern in a text; no more often than it takes to see that there are too many."""
    return list(islice(pattern.finditer(text), MOST_STATEMENTS + 1))


def is_doubted(text: str, start: int, end: int) -> bool:
    """Return whether words around a statement deny it, or make it a condition or an example."""
    return not is_introduced(text, start) or is_taken_back(text, start, end)


def is_taken_back(text: str, start: int, end: int) -> bool:
    """Return whether words right before or after a statement deny it or call it an example."""
    before = _DOUBT_BEFORE.search(text[max(0, start - _REACH) : start])
    return before is not None or _DOUBT_AFTER.match(text[end : end + _REACH]) is not None


def is_introduced(text: str, start: int) -> bool:
    """Return whether a statement begins a line or sentence, or follows a known introduction.

    Its own clause holds nothing but words of an introduction, and no clause before it in its
    sentence leaves it open.
    """
    sentence = text[max(0, start - _REACH) : start]
    ends = [match.end() for match in _SENTENCE.finditer(sentence)]
    sentence = sentence[ends[-1] :] if ends else sentence
    clause = _CLAUSE.split(sentence)[-1]
    words = {word.casefold() for word in _WORD.findall(clause)}
    before = sentence[: len(sentence) - len(clause)]
    if not sentence.strip() and len(ends) > 1:
        # A line that ends in a colon is about what follows it.
        line = text[max(0, start - _REACH) : start].rstrip().rpartition("\n")[2]
        before = line if line.endswith(":") else ""
    return words <= _INTRODUCING and _OPENING.search(before) is None


def is_left_open(text: str) -> bool:
    """Return whether a text names a condition, a possibility or a sample."""
    return _OPENING.search(text) is not None


def is_declined(text: str) -> bool:
    """Return whether the judge declines to judge, so that a verdict next to it is a sample."""
    return _DECLINED.search(text) is not None


def is_of_task(text: str, start: int) -> bool:
    """Return whether a sentence up to a position tells the judge what to do."""
    return _OF_TASK.search(text[max(0, start - _REACH) : start]) is not None


def is_last(text: str, end: int) -> bool:
    """Return whether no word follows a position, so that a reply may be cut there."""
    return _REST.match(text, end) is not None


def ends_clearly(text: str, end: int, *, top: float | None, cut: bool) -> bool:
    """Return whether a number ends at a position: no digits, range, unit or other scale follow.

    The highest number of its scale, ``top``, may follow ("4/5").

    >>> [ends_clearly(text, 1, top=5, cut=False) for text in ("4.", "4/5", "4/10", "4,8", "3-4")]
    [True, True, False, False, False]
    """
    for _ in range(2):
        if _DIRTY.match(text, end):
            return False
        closing = _CLOSING.match(text, end)
        end = closing.end() if closing else end
        scale = _SCALE.match(text, end)
        if scale is None:
            break
        if top is None or float(scale[1]) != top:
            return False
        end = scale.end()
    if _GOES_ON.match(text, end):
        return False
    return not cut or _DECISIVE.match(text, end) is not None


def is_clear(text: str, start: int, end: int, *, top: float | None, cut: bool) -> bool:
    """Return whether a number that ends at a position is stated clearly and not doubted."""
    return ends_clearly(text, end, top=top, cut=cut) and not is_doubted(text, start, end)


_QUOTES: Final = "\"'`"
_QUOTE_OR_ESCAPE: Final = {quote: re.compile(rf"\\.|{quote}", re.DOTALL) for quote in _QUOTES}
_STRING_ENDS: Final = re.compile(r"\s*(?:[,}\]:]|\Z|(?:#|//))")
_KEY: Final = re.compile(r"[^:=,{}\[\]\n]+")
_VALUE: Final = re.compile(r"[^,{}\[\]\n]+")
_LATER: Final = ("final", "overall", "revised", "corrected", "updated", "adjusted")
"""First words of keys that restate a verdict."""
_COLON: Final = re.compile(r"\s*[:=]")
_COMMENT: Final = re.compile(r"\s(?:#|//).*|\Z", re.DOTALL)
_MOST_TOKENS: Final = 3_000
"""Strings, words and signs of a block; the rest of a longer one is ignored."""


@dataclass(frozen=True, slots=True)
class Field:
    """A key and what was written for it."""

    key: str
    """Without quotes, in lower case."""
    value: str
    """Text of a string, number or word; the bracket if an object or a list begins."""
    depth: int
    """Objects around it, >= 1."""


@dataclass(frozen=True, slots=True)
class Block:
    """An outermost pair of braces in a text, or an opening one without its closing one."""

    fields: tuple[Field, ...]
    """Complete fields: a comma, a line's end or a closing bracket follows them."""
    start: int
    end: int
    closed: bool

    def is_clear(self, text: str, *, top: float | None) -> bool:
        """Return whether nothing around it, or after its end, doubts what it states."""
        is_ended = not self.closed or ends_clearly(text, self.end, top=top, cut=False)
        return is_ended and not is_doubted(text, self.start, self.end)

    def values(self, key: str) -> list[str]:
        """Return the values of a key and of later ones of its kind ("final_score").

        Of a block without an end, fields of inner objects count only next to its own: alone they
        may be part of something that is cut.
        """
        fields = [
            field
            for field in self.fields
            if field.key.endswith(key)
            and (field.key == key or field.key[: -len(key)].rstrip("_ ") in _LATER)
        ]
        if not self.closed and not any(field.depth == 1 for field in fields):
            return []
        if fields and not any(field.key == key for field in fields):
            return [""]  # the later one alone says nothing that can be relied on
        return [field.value for field in fields]


def apart(text: str) -> tuple[list[Block], str] | None:
    r"""The outermost blocks of a text and what is around them, ``None`` if there are too many.

    >>> [block], around = apart("So: {'score': 2, 'why': 'it's {\"score\": 0}'}")
    >>> block.values("score"), block.closed
    (['2'], True)
    """
    blocks: list[Block] = []
    around, position = [], 0
    while (start := text.find("{", position)) >= 0:
        if len(blocks) == MOST_STATEMENTS:
            return None
        blocks.append(_Reader(text, start).read())
        around.append(text[position:start])
        position = blocks[-1].end
    return blocks, "\n".join([*around, text[position:]])


class _Reader:
    """Reads one block, in time linear in its length.

    Strings may hold braces, escaped quotes, and quotes that should have been escaped: one that no
    comma, colon or bracket follows does not end its string.
    """

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._start = self._position = start
        self._stack: list[str] = []
        self._fields: list[Field] = []
        self._key: str | None = None
        self._pending: Field | None = None
        """A value that nothing was read after."""

    def read(self) -> Block:
        text = self._text
        for _ in range(_MOST_TOKENS):
            if self._position >= len(text):
                break
            sign = text[self._position]
            if sign in "{[":
                if self._key is not None:
                    self._fields.append(Field(self._key, sign, self._depth))
                    self._key = None
                self._stack.append(sign)
                self._position += 1
            elif sign in "}]":
                self._settle()
                if self._stack[-1] + sign in ("{}", "[]"):
                    self._stack.pop()
                self._position += 1
                if not self._stack:
                    return Block(tuple(self._fields), self._start, self._position, closed=True)
            elif not self._between(sign) and not self._word(sign):
                break
        self._position = len(text)
        return Block(tuple(self._fields), self._start, self._position, closed=False)

    @property
    def _depth(self) -> int:
        return self._stack.count("{") if len(self._stack) < 64 else 64

    def _between(self, sign: str) -> bool:
        """Pass a sign between keys and values; return whether it was one."""
        if sign == "#" and self._key is None:
            line_end = self._text.find("\n", self._position)
            self._position = line_end if line_end >= 0 else len(self._text)
            return True
        if sign == ",":
            self._settle()
        elif sign == "\n":
            self._settle(keep_key=True)
        elif sign not in ":=" and not sign.isspace():
            return False
        self._position += 1
        return True

    def _settle(self, *, keep_key: bool = False) -> None:
        """Complete the value, as something follows it."""
        if self._pending is not None:
            self._fields.append(self._pending)
        self._pending = None
        if not keep_key:
            self._key = None

    def _word(self, sign: str) -> bool:
        """Read a string, a number or words; return whether it has an end."""
        is_value = self._key is not None or self._stack[-1] == "["
        if sign in _QUOTES and self._pending is None:
            end = _string_end(self._text, self._position + 1, sign)
            if end is None:
                return False
            word = self._text[self._position + 1 : end]
            self._position = end + 1
        else:
            match = (_VALUE if is_value else _KEY).match(self._text, self._position)
            if match is None:
                self._position += 1
                return True
            word, self._position = _COMMENT.split(match[0], maxsplit=1)[0], match.end()
        self._take(word.strip(), is_value=is_value)
        return True

    def _take(self, word: str, *, is_value: bool) -> None:
        if not is_value:
            if word[:1].isdigit() and self._fields and not _COLON.match(self._text, self._position):
                # A decimal comma: what was taken for a value is the part before it.
                last = self._fields.pop()
                word, self._key = f"{last.value},{word}", last.key
                self._pending = Field(last.key, word, last.depth)
                return
            self._key = word.strip("*_ ").casefold() or None
        elif self._key is not None:
            before = "" if self._pending is None else f"{self._pending.value} "
            self._pending = Field(self._key, before + word, self._depth)


def _string_end(text: str, start: int, quote: str) -> int | None:
    """Position of the quote that ends a string, ``None`` if there is none."""
    for match in _QUOTE_OR_ESCAPE[quote].finditer(text, start):
        if match[0] == quote and _STRING_ENDS.match(text, match.end()):
            return match.start()
    return None
