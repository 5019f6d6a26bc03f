"""Reasons of unscored questions, and advice for each kind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain, zip_longest
from typing import Final

from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord, Kind
from lmms_eval_captions.lmms_eval_tasks.sentence import sentence

_SHOWN: Final = 3
_MOST: Final = 115
"""Characters of a reason where it stands in one sentence with what helps."""
_ANSWER: Final = re.compile(r"answered (?:200 with an error )?\d{3}: .*", re.DOTALL)
_NUMBER: Final = re.compile(r"(?<!answered )(?:\b(?=\w*\d)[\w-]{8,}|(?<!\d)\d+(?:\.\d+)?)")
"""A number or an identifier, except a status."""
_NEXT_COST: Final = " and the next request may cost "
"""Behind it a limit of cost goes on with what differs, and with what helps."""
_RERUN: Final = (
    "not answered: run the same command again to go on; verdicts are kept, only what is missing is "
    "asked"
)
_HELP: Final[Mapping[Kind, str]] = {
    "unreadable": "unreadable: such replies are kept, and a rerun asks nothing unless "
    "LMMS_CAPTIONS_ASK_AGAIN=1 is set, which asks them again; or name another judge "
    "(LMMS_CAPTIONS_JUDGE)",
    "missing": "of missing captions: repair the clips or add the rows, or correct what else the "
    "reason names; or score the others alone (--model caption_file with missing=drop), or what "
    "there is with a higher LMMS_CAPTIONS_MAX_UNSCORED",
    "empty": "of empty captions: caption those clips again, or score what there is with a higher "
    "LMMS_CAPTIONS_MAX_UNSCORED",
    "not asked": "not asked, as there can be no score while so many captions are missing",
    "refused": "refused by the endpoint: a rerun asks them again, and another judge "
    "(LMMS_CAPTIONS_JUDGE) may take them",
    "unavailable": _RERUN,
    "silent": _RERUN,
    "never": "not answered, and nothing ever was: see that the judge runs where "
    "LMMS_CAPTIONS_JUDGE_URL says (`lmms-eval-captions doctor` asks it), then run the same command "
    "again",
    "limit": "not judged: run the same command again with a higher LMMS_CAPTIONS_MAX_COST; "
    "verdicts are kept, only what is missing is asked",
    "stopped": "not judged: change what the reason names, then run the same command again; "
    "verdicts are kept, only what is missing is asked",
}


def reasons_of(records: Iterable[CaptionRecord]) -> tuple[Counter[str], Counter[Kind]]:
    """Return the reasons of unscored questions over captions, and their kinds."""
    reasons, kinds = Counter[str](), Counter[Kind]()
    for record in records:
        reasons.update(record.reasons)
        kinds.update(record.kinds)
    return reasons, kinds


def grouped(reasons: Mapping[str, int]) -> Counter[str]:
    """Reasons that differ in numbers and identifiers alone as one, with their counts together.

    >>> grouped({"http://h:1/v1, call 7f3a19c2": 2, "http://h:1/v1, call 0b1d44e8": 1})
    Counter({'http://h:1/v1, call #': 3})
    """
    alike: dict[tuple[str, ...], list[str]] = {}
    for reason in reasons:
        alike.setdefault(tuple(_NUMBER.split(reason)), []).append(reason)
    counts: Counter[str] = Counter()
    for parts, group in alike.items():
        columns = zip(*map(_NUMBER.findall, group), strict=True)
        shown = (column[0] if len({*column}) == 1 else "#" for column in columns)
        common = "".join(chain.from_iterable(zip_longest(parts, shown, fillvalue="")))
        counts[common] += sum(map(reasons.__getitem__, group))
    return counts


def why_unscored(reasons: Mapping[str, int], kinds: Mapping[Kind, int]) -> str:
    """Return why questions are unscored, and what helps against each kind of reason.

    >>> why_unscored({"no reply within 120 s": 2}, {"silent": 2})  # doctest: +NORMALIZE_WHITESPACE
    'Why: 2 x no reply within 120 s. 2 not answered: run the same command again to go on; verdicts
    are kept, only what is missing is asked.'
    """
    if not reasons:
        return "Why: see the other metrics."
    shortened, helps = Counter[str](), Counter[str]()
    for reason, n in reasons.items():
        shortened[reason.partition(_NEXT_COST)[0]] += n
    for kind, n in kinds.items():
        helps[_HELP[kind]] += n
    counts = grouped(shortened)
    shown = counts.most_common(_SHOWN)
    texts = [f"{n} x {reason}" for reason, n in shown]
    n_others = counts.total() - sum(n for _, n in shown)
    if n_others:
        texts.append(f"{n_others} x others")
    return " ".join(
        [f"Why: {'; '.join(texts)}.", *(f"{n} {text}." for text, n in helps.most_common())]
    )


def help_against(reasons: Mapping[str, int], kinds: Mapping[Kind, int]) -> str:
    """Return the most frequent reason and what helps against the most frequent kind."""
    if not reasons or not kinds:
        return "the log of the run says why and what helps; then run the same command again"
    reason = max(reasons, key=reasons.__getitem__).partition(_NEXT_COST)[0]
    # Whose answer it was is known; what the endpoint said is not.
    answer = _ANSWER.search(reason)
    text = _HELP[max(kinds, key=kinds.__getitem__)]
    return f"{sentence(answer[0] if answer else reason, _MOST)}; {text.partition(';')[0]}"
