"""Signature of a score: everything that affects it, in one line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from typing import Final, NamedTuple

DISTRIBUTION: Final = "lmms-eval-captions"
OURS: Final = "lmms_eval_captions"
"""Key of our part of a results file of lmms-eval, which holds signatures."""
RESULTS: Final = "_results.json"
"""Suffix of results files."""

# Fields of a signature.
SERVED: Final = "served"
"""Names, separated by commas, under which the judge answered."""
CAPTIONS: Final = "captions"
"""``aspect`` if each caption was written for its aspect, ``general`` if one stands for all."""
QUESTIONS: Final = "questions"
"""Eight digits that stand for the scored questions, in any order."""
DOUBTS: Final = "doubts"
SUSPICIOUS: Final = "suspicious"
"""Captions that cannot be captions, of all; doubts are about the judge. See :mod:`doubts`."""
PRECISION: Final = "precision"
"""Largest distance of the headline from that of all questions, see ``sampling``."""
ASKED: Final = "asked"
"""Questions times judge runs that were asked, of all."""
CHEAP: Final = "cheap"
"""Judge that answered all questions next to the one that answered a sample."""
COUNTS: Final = ("dropped", "empty", SUSPICIOUS)
"""Captions of a kind, of all; left out if there are none."""
_SEPARATORS: Final = {CAPTIONS: "+", DOUBTS: "+", SERVED: ","}
"""Separators of fields whose values are sets of names."""
UNAVAILABLE: Final = "unavailable"
"""Value of the field of a metric that cannot be computed here, and is ``nan`` for that reason."""

_BAR: Final = "%7C"
"""Stands for a bar in a value: bars separate the fields."""
_OF_TASK: Final = 8
"""Digits that stand for a task's questions; those of a video have twice as many."""
_SHARE: Final = re.compile(r"([0-9]{1,18})/([0-9]{1,18})")


class Share(NamedTuple):
    """A number of things, of all of them, written as ``3/1200``."""

    n: int
    of: int

    def __str__(self) -> str:
        return f"{self.n}/{self.of}"

    @property
    def words(self) -> str:
        """The share as people read it, such as ``15,412/96,825``."""
        return f"{self.n:,}/{self.of:,}"

    def exceeds(self, limit: float) -> bool:
        """Return True if it is above a limit in [0, 1]; the same for 29 of 100 and 87 of 300.

        >>> Share(29, 100).exceeds(0.29), Share(30, 100).exceeds(0.29), Share(0, 0).exceeds(0.0)
        (False, True, False)
        """
        # A product would be rounded: 0.29 * 100 is less than 29.
        return self.n / self.of > limit if self.of else self.n > 0

    @classmethod
    def parse(cls, text: str) -> Share | None:
        """Return the share that a text is, ``None`` if it is none."""
        match = _SHARE.fullmatch(text)
        return cls(int(match[1]), int(match[2])) if match else None


@dataclass(frozen=True, slots=True)
class Signature:
    """Everything that affects the score of a task or group.

    >>> signature = Signature("vdc", {"judge": "j", "runs": "1", "unscored": "3/9"})
    >>> str(signature)
    'vdc|judge:j|runs:1|unscored:3/9'
    >>> Signature.parse(str(signature)) == signature
    True
    """

    task: str = ""
    """Empty for a group."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Name to value, in the order in which they are printed."""

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Read a printed signature; what is not a field is left out."""
        head, *rest = text.split("|")
        is_group = ":" in head
        pairs = (part.partition(":") for part in ([head, *rest] if is_group else rest))
        fields = {name: value.replace(_BAR, "|") for name, colon, value in pairs if colon}
        return cls("" if is_group else head, fields)

    @classmethod
    def merge(cls, signatures: Iterable[Signature], sizes: Sequence[int]) -> Signature:
        """Return the signature of a group: its tasks' values joined, without unscored questions.

        ``sizes`` are the captions of each.

        >>> texts = ["a|judge:j|runs:1|empty:1/2", "b|judge:j|runs:3|unscored:0/9"]
        >>> str(Signature.merge(map(Signature.parse, texts), [2, 3]))
        'judge:j|runs:1+3|empty:1/5'
        """
        values: dict[str, list[str]] = {}
        for signature in signatures:
            for name, value in signature.fields.items():
                values.setdefault(name, []).append(value)
        values.pop("unscored", None)
        counted = {name: values.pop(name) for name in COUNTS if name in values}
        fields = {name: join_values(name, dict.fromkeys(texts)) for name, texts in values.items()}
        if ASKED in values:
            fields[ASKED] = _sum(values[ASKED]).words
        for name, texts in counted.items():
            # One caption per document; a task without such a caption has no count.
            if n := _sum(texts).n:
                fields[name] = str(Share(n, sum(sizes)))
        return cls("", fields)

    def __str__(self) -> str:
        fields = (f"{name}:{value.replace('|', _BAR)}" for name, value in self.fields.items())
        return "|".join([*([self.task] if self.task else []), *fields])

    @property
    def unscored(self) -> Share | None:
        """Questions times runs without a verdict, of all of them; ``None`` if that is not known."""
        return Share.parse(self.fields.get("unscored", ""))

    @property
    def unavailable(self) -> frozenset[str]:
        """Metrics that could not be computed where the task was scored, and are ``nan``."""
        return frozenset(name for name, value in self.fields.items() if value == UNAVAILABLE)


def _sum(shares: Iterable[str]) -> Share:
    """Return the sum of those texts that are shares."""
    found = [share for text in shares if (share := Share.parse(text.replace(",", "")))]
    return Share(sum(share.n for share in found), sum(share.of for share in found))


def join_values(name: str, values: Iterable[str]) -> str:
    """Return the different values of a field of the signature as one value.

    >>> join_values("runs", ["1", "3"]), join_values("served", ["b,a", "a"])
    ('1+3', 'a,b')
    >>> join_values("captions", ["general", "aspect+general"])
    'aspect+general'
    """
    if name == QUESTIONS:
        return digest_of_all([*values])
    separator = _SEPARATORS.get(name)
    if separator is None:
        return "+".join(values)
    return separator.join(sorted({part for value in values for part in value.split(separator)}))


def questions_digest(video_id: str, questions: Sequence[object]) -> str:
    """Return a digest of everything that is asked about a video, except functions."""
    text = json.dumps([video_id, *map(_plain, questions)], default=str)
    return blake2b(text.encode("ascii"), digest_size=_OF_TASK).hexdigest()


def digest_of_all(digests: Sequence[str]) -> str:
    """Return eight digits for the questions of many videos, whatever the order of the videos.

    In the pooled records of several tasks, a video has the digest of all its task; they give the
    digest that a group of the tasks has.
    """
    if all(len(digest) == _OF_TASK for digest in digests):
        digests = [*set(digests)]
        if len(digests) == 1:
            return digests[0]
    return blake2b(",".join(sorted(digests)).encode("ascii"), digest_size=_OF_TASK // 2).hexdigest()


def _plain(value: object) -> object:
    """A question as JSON has it."""
    if is_dataclass(value):
        return [_plain(getattr(value, each.name)) for each in fields(value)]
    return None if callable(value) else value


@cache
def package_version() -> str:
    """Version of this package, ``unknown`` where it runs without being installed."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "unknown"
