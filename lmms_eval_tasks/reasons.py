"""Reasons of unscored questions, and advice for each kind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import Final, Literal

from lmms_eval_captions.judges.endpoint.cost import LIMIT_REACHED
from lmms_eval_captions.judges.endpoint.failures import FORBIDDEN, WORDS
from lmms_eval_captions.judges.endpoint.request import UNREADABLE
from lmms_eval_captions.lmms_eval_tasks.records import NO_CAPTION, NOTHING_TO_JUDGE
from lmms_eval_captions.lmms_eval_tasks.sentence import sentence

Kind = Literal[
    "unreadable", "missing", "uncaptioned", "empty", "not asked", "refused", "passing", "never",
    "limit", "stopped",
]  # fmt: skip

NOT_ASKED: Final = "not asked: "
"""Prefix of the reason if no score is possible whatever the judge replies."""
_STARTS: Final[Mapping[str, Kind]] = {
    NO_CAPTION: "missing",
    NOTHING_TO_JUDGE: "empty",
    NOT_ASKED: "not asked",
}
_SHOWN: Final = 3
_MOST: Final = 115
"""Characters of a reason where it stands in one sentence with what helps."""
_ANSWERED: Final = re.compile(r"answered (?:200 with an error )?(\d{3}): ")
"""Behind it stand the endpoint's own words, which may say anything."""
_NOT_CAPTIONED: Final = re.compile(
    rf"{re.escape(WORDS['captioner'].limit)}: \$|answered (?:200 with an error )?\d{{3}}: "
    r"|gave no reply to any request|no reply (from|within) "
)
"""Failures of a captioning endpoint, not of the clip."""
_PASSING: Final = re.compile(
    r"gave up (on this request|after)|gave no reply to any request|no reply (from|within) "
    r"|judging (was|ended)|internal error|\bbatch \S+ ended"
)
"""Failures that pass by themselves: outages and ended judging."""
_STOPPING: Final = {401, 402, 404, 407, 408, 429}
"""Statuses of the 4xx that are no refusal of one request: of its key, model or rate."""
_NUMBER: Final = re.compile(r"(?<!answered )(?:\b(?=\w*\d)[\w-]{8,}|(?<!\d)\d+(?:\.\d+)?)")
"""A number or an identifier, except a status."""
_NEVER: Final = "(it has given none yet)"
_NEXT_COST: Final = " and the next request may cost "
"""Behind it a limit of cost goes on with what differs, and with what helps."""
_BLIND: Final = "cannot be shown"
_REFUSED: Final = "the batch has no reply to this request: "
_HELP: Final[Mapping[Kind, str]] = {
    "unreadable": "unreadable: such replies are kept, and a rerun asks nothing unless "
    "LMMS_CAPTIONS_ASK_AGAIN=1 is set, which asks them again; or name another judge "
    "(LMMS_CAPTIONS_JUDGE)",
    "missing": "of missing captions: repair the clips or add the rows, or score the "
    "others alone (--model caption_file with missing=drop), or what there is with a higher "
    "LMMS_CAPTIONS_MAX_UNSCORED",
    "uncaptioned": "of captions that were not written: change what the reason names, then run the "
    "same command again; captions are kept, only what is missing is asked",
    "empty": "of empty captions: caption those clips again, or score what there is with a higher "
    "LMMS_CAPTIONS_MAX_UNSCORED",
    "not asked": "not asked, as there can be no score while so many captions are missing",
    "refused": "refused by the endpoint: a rerun asks them again, and another judge "
    "(LMMS_CAPTIONS_JUDGE) may take them",
    "passing": "not answered: run the same command again to go on; verdicts are kept, only what is "
    "missing is asked",
    "never": "not answered, and nothing ever was: see that the judge runs where "
    "LMMS_CAPTIONS_JUDGE_URL says (`lmms-eval-captions doctor` asks it), then run the same command "
    "again",
    "limit": "not judged: run the same command again with a higher LMMS_CAPTIONS_MAX_COST; "
    "verdicts are kept, only what is missing is asked",
    "stopped": "not judged: change what the reason names, then run the same command again; "
    "verdicts are kept, only what is missing is asked",
}


def kind_of(reason: str) -> Kind:
    """Return the kind of a reason, by which advice helps.

    >>> kind_of("no answer from the caption: unreadable reply, asked 4 times")
    'unreadable'
    >>> kind_of("gave up on this request: http://h/v1 answered 503: busy")
    'passing'
    """
    if UNREADABLE in reason:
        return "unreadable"
    for start, kind in _STARTS.items():
        if reason.startswith(start):
            is_of_endpoint = kind == "missing" and _NOT_CAPTIONED.search(reason)
            return "uncaptioned" if is_of_endpoint else kind
    answered = _ANSWERED.search(reason)
    ours = reason[: answered.start()] if answered else reason
    if LIMIT_REACHED in ours:
        return "limit"
    if _NEVER in ours:
        return "never"
    if _PASSING.search(ours):
        return "passing"
    is_refused = answered is not None and _is_refusal(int(answered[1]), reason)
    is_refused = is_refused or _REFUSED in ours
    return "refused" if is_refused and _BLIND not in ours else "stopped"


def _is_refusal(status: int, reason: str) -> bool:
    """Return True if an endpoint's status is about one request only."""
    is_forbidden = status == 403 and FORBIDDEN in reason
    return 400 <= status < 500 and status not in _STOPPING and not is_forbidden


def grouped(reasons: Mapping[str, int]) -> Counter[str]:
    """Reasons that differ in numbers and identifiers alone as one, with their counts together.

    Args:
        reasons: Reason to the number of questions.

    >>> grouped({"http://h:1/v1, call 7f3a19c2": 2, "http://h:1/v1, call 0b1d44e8": 1})
    Counter({'http://h:1/v1, call #': 3})
    """
    alike: dict[tuple[str, ...], list[str]] = {}
    for reason in reasons:
        alike.setdefault(tuple(_NUMBER.split(reason)), []).append(reason)
    counts: Counter[str] = Counter()
    for group in alike.values():
        counts[_common(group)] += sum(map(reasons.__getitem__, group))
    return counts


def _common(reasons: Sequence[str]) -> str:
    """Reasons of one wording as one: what differs between them is blanked."""
    numbers = [set(column) for column in zip(*map(_NUMBER.findall, reasons), strict=True)]
    parts = _NUMBER.split(reasons[0])
    shown = (next(iter(values)) if len(values) == 1 else "#" for values in numbers)
    return "".join(chain.from_iterable(zip_longest(parts, shown, fillvalue="")))


def why_unscored(reasons: Mapping[str, int]) -> str:
    """Reasons of unscored questions, and what helps against each sort of them, with their counts.

    Args:
        reasons: Reason to the number of questions.

    >>> why_unscored({"no reply within 120 s": 2})  # doctest: +NORMALIZE_WHITESPACE
    'Why: 2 x no reply within 120 s. 2 not answered: run the same command again to go on; verdicts
    are kept, only what is missing is asked.'
    """
    if not reasons:
        return "Why: see the other metrics."
    told, kinds = Counter[str](), Counter[Kind]()
    for reason, n in reasons.items():
        told[_shortened(reason)] += n
        kinds[kind_of(reason)] += n
    counts = grouped(told)
    shown = counts.most_common(_SHOWN)
    texts = [f"{n} x {reason}" for reason, n in shown]
    n_others = counts.total() - sum(n for _, n in shown)
    if n_others:
        texts.append(f"{n_others} x others")
    helps = [f"{n} {_HELP[kind]}." for kind, n in kinds.most_common()]
    return f"Why: {'; '.join(texts)}. {' '.join(helps)}"


def help_against(reasons: Mapping[str, int]) -> str:
    """The most frequent reason and what helps against it; where to look where none is known.

    >>> help_against({"the caption is empty": 2})  # doctest: +NORMALIZE_WHITESPACE
    'the caption is empty; of empty captions: caption those clips again, or score what there is with
    a higher LMMS_CAPTIONS_MAX_UNSCORED'
    """
    if not reasons:
        return "the log of the run says why and what helps; then run the same command again"
    reason = max(reasons, key=lambda each: reasons[each])
    kind = kind_of(reason)
    # Whose answer it was is known; what the endpoint said is not.
    answered = _ANSWERED.search(reason)
    shown = reason[answered.start() :] if answered else _shortened(reason)
    return f"{sentence(shown, _MOST)}; {_HELP[kind].partition(';')[0]}"


def _shortened(reason: str) -> str:
    """A reason without what stands beside it as help."""
    return reason.partition(_NEXT_COST)[0] if kind_of(reason) == "limit" else reason
