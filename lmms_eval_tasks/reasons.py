"""Why questions are unscored, and what helps: not everything comes by asking again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final, Literal

from lmms_eval_captions.judges.verdict import UNREADABLE
from lmms_eval_captions.lmms_eval_tasks.judging import NO_CAPTION, NOTHING_TO_JUDGE

Kind = Literal["unreadable", "missing", "empty", "refused", "passing", "stopped"]

_SHOWN: Final = 3
_REFUSED: Final = re.compile(
    r"answered (200 with an error )?(4(?!0[123478]|2[59])\d\d: |403: (?!.*\(the key may not use))"
    r"|^(no answer from the caption: )?the batch has no reply to this request: ",
    re.DOTALL,
)
"""What an endpoint says of a request that it does not take; not of its key, model or rate."""
_STOPPED: Final = "cannot be shown"
"""What is said of a model that cannot see: nothing that shows it anything is asked any more."""
_PASSING: Final = re.compile(
    r"gave up (on this request|after \d+ attempts)|gave no reply to any request"
    r"|no reply (from|within) |judging (was|ended)|internal error|^batch \S+ ended"
)
"""What passes by itself: of an outage, and of judging that was ended."""
_HELP: Final[Mapping[Kind, str]] = {
    "unreadable": "unreadable: such replies are kept, and a rerun asks nothing unless "
    "LMMS_CAPTIONS_ASK_AGAIN=1 is set, which asks them anew; or name another judge "
    "(LMMS_CAPTIONS_JUDGE)",
    "missing": "captions are not there: mend the clips or add the rows, or score what there is "
    "with a higher LMMS_CAPTIONS_MAX_UNSCORED",
    "empty": "of empty captions: caption those clips anew, or score what there is with a higher "
    "LMMS_CAPTIONS_MAX_UNSCORED",
    "refused": "refused by the endpoint: a rerun asks them again, and another judge "
    "(LMMS_CAPTIONS_JUDGE) may take them",
    "passing": "not answered: run the same command again to go on; verdicts are kept, only what is "
    "missing is asked",
    "stopped": "not judged: change what the reason names, then run the same command again; "
    "verdicts are kept, only what is missing is asked",
}


def kind_of(reason: str) -> Kind:
    """What sort of reason it is, by what helps.

    >>> kind_of("no answer from the caption: unreadable reply, asked 4 times")
    'unreadable'
    >>> kind_of("gave up on this request: http://h/v1 answered 503: busy")
    'passing'
    """
    if UNREADABLE in reason:
        return "unreadable"
    if reason.startswith(NO_CAPTION):
        return "missing"
    if reason == NOTHING_TO_JUDGE:
        return "empty"
    if _PASSING.search(reason):
        return "passing"
    return "refused" if _REFUSED.search(reason) and _STOPPED not in reason else "stopped"


def why_unscored(reasons: Mapping[str, int], *, n_missing: int = 0) -> str:
    """Reasons of unscored questions, and what helps against each sort of them, with their counts.

    Args:
        reasons: Reason to the number of questions.
        n_missing: Captions that are not there.

    >>> why_unscored({"no reply within 120 s": 2})  # doctest: +NORMALIZE_WHITESPACE
    'Why: 2 x no reply within 120 s. 2 not answered: run the same command again to go on; verdicts
    are kept, only what is missing is asked.'
    """
    if not reasons:
        return "Why: see the other metrics."
    counts, kinds = Counter(reasons), Counter[Kind]()
    for reason, n in reasons.items():
        kinds[kind_of(reason)] += n
    shown = counts.most_common(_SHOWN)
    texts = [f"{n} x {reason}" for reason, n in shown]
    n_others = counts.total() - sum(n for _, n in shown)
    if n_others:
        texts.append(f"{n_others} x others")
    helps = [
        f"{n_missing if kind == 'missing' else n} {_HELP[kind]}." for kind, n in kinds.most_common()
    ]
    return f"Why: {'; '.join(texts)}. {' '.join(helps)}"
