"""Reading VDC's verdicts: a pair of yes or no and a score from 0 to 5.

Source: AuroraCap, appendix R; released code wenhaochai/aurora, which takes the reply for a Python
dictionary. Deviation: that code drops a whole caption if one reply is no dictionary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.protocols import reading
from lmms_eval_captions.judges.protocols.reading import GREATER, NUMBER, SIGNS, UNCLEAR, Unclear
from lmms_eval_captions.judges.verdict import Match

_VERDICTS: Final[dict[str, Match]] = {"yes": "yes", "true": "yes", "no": "no", "false": "no"}
_TOP: Final = 5.0
_AS_ASKED: Final = re.compile(r"\{'pred': '(yes|no)', 'score': ([0-5](?:\.[0-9]{1,6})?)\}")
"""The form that the prompt asks for, which is most of what comes."""
_SCORE_TEXT: Final = re.compile(r"\+?([0-9]{1,6}(?:\.[0-9]{0,6})?|\.[0-9]{1,6})(?:\s*/\s*5)?")
_PRED: Final = re.compile(
    rf"\b(?:pred(?:iction)?|verdict|final)\b{SIGNS}(?:\bis\b{SIGNS})?(?P<verdict>yes|no|true|false)\b",
    re.IGNORECASE,
)
_ODD_SCORE: Final = re.compile(
    rf"\bscore\b{SIGNS}(?:\b(?:is|of)\b{SIGNS})?(?:[-+.,~<]|{GREATER})\s?[0-9]", re.IGNORECASE
)
_CONCLUDED: Final = re.compile(
    rf"\b(?:so|thus|therefore|hence),?\s+(?:the|my)\s+answer\s+is{SIGNS}{NUMBER}", re.IGNORECASE
)
_ANSWER_LINE: Final = re.compile(
    r"^[ \t*_`>-]{0,8}the\s+answer\s+is:?\s+[*_`'\"]{0,3}(?P<verdict>yes|no)\b[.!*_`'\" \t]{0,8}$",
    re.IGNORECASE | re.MULTILINE,
)
_ASSIGNED: Final = re.compile(r"\[\s?['\"](?:pred|score)['\"]\s?\]\s{0,4}[-+*/]?=(?!=)")
"""Code that changes a pair."""
_LEADING: Final = re.compile(
    r"(?:\A|(?<=\n)|(?<=[.!?]\s))[ \t*_`'\"#>(\[-]{0,8}(?P<verdict>yes|no)\b", re.IGNORECASE
)
_BARE_SCORE: Final = re.compile(rf"[\s*_`'\",;:|/(\[]{{1,8}}{NUMBER}")
_LABEL_ENDS: Final = re.compile(
    r"[ \t*_`'\")\]]{0,8}(?:\Z|[,;.!\n}|:<]|\s-\s|\u2014|(?:and|with|score|because|since|as)\b|\()",
    re.IGNORECASE,
)
_SAYS_ANOTHER: Final = re.compile(r"[\s*_`'\",;.!)\]/|:-]{0,8}(?:yes|no)\b(?=\W*(?:$|\n|[.,;:!]))",
                                  re.IGNORECASE)  # fmt: skip


def read_match(reply: Reply) -> tuple[Match, float] | None:
    """Verdict and score in [0, 5] of a reply of the second step, ``None`` if it cannot be read.

    Every dictionary, every ``pred`` and ``score``, and every yes or no that begins a sentence must
    say the same.

    >>> read_match(Reply("{'pred': 'yes', 'score': 4.8}"))
    ('yes', 4.8)
    """
    text = reading.plain(reply)
    as_asked = _AS_ASKED.fullmatch(text)
    if as_asked is not None:
        number = float(as_asked[2])
        return (_VERDICTS[as_asked[1]], number) if number <= _TOP else None
    cut = reading.may_be_cut(reply)
    parts = reading.apart(text)
    if parts is None:
        return None
    fields, around = parts
    preds: list[Match | Unclear] = [UNCLEAR] if reading.is_declined(around) else []
    scores: list[float | Unclear] = []
    for block in fields:
        found_preds, found_scores = block.values("pred"), block.values("score")
        if found_preds and found_scores and not block.is_clear(text, top=_TOP):
            preds.append(UNCLEAR)
        preds += [_VERDICTS.get(value.casefold().rstrip(".! "), UNCLEAR) for value in found_preds]
        scores += map(_score, found_scores)
    preds += _labelled_verdicts(around, cut=cut)
    scores += _labelled_scores(around, cut=cut)
    for pred, score in _sentences(around, cut=cut):
        preds.append(pred)
        scores += [] if score is None else [score]
    verdict: Match | None = reading.the_one(preds)
    value = reading.the_one(scores)
    return None if verdict is None or value is None else (verdict, value)


def _score(value: str) -> float | Unclear:
    written = _SCORE_TEXT.fullmatch(value)
    if written is None or float(written[1]) > _TOP:
        return UNCLEAR
    return float(written[1])


def _labelled_verdicts(text: str, *, cut: bool) -> Iterator[Match | Unclear]:
    for label in reading.places(_PRED, text):
        end = label.end()
        is_clear = _LABEL_ENDS.match(text, end) and not (cut and reading.is_last(text, end))
        is_other = _SAYS_ANOTHER.match(text, end) or reading.is_doubted(text, label.start(), end)
        yield UNCLEAR if is_other or not is_clear else _VERDICTS[label["verdict"].casefold()]


def _labelled_scores(text: str, *, cut: bool) -> Iterator[float | Unclear]:
    for pattern in (reading.SCORE_LABEL, _CONCLUDED):
        for label in reading.places(pattern, text):
            is_told = reading.is_of_task(text, label.start())
            yield UNCLEAR if is_told else _number(label, text, cut=cut)
    if _ODD_SCORE.search(text) or _ASSIGNED.search(text):
        yield UNCLEAR


def _sentences(text: str, *, cut: bool) -> Iterator[tuple[Match | Unclear, float | Unclear | None]]:
    """Sentences that begin with yes or no, with a bare score if one follows; answer lines."""
    for line in reading.places(_ANSWER_LINE, text):
        yield _VERDICTS[line["verdict"].casefold()], None
    for label in reading.places(_LEADING, text):
        end = label.end("verdict")
        bare = _BARE_SCORE.match(text, end)
        if bare is not None:
            yield _VERDICTS[label["verdict"].casefold()], _number(bare, text, cut=cut)
        elif _SAYS_ANOTHER.match(text, end):
            yield UNCLEAR, None
        elif _LABEL_ENDS.match(text, end) and not (cut and reading.is_last(text, end)):
            yield _VERDICTS[label["verdict"].casefold()], None


def _number(match: re.Match[str], text: str, *, cut: bool) -> float | Unclear:
    value = float(match["number"])
    is_clear = reading.is_clear(text, match.start(), match.end("number"), top=_TOP, cut=cut)
    return value if is_clear and 0.0 <= value <= _TOP else UNCLEAR
