"""Reading what a video is about: a few names, each with how sure the model is.

Source: CapQuiz, figure 5: a dictionary of up to 3 subcategories, or "Others".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.objects import objects_in, said
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.values import Object

OTHERS: Final = "Others"
"""What is said of a video of none of the known domains."""
_MOST_NAMES: Final = 3
_NUMBER: Final = re.compile(r"\s*(?:[01](?:\.[0-9]{0,12})?|\.[0-9]{1,12})\s*")


def read_domains(reply: Reply, known: Sequence[str]) -> Mapping[str, float] | None:
    """The domains that a reply names, the likeliest first, with their probabilities in [0, 1].

    Args:
        reply: What the model wrote.
        known: The names that it had to choose from.

    Returns:
        Up to three of the known names, and ``Others`` where the reply has it; ``None`` where
        another name or a probability off the scale is in it, or two dictionaries differ.

    >>> read_domains(Reply('{"sports": 0.2, "Game": 0.7}', "stop"), ["Game", "Sports"])
    {'Game': 0.7, 'Sports': 0.2}
    """
    read = [_domains(value, known) for value in objects_in(said(reply.text))]
    first = read[0] if read else None
    return first if all(other == first for other in read) else None


def _domains(value: Object, known: Sequence[str]) -> Mapping[str, float] | None:
    names = {_plain(name): name for name in (*known, OTHERS)}
    shares: dict[str, float] = {}
    for key, inner in value:
        name, share = names.get(_plain(key)), _share(inner)
        if name is None or share is None or name in shares:
            return None
        shares[name] = share
    if not shares or len(shares.keys() - {OTHERS}) > _MOST_NAMES:
        return None
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _share(value: object) -> float | None:
    """A probability, also where it was written as a text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return None
    return float(value) if 0 <= float(value) <= 1 else None


def _plain(name: str) -> str:
    return " ".join(name.casefold().replace("\u2019", "'").split())
