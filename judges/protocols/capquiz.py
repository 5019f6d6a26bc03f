"""CapQuiz: a quiz with options, answered from the caption by letter."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Ask, Reply
from lmms_eval_captions.judges.protocols import reading
from lmms_eval_captions.judges.protocols.asking import JudgeConfig, recall, request_of
from lmms_eval_captions.judges.protocols.reading import UNCLEAR, Unclear
from lmms_eval_captions.judges.verdict import QuizJudgement, QuizOutcome

LETTERS: Final = "ABCDEF"

# Bounded, as several of these stand side by side: no reply may take long to read.
_OPEN: Final = r"[\s*_`'\"#>\[({<\\$-]{0,8}"
_CLOSE: Final = r"[\s*_`'\"\])}>\\$.,;!]{0,8}"
_NOUN: Final = r"(?:answer|option|choice|letter)"
_PREFIX: Final = (
    r"(?:(?:so|thus|therefore|hence)\b[\s,]{0,3})?"
    r"(?:(?:the|my|best|correct|right|final|answer)\s+){0,4}"
    rf"(?:{_NOUN}{_OPEN}(?:is|would\s+be|:|=)?{_OPEN}:?{_OPEN})?(?:option\s+)?"
)
_ALONE: Final = re.compile(rf"{_OPEN}{_PREFIX}{_OPEN}(?P<letter>[a-z]){_CLOSE}:?", re.IGNORECASE)
_LONGEST_ALONE: Final = 120
_LEADING: Final = re.compile(
    rf"{_OPEN}{_PREFIX}{_OPEN}(?P<letter>[a-z])[\s*_`]{{0,8}}"
    r"(?:[.:](?!\w)|,\s|[)\]\u2014]|\s-|(?<=\s)(?=(?:because|since|as)\b))[\s*_`]{0,8}(?=\S)",
    re.IGNORECASE,
)
_STATED: Final = re.compile(
    rf"(?:\b|_)(?<!\bno\s){_NOUN}{_OPEN}(?:is|would\s+be|must\s+be|should\s+be|:|=|(?<=>)){_OPEN}:?{_OPEN}"
    rf"(?:(?:option|letter|choice)\s+)?{_OPEN}(?P<letter>[a-z])(?![\w+#'\u2019-]|\.\w)",
    re.IGNORECASE,
)
_CHOSEN: Final = re.compile(
    rf"\bI\s+(?:would\s+|will\s+)?(?:choose|select|pick|go\s+with)\s+(?:(?:option|letter|choice)\s+)?{_OPEN}"
    r"(?P<letter>[A-F])\b(?![+#'\u2019-]|\.\w)"
)
_THIS_IS: Final = re.compile(
    rf"\b(?i:(?:this|that|it)\s+is\s+(?:(?:the|my)\s+)?(?P<noun>{_NOUN}))\s+{_OPEN}(?P<letter>[A-F])"
    r"\b(?![+#'\u2019-]|\.\w)"
)
_LINE_STARTS: Final = re.compile(r"(?:\A|\n)[\s*_`>#-]*\Z")
_IS_RIGHT: Final = re.compile(
    rf"(?<![\w'\u2019-])(?P<letter>[A-F])\b{_CLOSE}(?:\([^()\n]{{0,80}}\)\s{{0,2}})?"
    r"\bis\s+(?:the\s+)?(?:most\s+|only\s+)?(?:correct|right|best|accurate|appropriate|answer)\b"
)
_WORD_GOES_ON: Final = re.compile(
    r"[\s*_`'\"\])}]{0,8}(?:\Z|[.,;:\n\u2014]|\s-|\s{0,4}\(|(?:because|since|as|based|given|due|which)\b)",
    re.IGNORECASE,
)
_ANOTHER: Final = re.compile(
    r"[\s*_`'\"\])}.]{0,8}(?:(?:and|or|nor|/|&|\+)[\s*_`'\"\[({]{0,8}[A-F]\b|,[\s*_`'\"\[({]{0,8}(?-i:[A-F])\b"
    r"|-[A-F]\b|->|\?|(?:[A-F]\b[\s\])}.,]{0,8}){1,6}\Z)",
    re.IGNORECASE,
)
_DENIED: Final = re.compile(
    r"[ \t*_`'\"\])}.,:;\u2014-]{0,8}(?:(?:is\s+)?(?:not\s+)?(?:wrong|incorrect|false)\b"
    r"|no\b\s{0,2}(?:[.,;:!]|\Z)|\((?:wrong|incorrect)\b)",
    re.IGNORECASE,
)
"""Words that take a letter back on its own line."""
_ITEM: Final = re.compile(r"[.;,]\s{1,2}[A-F][:)]\s")
"""The next item of a list on the same line."""
_FAR: Final = re.compile(r"[\W_]*[A-F][\W_]*")
"""Another letter alone on the line, however far."""
_LINE: Final = re.compile(r"[^\n]+")
_LONGEST_OPTION: Final = 400


def read_choice(reply: Reply, options: Sequence[str]) -> str | None:
    """The letter that a reply chooses, ``None`` if it chooses none on the menu, or several.

    A line that is a letter alone, a letter before its option's text, and every letter that is
    stated as the answer must be the same. The text of an option counts if it is all of the reply; a
    list of the options before the answer does not.
    """
    text = unicodedata.normalize("NFKC", reading.plain(reply))
    if len(text) > reading.MOST_CHARACTERS:  # one sign may have become eighteen
        return None
    cut = reading.may_be_cut(reply)
    words = [_words(option) for option in options]
    lines = islice(_lines(text, words, cut=cut), reading.MOST_STATEMENTS + 1)
    statements = [*_stated(text, words, cut=cut), *lines]
    if statements:
        return reading.the_one(statements)
    own_words = _words(text)
    same = [i for i, option in enumerate(words) if own_words and option == own_words]
    return LETTERS[same[0]] if len(same) == 1 and not cut else None


def _stated(text: str, options: Sequence[str], *, cut: bool) -> Iterator[str | Unclear]:
    for pattern in (_STATED, _CHOSEN, _THIS_IS, _IS_RIGHT):
        for stated in reading.places(pattern, text):
            end = stated.end() if pattern is _IS_RIGHT else stated.end("letter")
            is_article = stated["letter"] in "aA" and not _WORD_GOES_ON.match(text, end)
            if pattern is _STATED and is_article:
                continue
            if pattern is _THIS_IS and not _is_answer(stated, text):
                continue
            is_cut = cut and reading.is_last(text, end)
            if is_cut or reading.is_doubted(text, stated.start(), end):
                yield UNCLEAR
            elif pattern is _IS_RIGHT:
                yield stated["letter"]
            else:
                yield _unless_contradicted(stated["letter"], text, end, options)


def _is_answer(stated: re.Match[str], text: str) -> bool:
    """Return whether "this is option B" answers, and does not only mention an option."""
    is_line = _LINE_STARTS.search(text[max(0, stated.start() - 12) : stated.start()]) is not None
    is_answer = stated["noun"].casefold() == "answer" or is_line
    return is_answer and _WORD_GOES_ON.match(text, stated.end("letter")) is not None


def _lines(text: str, options: Sequence[str], *, cut: bool) -> Iterator[str | Unclear]:
    every_line = islice(_LINE.finditer(text), 500)
    lines = [line for line in every_line if not line[0].isspace()]
    leading: list[tuple[str, str | Unclear]] = []
    is_list = starts_at_a = False
    for number, place in enumerate(lines):
        line = place[0]
        is_open = cut and number == len(lines) - 1
        is_fence = line.startswith("```") and not line.endswith("`")
        alone = None if is_fence else _ALONE.fullmatch(line[:_LONGEST_ALONE])
        if alone is not None and len(line) <= _LONGEST_ALONE:
            is_unclear = is_open or reading.is_doubted(text, place.start(), place.end())
            yield UNCLEAR if is_unclear else _on_menu(alone["letter"])
            continue
        leading_letter = _LEADING.match(line) if len(leading) <= reading.MOST_STATEMENTS else None
        if leading_letter is None:
            continue
        letter = leading_letter["letter"].upper()
        end = leading_letter.end("letter")
        is_known = letter in LETTERS and not is_open
        own = options[LETTERS.index(letter)] if is_known else None
        is_option = is_known and _words(line[leading_letter.end() :]) == own
        if number == 0 and not is_option and _FAR.fullmatch(line, end):
            yield UNCLEAR
        if number == 0 or is_option:
            is_unclear = (
                reading.is_doubted(text, place.start(), place.start() + end)
                or _ITEM.search(line, end) is not None
                or (not is_option and reading.is_left_open(line[end:]))
            )
            choice = _unless_contradicted(letter, line, end, options)
            leading.append((letter, UNCLEAR if is_unclear else choice))
        is_list = is_list or (letter == "B" and starts_at_a)
        starts_at_a = starts_at_a or (number == 0 and letter == "A" and not is_option)
    letters = "".join(letter for letter, _ in leading)
    if is_list or (len(letters) >= 3 and LETTERS.startswith(letters)):
        return  # the options from A on
    # A reply that was cut after its first option may have continued with the others.
    is_begun = cut and letters and LETTERS.startswith(letters)
    yield from [UNCLEAR] if is_begun else [statement for _, statement in leading]


def _on_menu(letter: str) -> str | Unclear:
    return letter.upper() if letter.upper() in LETTERS else UNCLEAR


def _unless_contradicted(letter: str, text: str, end: int, options: Sequence[str]) -> str | Unclear:
    """The letter, unless another letter follows it, or the text of another option alone."""
    line_end = text.find("\n", end, end + _LONGEST_OPTION)
    rest = text[end : line_end if line_end >= 0 else end + _LONGEST_OPTION]
    words = _words(rest) if len(rest) < _LONGEST_OPTION else ""
    same = [LETTERS[i] for i, option in enumerate(options) if words and option == words]
    if letter.upper() in same:
        return letter.upper()
    if same or _ANOTHER.match(text, end) or _DENIED.match(rest):
        return UNCLEAR
    return _on_menu(letter)


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


UNKNOWN: Final = "Cannot be determined"
"""The option that is added to the five of a question."""
N_OPTIONS: Final = 5


@dataclass(frozen=True, slots=True)
class Question:
    """One question of CapQuiz."""

    category: str
    question: str
    options: tuple[str, ...]
    """Five, different from each other."""
    answer: str


async def judge_question(
    ask: Ask, question: Question, caption: str, *, config: JudgeConfig, run: int
) -> QuizJudgement:
    """One question of one caption."""
    options = (*question.options, UNKNOWN)
    lines = (f"{letter}. {text}" for letter, text in zip(LETTERS, options, strict=True))
    messages = config.prompts.load("capquiz_answer").render(
        caption=caption,
        question=question.question,
        options="\n".join(lines),
        option_id_str="A, B, C, D, E, or F",
    )
    stand_in = partial(_lexical_choice, question.options, caption)
    request = request_of("capquiz_answer", messages, config=config, seed=run, stand_in=stand_in)
    asked = await ask(request, partial(read_choice, options=options))
    choice = None if asked.value is None else options[LETTERS.index(asked.value)]
    return replace(
        silent_judgement(question, run),
        choice=choice,
        verdict=None if choice is None else outcome(choice, question.answer),
        **asked.outcome(),
    )


def silent_judgement(question: Question, run: int) -> QuizJudgement:
    """Judge an empty caption: the answer cannot be determined."""
    return QuizJudgement(
        category=question.category,
        question=question.question,
        answer=question.answer,
        run=run,
        choice=UNKNOWN,
        verdict=outcome(UNKNOWN, question.answer),
    )


def outcome(choice: str, answer: str) -> QuizOutcome:
    """Return the outcome of a chosen option (section 3.4).

    >>> outcome("red", "red"), outcome("blue", "red"), outcome(UNKNOWN, "red")
    ('true_positive', 'false_positive', 'false_negative')
    """
    if choice == UNKNOWN:
        return "false_negative"
    return "true_positive" if choice == answer else "false_positive"


def _lexical_choice(options: Sequence[str], caption: str) -> str:
    """Letter of the option that shares most words with a caption, ``F`` if none shares half."""
    shares = [recall(option, caption) for option in options]
    best = max(shares)
    return LETTERS[shares.index(best)] if best >= 0.5 else LETTERS[-1]
