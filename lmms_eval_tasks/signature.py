"""Signature of a score: everything that affects it, in one line."""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from typing import Final, NamedTuple

DISTRIBUTION = "lmms-eval-captions"
OURS: Final = "lmms_eval_captions"
"""Key of our part of a results file of lmms-eval, which holds signatures."""
RESULTS: Final = "_results.json"
"""Suffix of results files."""
SERVED: Final = "served"
"""Field: the names, separated by commas, under which the judge answered."""
CAPTIONS: Final = "captions"
"""Field of benchmarks that ask for several captions of a video: ``aspect`` where each was written
for its aspect, ``general`` where one caption stands for all of them."""
QUESTIONS: Final = "questions"
"""Field: eight digits that stand for the questions that were scored, whatever their order."""
DOUBTS: Final = "doubts"
"""Field: what speaks against the judge, see :mod:`judge_doubts`."""
SUSPICIOUS: Final = "suspicious"
"""Field: captions that cannot be captions, of all, see :mod:`caption_doubts`."""
COUNTS: Final = ("dropped", "empty", SUSPICIOUS)
"""Fields: captions of a kind, of all; left out if there are none."""
PRECISION: Final = "precision"
"""Field: how far the headline may be from what all questions would give, see ``sampling``."""
ASKED: Final = "asked"
"""Field: questions times judge runs that were asked, of all."""
CHEAP: Final = "cheap"
"""Field: the judge that answered all questions beside the one that answered a sample."""
_SETS: Final = (CAPTIONS, DOUBTS)
"""Fields whose values are names joined by a plus sign."""
UNAVAILABLE: Final = "unavailable"
"""Value of the field of a metric that cannot be computed here, and is ``nan`` for that reason."""
_MOST_NAMES: Final = 5
"""Names of a judge that are shown."""
_MORE: Final = "..."
"""Stands for names that are not shown."""
_BAR: Final = "%7C"
"""Stands for a bar in a value: bars separate the fields."""
_OF_TASK: Final = 8
"""Digits that stand for a task's questions; those of one video have twice as many."""
_SHARE: Final = re.compile(r"([0-9]{1,18})/([0-9]{1,18})")


class Share(NamedTuple):
    """A number of things, and of how many.

    >>> str(Share(3, 1200)), Share.parse("3/1200"), Share.parse("some")
    ('3/1200', Share(n=3, of=1200), None)
    """

    n: int
    of: int

    def __str__(self) -> str:
        return f"{self.n}/{self.of}"

    @property
    def words(self) -> str:
        """For people, as :data:`ASKED` has it.

        >>> Share(15412, 96825).words
        '15,412/96,825'
        """
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
        """The share that a text is, ``None`` where it is none."""
        match = _SHARE.fullmatch(text)
        return cls(int(match[1]), int(match[2])) if match else None


@dataclass(frozen=True, slots=True)
class Signature:
    """Everything that affects the score of a task or group.

    >>> signature = Signature.of_task("vdc", "j", 1, 1, extras={"a": "b"}, unscored=Share(3, 9))
    >>> str(signature).partition("|lmms-eval-captions:")[0]
    'vdc|judge:j|runs:1|protocol:1|a:b|unscored:3/9'
    >>> Signature.parse(str(signature)) == signature
    True
    """

    task: str = ""
    """Empty for a group."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Name to value, in the order in which they are printed."""

    @classmethod
    def of_task(  # noqa: PLR0913 - the fields of a signature
        cls,
        task: str,
        judge: str,
        runs: int,
        protocol: int,
        *,
        extras: Mapping[str, str],
        unscored: Share,
        empty: Share | None = None,
        dropped: Share | None = None,
        scope: Mapping[str, str] | None = None,
    ) -> Signature:
        """The signature of a task that this version of the package scored.

        Args:
            task: Name of the task.
            judge: The judge as it is shown.
            runs: Judge runs.
            protocol: Version of the prompts and of how replies are read.
            extras: What else moves this benchmark's score.
            unscored: Questions times runs without a verdict, of all of them.
            empty: Captions without a word, which count as ones that say nothing, of all of them;
                shown where there are any.
            dropped: Captions that are not there and were left out, of all of them; shown where
                there are any.
            scope: Which captions and questions these are, and what speaks against the judge.
        """
        fields = {
            "judge": judge,
            "runs": str(runs),
            "protocol": str(protocol),
            **extras,
            **({"dropped": str(dropped)} if dropped is not None and dropped.n else {}),
            **({"empty": str(empty)} if empty is not None and empty.n else {}),
            "unscored": str(unscored),
            **(scope or {}),
            DISTRIBUTION: package_version(),
        }
        return cls(task, fields)

    @classmethod
    def parse(cls, text: str) -> Signature:
        """The signature that was printed as this text; what is no field of one is left out."""
        head, *rest = text.split("|")
        is_group = ":" in head
        pairs = (part.partition(":") for part in ([head, *rest] if is_group else rest))
        fields = {name: value.replace(_BAR, "|") for name, colon, value in pairs if colon}
        return cls("" if is_group else head, fields)

    @classmethod
    def merge(cls, signatures: Iterable[Signature], sizes: Sequence[int]) -> Signature:
        """The signature of a group: its tasks' values joined, without the counts of questions.

        A judge's fingerprint is left out where not every task has one.

        Args:
            signatures: Of the group's tasks or groups.
            sizes: Captions of each.

        >>> texts = ["a|judge:j|runs:1|empty:1/2", "b|judge:j|runs:3|unscored:0/9"]
        >>> str(Signature.merge(map(Signature.parse, texts), [2, 3]))
        'judge:j|runs:1+3|empty:1/5'
        """
        values: dict[str, dict[str, None]] = {}
        counts = Counter[str]()
        asked: list[Share] = []
        for signature in signatures:
            asked += [signature.asked] if signature.asked else []
            for name, value in signature.fields.items():
                if name == ASKED:
                    values.setdefault(name, {})[""] = None
                elif name in COUNTS and (share := Share.parse(value)) is not None:
                    counts[name] += share.n
                elif name != "unscored":
                    values.setdefault(name, {})[value] = None
        fields = {name: join_values(name, joined) for name, joined in values.items()}
        if asked:
            shares = (sum(share.n for share in asked), sum(share.of for share in asked))
            fields[ASKED] = Share(*shares).words
        # One caption per document; a task without an empty one does not say how many it has.
        fields |= {name: str(Share(counts[name], sum(sizes))) for name in COUNTS if counts[name]}
        return cls("", fields)

    def __str__(self) -> str:
        fields = (f"{name}:{value.replace('|', _BAR)}" for name, value in self.fields.items())
        return "|".join([*([self.task] if self.task else []), *fields])

    @property
    def unscored(self) -> Share | None:
        """Questions times runs without a verdict, of all of them; ``None`` where it is not said."""
        return Share.parse(self.fields.get("unscored", ""))

    @property
    def asked(self) -> Share | None:
        """Questions times runs that were asked, of all; ``None`` where all were."""
        return Share.parse(self.fields.get(ASKED, "").replace(",", ""))

    @property
    def empty(self) -> Share | None:
        """Captions without a word, of all of them; ``None`` where there are none."""
        return Share.parse(self.fields.get("empty", ""))

    @property
    def dropped(self) -> Share | None:
        """Captions that are not there and were left out; ``None`` where there are none."""
        return Share.parse(self.fields.get("dropped", ""))

    @property
    def unavailable(self) -> frozenset[str]:
        """Metrics that could not be computed where the task was scored, and are ``nan``."""
        return frozenset(name for name, value in self.fields.items() if value == UNAVAILABLE)


def join_values(name: str, values: Iterable[str]) -> str:
    """The different values of a field of the signature as one value.

    >>> join_values("runs", ["1", "3"]), join_values("served", ["b,a", "a"])
    ('1+3', 'a,b')
    >>> join_values("captions", ["general", "aspect+general"])
    'aspect+general'
    """
    if name in _SETS:
        return "+".join(sorted({part for value in values for part in value.split("+")}))
    if name == QUESTIONS:
        return _joint_digest(values)
    if name != SERVED:
        return "+".join(values)
    names = {served for value in values for served in value.split(",")}
    shown = sorted(names - {_MORE})
    is_cut = _MORE in names or len(shown) > _MOST_NAMES
    return ",".join([*shown[:_MOST_NAMES], *([_MORE] if is_cut else [])])


def join_fields(values: Mapping[str, Collection[str]]) -> dict[str, str]:
    """The fields of many captions as those of one signature: values that differ are joined.

    Args:
        values: Field to its different values.

    >>> join_fields({"runs": ["3", "1"]})
    {'runs': '1+3'}
    """
    return {name: join_values(name, sorted(different)) for name, different in values.items()}


def questions_digest(video_id: str, questions: Sequence[object]) -> str:
    """Return a digest of everything that is asked about a video.

    Args:
        video_id: The video.
        questions: As a protocol takes them; what cannot be written down, such as what makes a
            picture, does not count.
    """
    text = json.dumps([video_id, *map(_plain, questions)], default=str)
    return blake2b(text.encode("ascii"), digest_size=_OF_TASK).hexdigest()


def digest_of_all(digests: Sequence[str]) -> str:
    """Eight digits for the questions of many videos, whatever the order of the videos.

    Args:
        digests: Of each video; or for each video that of all its task, in the pooled records of
            several tasks, which gives the digest that a group of the tasks has.
    """
    if all(len(digest) == _OF_TASK for digest in digests):
        return _joint_digest(digests)
    return _digest_of(digests)


def selection_of(args: argparse.Namespace | None) -> dict[str, str]:
    """The fields ``limit`` and ``offset`` where lmms-eval's command line sets them.

    >>> selection_of(argparse.Namespace(limit=5.0, offset=0)), selection_of(None)
    ({'limit': '5'}, {})
    """
    limit, offset = getattr(args, "limit", None), getattr(args, "offset", None)
    chosen: dict[str, str] = {}
    if limit and limit != -1:  # lmms-eval's word for all of them
        chosen["limit"] = f"{limit:g}"
    if offset:
        chosen["offset"] = f"{offset:g}"
    return chosen


def _joint_digest(values: Iterable[str]) -> str:
    different = set(values)
    return different.pop() if len(different) == 1 else _digest_of(different)


def _digest_of(digests: Iterable[str]) -> str:
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
