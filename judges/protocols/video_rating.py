"""A video and its caption rated on scales for people."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Ask, Picture, Reply
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.protocols import reading
from lmms_eval_captions.judges.protocols.asking import JudgeConfig, content_words, request_of
from lmms_eval_captions.judges.protocols.prompt import attach_pictures
from lmms_eval_captions.judges.protocols.reading import NUMBER, SIGNS, UNCLEAR, Unclear
from lmms_eval_captions.judges.verdict import RatingsJudgement

DIMENSIONS: Final = ("trustworthiness", "coverage", "overall")
"""Dimensions that are rated, in the order of the form."""
LOWEST: Final = 1
HIGHEST: Final = 5

_RATING: Final = re.compile(r"\+?([0-9]{1,6})(?:\.0{1,6})?(?:\s*/\s*5)?")
_FORM: Final = re.compile(r"<?int 1-5>?")
"""Placeholder of a rating in the prompt's form."""
_LABEL: Final = re.compile(
    r"\b(?P<name>trustworthiness|coverage|overall)\b[*_\"'` ]{0,4}(?:\((?:precision|recall)\))?"
    r"[*_ ]{0,4}(?:quality\b)?[*_ ]{0,4}"
    r"(?:(?:score|rating)\b[*_\"'` ]{0,4}(?:[:=|]|is\b|of\b)|[*_\"'` ]{0,4}[:=|])"
    rf"{SIGNS}{NUMBER}",
    re.IGNORECASE,
)
"""A number that is named as a rating outside of the form."""

Statement = tuple[str, int | Unclear]


def read_ratings(reply: Reply) -> dict[str, int] | None:
    """The rating of each dimension, in [1, 5], ``None`` if one of them cannot be read.

    They are read from the ``scores`` of the form alone. All forms, and ratings that are named
    outside of them, must say the same; the analysis within a form does not count.
    """
    text = reading.plain(reply)
    parts = reading.apart(text)
    if parts is None:
        return None
    forms, around = parts
    stated = [list(_in_form(form, text)) for form in forms]
    if not any(stated) or reading.is_declined(around):
        return None
    statements = [*chain(*stated), *_named(around, cut=reading.may_be_cut(reply))]
    ratings: dict[str, int] = {}
    for dimension in DIMENSIONS:
        rating = reading.the_one([value for name, value in statements if name == dimension])
        if rating is None:
            return None
        ratings[dimension] = rating
    return ratings


def _in_form(form: reading.Block, text: str) -> Iterator[Statement]:
    """Statements of a form; none if it is the prompt's own."""
    opened: dict[int, str] = {}
    found: list[tuple[str, str]] = []
    for field in form.fields:
        if field.value in ("{", "["):
            opened[field.depth] = field.key
        elif field.key in DIMENSIONS and opened.get(field.depth - 1) == "scores":
            found.append((field.key, field.value))
    if all(_FORM.fullmatch(value) for _, value in found):
        return
    # What follows in a form that does not end may be another rating.
    is_clear = form.closed and form.is_clear(text, top=None)
    for name, value in found:
        yield name, _rating(value) if is_clear else UNCLEAR


def _named(text: str, *, cut: bool) -> Iterator[Statement]:
    for label in reading.places(_LABEL, text):
        end = label.end("number")
        is_clear = reading.is_clear(text, label.start(), end, top=float(HIGHEST), cut=cut)
        yield label["name"].casefold(), _rating(label["number"]) if is_clear else UNCLEAR


def _rating(value: str) -> int | Unclear:
    written = _RATING.fullmatch(value)
    if written is None or not LOWEST <= int(written[1]) <= HIGHEST:
        return UNCLEAR
    return int(written[1])


PROMPT: Final = "video_rating"
_WORDS: Final = 10


@dataclass(frozen=True, slots=True)
class ShownVideo:
    """The one question about a caption: how good it is, given the frames of its video."""

    frames: Callable[[int], Sequence[Picture]]
    """Makes so many frames of the video, in order of time; a shorter video has fewer."""


async def judge_video(
    ask: Ask, question: ShownVideo, caption: str, *, config: JudgeConfig, run: int
) -> RatingsJudgement:
    """Rate one caption.

    Raises:
        SettingsError: If the configuration does not say how many frames are shown.
    """
    if config.frames is None:
        raise SettingsError("metadata.judge: expected frames of a judge that sees the video")
    messages = config.prompts.load(PROMPT).render(candidate_caption=caption)
    pictures = await asyncio.to_thread(question.frames, config.frames)
    request = request_of(
        PROMPT,
        attach_pictures(messages, *pictures),
        config=config,
        seed=run,
        stand_in=partial(_stand_in, caption),
    )
    asked = await ask(request, read_ratings)
    return RatingsJudgement(run=run, **asked.outcome(), numbers=asked.value or {})


def _stand_in(caption: str) -> str:
    """Rate how much a caption says, as the stand-in sees nothing."""
    share = min(1.0, len(content_words(caption)) / _WORDS)
    rating = LOWEST + round(share * (HIGHEST - LOWEST))
    scores = ", ".join(f'"{name}": {rating}' for name in DIMENSIONS)
    return f'{{"analysis": "Words that carry content.", "scores": {{{scores}}}}}'
