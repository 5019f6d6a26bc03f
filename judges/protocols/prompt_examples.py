"""The examples of a reply that a judge prompt gives, and replies that are nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from lmms_eval_captions.judges.protocols.prompt_folder import Prompts

_EXAMPLE: Final = re.compile(r"\bfor example\b[^:\n]*:[ \t]*(\S[^\n]*)", re.IGNORECASE)
_IGNORED: Final = re.compile(r"[\s`'\"]+")
_LEAST_CHARS: Final = 8
"""Shorter examples are what honest replies hold, too: ``yes``."""


@cache
def examples_of(prompts: Prompts, names: Sequence[str]) -> tuple[str, ...]:
    """What the prompts of these names show behind "for example:", as :func:`is_example` has it.

    >>> examples_of(Prompts(), ("vdc_answer", "vdc_match"))
    ('{pred:yes,score:4.8}',)
    """
    texts = (part["content"] for name in names for part in prompts.messages(name))
    shown = (_bare(match.rstrip(" .")) for text in texts for match in _EXAMPLE.findall(text))
    return tuple(dict.fromkeys(x for x in shown if len(x) >= _LEAST_CHARS and "{{" not in x))


def is_example(reply: str, examples: Sequence[str]) -> bool:
    """Whether a reply holds one of the examples, whatever is around it.

    >>> is_example("`{'pred': 'yes', 'score': 4.8}`.", ("{pred:yes,score:4.8}",))
    True
    >>> is_example("{'pred': 'yes', 'score': 5}", ("{pred:yes,score:4.8}",))
    False
    """
    if not examples:
        return False
    bare = _bare(reply)
    return any(example in bare for example in examples)


def _bare(text: str) -> str:
    return _IGNORED.sub("", text).lower()
