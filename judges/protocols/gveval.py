"""G-VEval: a judge reasons about a caption, then scores it; the score is an expectation.

From reference captions, from frames of the video, or both, along four dimensions (ACCR).

Source: G-VEval, section 3 and appendix B; released code ztangaj/gveval@fee3fd7.
Parity: listed alternatives that are scores are scaled to 1, whatever they sum to.
Deviation: that code takes the token after the first marker and its five likeliest alternatives, and
drops a caption whose reply it cannot read three times; it sends prompts without a picture as a
system message, which some chat templates refuse.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp
from typing import Final, Literal, NamedTuple

from lmms_eval_captions.judges.endpoint.replies import strip_reasoning
from lmms_eval_captions.judges.endpoint.request import Ask, Message, NumberToken, Picture, Reply
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.protocols import reading
from lmms_eval_captions.judges.protocols.asking import (
    JudgeConfig,
    content_words,
    recall,
    request_of,
)
from lmms_eval_captions.judges.protocols.prompt import Prompts, attach_pictures
from lmms_eval_captions.judges.protocols.reading import GREATER, UNCLEAR, Unclear
from lmms_eval_captions.judges.verdict import ScoreDistribution, ScoresJudgement

LOWEST: Final = 0
HIGHEST: Final = 100
_PART: Final = re.compile(r"([^0-9]*)([0-9]+)([^0-9]*)")
_ENDED: Final = {"": 1.0}


def number_distribution(
    tokens: Sequence[NumberToken], number: str, start: int
) -> ScoreDistribution | None:
    """Distribution over the complete numbers that could stand where a reply has its number.

    A number may be one token or several ("85", "8" + "5", "$8" + "5."). At each token the listed
    alternatives that lead to a number of the scale are scaled to 1; the probabilities of
    consecutive tokens are multiplied.

    After a token that the judge did not choose, the next probabilities are unknown. A number is
    complete there if nothing can follow it within the scale, or if the tokenizer does not split
    numbers. Otherwise what follows is as likely as after the chosen token, except after the
    beginning of 100: after "1" in place of "8", "15" and "100" are equally possible, and only the
    share that ended counts.

    Returns:
        From the lowest number to the highest, ``None`` if the tokens do not hold the number.

    Source:
        G-VEval, section 3.4, equations 1-3; ztangaj/gveval@fee3fd7:evaluation/gveval/scorer.py.
        Parity: for a number in one token, as GPT-4o writes every number up to 100. Deviation: that
        code knows only such numbers, and five alternatives in place of ten.

    >>> tokens = [
    ...     NumberToken(0, "8", {"8": -0.223144, "9": -1.609438}),
    ...     NumberToken(1, "5", {"5": -0.693147, "0": -0.693147}),
    ... ]
    >>> [(n, round(p, 3)) for n, p in number_distribution(tokens, "85", 0)]
    [(80, 0.4), (85, 0.4), (90, 0.1), (95, 0.1)]
    """
    path = _path(tokens, number, start)
    if path is None:
        return None
    in_one = len(path) == 1 or path[1].start >= start + len(number)
    names = (name for token in tokens for name in (token.text, *token.alternatives))
    is_never_split = in_one and any(re.search("[0-9]{2}", name) for name in names)
    rest: Mapping[str, float] = _ENDED
    for index in reversed(range(len(path))):
        prefix = number[: max(0, path[index].start - start)]
        shares: dict[str, float] = {}
        for name, logprob in path[index].alternatives.items():
            part = _PART.fullmatch(name)
            if part is not None and (index == 0 or not part[1]):
                is_chosen = name == path[index].text
                follows = rest if is_chosen else _unseen(prefix + part[2], rest)
                if part[3] or (is_never_split and not is_chosen):
                    follows = _ENDED
                for suffix, share in follows.items():
                    text = part[2] + suffix
                    shares[text] = shares.get(text, 0.0) + exp(logprob) * share
            elif index > 0:  # the number ended before this token
                shares[""] = shares.get("", 0.0) + exp(logprob)
        rest = _on_scale(shares, prefix)
    if not rest.get(number):
        return None
    return tuple(sorted((int(text), share) for text, share in rest.items()))


def _path(tokens: Sequence[NumberToken], number: str, start: int) -> list[NumberToken] | None:
    """The tokens that write the number, and the one after it if that could continue it."""
    end = start + len(number)
    path = [
        token for token in tokens if token.start < end and token.start + len(token.text) > start
    ]
    written = "".join(
        token.text[max(0, start - token.start) : max(0, end - token.start)] for token in path
    )
    if written != number or not all(_PART.fullmatch(token.text) for token in path):
        return None
    if path[-1].start + len(path[-1].text) == end:
        path += [token for token in tokens if token.start == end][:1]
    return path


def _unseen(prefix: str, rest: Mapping[str, float]) -> Mapping[str, float]:
    """Distribute what may follow digits that the judge did not choose."""
    if len(prefix) >= len(str(HIGHEST)) or prefix.startswith("0"):
        return _ENDED
    if str(HIGHEST).startswith(prefix):
        return {"": rest.get("", 0.0)}
    return _on_scale(rest, prefix) or _ENDED


def _on_scale(shares: Mapping[str, float], prefix: str) -> dict[str, float]:
    """Keep what makes a number of the scale after the digits before it, scaled to 1."""
    valid: dict[str, float] = {}
    for suffix, share in shares.items():
        text = prefix + suffix
        is_number = 0 < len(text) <= len(str(HIGHEST)) and (text == "0" or text[0] != "0")
        if share > 0.0 and is_number and int(text) <= HIGHEST:
            valid[suffix] = share
    total = sum(valid.values())
    return {suffix: share / total for suffix, share in valid.items()}


ACCR: Final = ("accuracy", "completeness", "conciseness", "relevance")
"""The four dimensions, in the order in which the paper asks for them."""

_SIGNS: Final = {
    "accuracy": ("αɑΑ𝛂𝛼𝜶", "alpha"),
    "completeness": ("βßϐΒ𝛃𝛽𝜷", "beta"),
    "conciseness": ("ψΨ𝛙𝜓𝝍", "psi"),
    "relevance": ("δΔ∂𝛅𝛿𝜹", "delta"),
}
_ALL_SIGNS: Final = "".join(signs for signs, _ in _SIGNS.values())
_MARKERS: Final = {
    name: rf"(?:[{signs}]|\\?(?<![a-z]){word}(?![a-z]))" for name, (signs, word) in _SIGNS.items()
}
_MARKER: Final = "|".join(rf"(?P<{name}>{marker})" for name, marker in _MARKERS.items())
_OPENING: Final = re.compile(rf"(?:{_MARKER})\Z", re.IGNORECASE)
_CLOSING: Final = re.compile(_MARKER, re.IGNORECASE)
_NUMBER: Final = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?")
_REACH: Final = 72
"""Characters around a number in which its markers and its label must stand."""
# Emphasis, brackets and LaTeX; no minus sign and no point, which belong to numbers.
_DRESS: Final = r"(?:[\s*_`{}()\[\]$=\"'|\\]|(?<=\\)(?:boxed|text|mathbf|left|right))"
_DRESS_BEFORE: Final = re.compile(rf"(?:{_DRESS}|[:,])*\Z")
_DRESS_BEHIND: Final = re.compile(rf"(?:{_DRESS})*")
_SCALE: Final = re.compile(r"\s*(?:(?:/|out\s+of)\s*(?P<of>[0-9]{1,6})|(?P<percent>%))")
_MORE: Final = re.compile(
    r"[ \t*_`\"')\]}$]{0,8}(?:(?:/|out\s+of\b|of\b)\s{0,4}[$\\]{0,2}(?P<of>[0-9]+)"
    r"|(?:[-~,;&|+\u00b1\u2192]|->|to\b|or\b|and\b|then\b|no,)\s{0,4}[$\\]{0,2}[0-9])"
)
"""Text after a marked number that makes it no score of the scale."""
_TOP_OF_SCALE: Final = re.compile(r"\bout\s+of[\s$\\]*\Z", re.IGNORECASE)
_BEFORE_NUMBER: Final = re.compile(
    r"[0-9.,]\Z|[-~/\u00b1\u2248\u2264\u2265<]\s?\Z"
    rf"|{GREATER}\s?\Z"
    r"|\\(?:leq?|geq?|lt|gt|approx|sim)\b[\s{]{0,3}\Z"
)
_LABEL: Final = re.compile(
    r"(?:(?:\b(?P<named>accuracy|completeness|conciseness|relevance|final|overall)[\s*_]+score"
    r"|(?P<quoted>[\"'](?:accuracy|completeness|conciseness|relevance|overall)(?:_score)?[\"']))"
    r"[\s*_\"']*(?:is\b|:|=|\|)?"
    r"|(?:\n[\s*_#|•-]*(?:[0-9]{1,2}[.)]\s*)?|\b)"
    r"(?P<line>accuracy|completeness|conciseness|relevance|final|overall)[\s*_]*[:|][\s*_]*"
    r"|(?:\n|[.!?]\s)[\s*_#|•-]*(?:(?:the|my)\s+)?(?P<score>score)[\s*_]*(?:is\b|:|=))\W{0,3}\Z",
    re.IGNORECASE,
)
# A look at the first sign spares the alternatives almost everywhere.
_ANCHOR: Final = re.compile(
    rf"(?=[{_ALL_SIGNS}$abcdfoprs])(?:[{_ALL_SIGNS}$]+|(?<![a-z])(?:alpha|beta|psi|delta)(?![a-z])"
    r"|score|accuracy|completeness|conciseness|relevance|overall|final)",
    re.IGNORECASE,
)
_LINE_ENDS: Final = re.compile(
    r"(?:\s*(?:/|out\s+of)\s*[0-9]{1,6}|\s*%)?[ \t*_`'\")\]]{0,8}(?:\Z|[\n.;,(|\u2014]|\s-\s)",
    re.IGNORECASE,
)
_SENTENCE_ENDS: Final = re.compile(r"\n|[.!?]\s")
_NEXT_SENTENCE: Final = re.compile(r"[.!?](?:\s|\Z)")
"""End of a sentence, which a label and its number do not span."""
_MOST_NUMBERS: Final = 60
"""Numbers near a marker or a label; a reply with more of them scores nothing."""


class Written(NamedTuple):
    """A number as a judge wrote it, and its position in the reply's text if that is known."""

    text: str
    start: int | None


def read_scores(reply: Reply) -> dict[str, Written] | None:
    """Every dimension's number; ``None`` if one cannot be read.

    All numbers that stand between a dimension's markers, or that a sentence or a line names as its
    score, must be the same. A range, another scale ("8/10"), a number off the scale, and a marker
    that contradicts its sentence are unreadable.
    """
    stripped = strip_reasoning(reply.text)
    if len(stripped) > reading.MOST_CHARACTERS:
        return None
    whole = reply.text.rstrip()
    offset = len(whole) - len(stripped) if whole.endswith(stripped) else None
    statements = _statements(reading.same_signs(stripped), cut=reading.may_be_cut(reply))
    scores: dict[str, Written] = {}
    for dimension in ACCR:
        own = [(value, number) for name, value, number in statements if name == dimension]
        if reading.the_one([value for value, _ in own]) is None:
            return None
        # Parity: the released code takes the first.
        first = own[0][1]
        scores[dimension] = Written(first[0], None if offset is None else first.start() + offset)
    return scores


def _statements(text: str, *, cut: bool) -> list[tuple[str, float | Unclear, re.Match[str]]]:
    """Dimension, value and number of everything that is said to be a dimension's score."""
    statements: list[tuple[str, float | Unclear, re.Match[str]]] = []
    for number in _candidates(text):
        start, end = number.span()
        line_start = "\n" if start <= _REACH else ""
        before = line_start + text[max(0, start - _REACH) : start]
        behind = text[end : end + _REACH]
        if _TOP_OF_SCALE.search(before):
            continue
        opening, label = _before(before)
        closing, length = _behind(behind)
        is_marked = opening is not None and opening == closing
        if label is not None and label not in ACCR:
            continue  # it is another score
        named = _LABEL.search(before) if opening is None and label is not None else None
        if named is not None and named["line"] is not None and not _LINE_ENDS.match(behind):
            continue  # something else is on its line
        paired = {opening, closing} if opening and closing else set()
        about = {*paired, label, opening if label else None} - {None}
        if not about:
            continue
        is_clear = len(about) == 1 and _is_clear(
            text, number, end + length if is_marked else None, cut=cut
        )
        if opening is not None and not is_marked:
            # More than the number stands before the closing marker ("$70 + 5$").
            sentence = _SENTENCE_ENDS.split(behind, maxsplit=1)[0]
            is_clear = is_clear and not re.search(_MARKERS[opening], sentence, re.IGNORECASE)
        said: float | Unclear = float(number[0]) if is_clear else UNCLEAR
        statements += [(str(name), said, number) for name in about]
    return statements


def _candidates(text: str) -> list[re.Match[str]]:
    """Numbers that a marker or a label may be about."""
    anchors = [anchor.end() for anchor in _ANCHOR.finditer(text)]
    candidates: list[re.Match[str]] = []
    index, latest = 0, -_REACH - 1
    for number in _NUMBER.finditer(text):
        while index < len(anchors) and anchors[index] <= number.start():
            latest = anchors[index]
            index += 1
        if number.start() - latest <= _REACH:
            candidates.append(number)
    return candidates if len(candidates) <= _MOST_NUMBERS else []


def _before(text: str) -> tuple[str | None, str | None]:
    """The dimension of the marker before a number, and of the label before that."""
    dress = _DRESS_BEFORE.search(text)
    marker = _OPENING.search(text[: dress.start()] if dress else text)
    dimension = None if marker is None else marker.lastgroup
    text = text if marker is None else text[: marker.start()]
    dress = _DRESS_BEFORE.search(text)
    for candidate in (text, text[: dress.start()] if dress else text):
        label = _LABEL.search(candidate)
        if label is not None and not _NEXT_SENTENCE.search(
            candidate, label.end(label.lastgroup or 0)
        ):
            name = label["named"] or label["quoted"] or label["line"] or label["score"]
            name = name.strip("\"'").casefold().removesuffix("_score")
            return dimension, "overall" if name in ("final", "score") else name
    return dimension, None


def _behind(text: str) -> tuple[str | None, int]:
    """The dimension of the marker after a number, and how far it reaches."""
    scale = _SCALE.match(text)
    at = scale.end() if scale else 0
    dress = _DRESS_BEHIND.match(text, at)
    marker = _CLOSING.match(text, dress.end() if dress else at)
    return (None, 0) if marker is None else (marker.lastgroup, marker.end())


def _is_clear(text: str, number: re.Match[str], closed: int | None, *, cut: bool) -> bool:
    """Return whether a number is on the scale and nothing around it makes it another.

    ``closed`` is the position after its closing marker, if there is one.
    """
    start, end = number.span()
    digits, before = number[0], text[max(0, start - 12) : start]
    is_bracketed = before[-1:] == "<" and text[end : end + 1] == ">"
    if (
        len(digits) > 6
        or digits[0] in "+-"
        or not LOWEST <= float(digits) <= HIGHEST
        or (_BEFORE_NUMBER.search(before) and not is_bracketed)
        or reading.is_doubted(text, start, end)
    ):
        return False
    unit = _SCALE.match(text, end)
    if unit is not None and not (unit["percent"] or unit["of"] == str(HIGHEST)):
        return False
    if closed is not None:
        more = _MORE.match(text, closed)
        if more is not None:
            return more["of"] == str(HIGHEST)
        is_ellipsis = text.startswith("..", closed)  # as in the form that the prompt asks for
        return is_ellipsis or reading.ends_clearly(text, closed, top=HIGHEST, cut=False)
    return reading.ends_clearly(text, end if unit is None else unit.end(), top=HIGHEST, cut=cut)


Setting = Literal["ref_only", "ref_free", "combined"]

_TOP_LOGPROBS: Final = 10
"""Alternatives asked for. Deviation: the released code asks for 5, which cuts flat distributions;
the most that OpenAI gives, 20, makes every reply a megabyte."""
_LITERAL: Final = {f"{name}_score": f"{{{{{name}_score}}}}" for name in ACCR}
"""Texts that look like slots and go to the judge as they are."""
_AS_PRINTED: Final = Prompts()
_MARKS: Final = dict(zip(ACCR, "αβψδ", strict=True))


@dataclass(frozen=True, slots=True)
class GVeval:
    """One way of scoring video captions, from 0 to 100 along four dimensions."""

    setting: Setting
    """References, video or both, which the judge is shown next to the caption."""

    @property
    def sees(self) -> bool:
        """Return whether the judge is shown a picture."""
        return self.setting != "ref_only"

    async def judge(
        self,
        ask: Ask,
        caption: str,
        *,
        references: Sequence[str],
        picture: Callable[[], Picture] | None,
        config: JudgeConfig,
        run: int,
    ) -> ScoresJudgement:
        """Score one caption.

        Args:
            ask: Puts a request to the judge.
            caption: Candidate caption.
            references: Reference captions, >= 1; not used by ``ref_free``.
            picture: Makes the picture that the judge is shown, in a thread; not for ``ref_only``.
            config: The benchmark's judge.
            run: Judge run, sent as the seed, >= 0.

        Raises:
            SettingsError: If the setting needs references or a picture and there are none.
        """
        messages = self.messages(caption, references, prompts=config.prompts)
        if self.sees or (config.always_frames and picture is not None):
            if picture is None:
                raise SettingsError(f"G-VEval: setting {self.setting!r} needs a picture, got none")
            messages = attach_pictures(messages, await asyncio.to_thread(picture))
        request = request_of(
            "gveval",
            messages,
            config=config,
            seed=run,
            stand_in=partial(self._stand_in, caption, references),
            logprobs=True,
            top_logprobs=_TOP_LOGPROBS,
        )
        asked = await ask(request, self.read)
        numbers, distributions, plain = asked.value or ({}, {}, False)
        return ScoresJudgement(
            run=run,
            **asked.outcome(),
            numbers=numbers,
            distributions=distributions,
            scoring=None if asked.value is None else "plain" if plain else "logprobs",
        )

    @property
    def prompt_name(self) -> str:
        """Name of the prompt that the judge is asked with."""
        return f"gveval_accr_{self.setting}"

    def messages(
        self, caption: str, references: Sequence[str], *, prompts: Prompts = _AS_PRINTED
    ) -> list[Message]:
        """The prompt as printed, or as replaced, without a picture.

        References are joined as in the released code (the paper does not say), with the closing
        quotation mark that it forgets.
        """
        if self.setting != "ref_free" and not references:
            raise SettingsError(f"G-VEval: setting {self.setting!r} needs reference captions")
        prompt = prompts.load(self.prompt_name)
        joined = "; ".join(f"'{reference}'" for reference in references)
        return prompt.render(Caption=caption, Reference=joined, **_LITERAL)

    def read(
        self, reply: Reply
    ) -> tuple[dict[str, float], dict[str, ScoreDistribution], bool] | None:
        """Numbers, distributions, and whether one of them is plain; ``None`` is unreadable."""
        written = read_scores(reply)
        if written is None:
            return None
        numbers = {name: float(text) for name, (text, _) in written.items()}
        weighed: dict[str, ScoreDistribution | None] = dict.fromkeys(numbers)
        for name, (text, start) in written.items():
            if reply.logprobs is not None and start is not None and text.isdecimal():
                weighed[name] = number_distribution(reply.logprobs, text, start)
        distributions = {name: weighed[name] or ((numbers[name], 1.0),) for name in numbers}
        return numbers, distributions, not all(weighed.values())

    def _stand_in(self, caption: str, references: Sequence[str]) -> str:
        """Shares of words in common with the references; without them, how much a caption says."""
        words = content_words(caption)
        if self.setting == "ref_free":
            shares = [min(1.0, len(words) / 10)] * 4
        else:
            reference_words = content_words(" ".join(references))
            precise = len(words & reference_words) / len(words) if words else 0.0
            complete = max(recall(reference, caption) for reference in references)
            length = max(len(content_words(reference)) for reference in references)
            shares = [precise, complete, min(1.0, length / max(1, len(words))), precise]
        scores = [round(HIGHEST * share) for share in shares]
        return "Words in common. " + " ".join(
            f"The {name.capitalize()} score is {_MARKS[name]}{score}{_MARKS[name]}."
            for name, score in zip(ACCR, scores, strict=True)
        )
