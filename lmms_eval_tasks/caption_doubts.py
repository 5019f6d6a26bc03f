"""Captions that cannot be captions: an API's errors, refusals, and one text for many videos."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord

_MOST_CHARS: Final = 400
"""A longer text is a caption, whatever it begins with."""
_SHOWN_CHARS: Final = 60
_FEWEST: Final = 5
"""Captions from which on it matters that most of them are the same."""
_ERROR: Final = re.compile(
    r"""(?xi)
    # "nan", "None", "[object Object]": a table or a program without a text
    \W* (?: nan | none | null | n/?a | undefined | \[object\ \w+\] ) \W* \Z
    # "Error: 429 Too Many Requests", "RuntimeError: CUDA out of memory"
    | \W* (?: traceback\ \( | [\w.]*(?:error|exception) \s* [:(] | (?:http|error)\ ?[45]\d\d\b )
    # "429 Too Many Requests"
    | \W* [45]\d\d \s+ (?: too\ many | internal\ | bad\ | service\ | unauthori | forbidden )
    | .* (?: too\ many\ requests | rate\ limit\ (?:exceeded|reached) | cuda\ out\ of\ memory
           | exceeded\ your\ current\ quota | internal\ server\ error | maximum\ context\ length )
    # "I'm sorry, but I can't assist with that."
    | \W* (?: (?:i['’]?m|i\ am)\ (?:so\ )?sorry | sorry, | i\ apologi[sz]e | as\ an\ ai\b
            | (?:unfortunately,\ )? i(?:['’]?m|\ am)\ (?:unable|not\ able)\ to
            | i\ (?:can\ ?not|can['’]?t)\ (?:help|assist|see|view|watch|describe|provide|process) )
    """
)


def no_caption_at_all(caption: str) -> str:
    """Return the beginning of a text that cannot be a caption, else nothing.

    >>> no_caption_at_all("Error: 429 Too Many Requests"), no_caption_at_all("nan")
    ('Error: 429 Too Many Requests', 'nan')
    >>> no_caption_at_all("An error message appears on the screen."), no_caption_at_all("A dog.")
    ('', '')
    """
    is_meant = len(caption) <= _MOST_CHARS and _ERROR.match(caption) is not None
    return " ".join(caption[:_SHOWN_CHARS].split()) if is_meant else ""


def suspicious(records: Sequence[CaptionRecord]) -> tuple[int, str]:
    """Return how many captions of a task cannot be captions, and why in half a sentence."""
    digests = Counter(record.caption_digest for record in records if record.caption_digest)
    digest, n_same = digests.most_common(1)[0] if digests else ("", 0)
    is_one_text = len(records) >= _FEWEST and 2 * n_same > len(records)
    errors = [record for record in records if record.suspicious]
    doubted = [r for r in records if r.suspicious or (is_one_text and r.caption_digest == digest)]
    if not doubted:
        return 0, ""
    why = [f"such as {errors[0].suspicious!r}"] if errors else []
    why += [f"{n_same:,} are the same text"] if is_one_text else []
    return len(doubted), " and ".join(why)
