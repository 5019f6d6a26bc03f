"""Judges that ``judge verify`` has looked at: what is kept of them, and what a run says of its.

A file for each model at each endpoint, in the cache folder. A run reads that of its judge once,
when it is first needed.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any, Final, Literal, get_args

from lmms_eval_captions.judges.endpoint.store.slug import slug
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files.atomic_write import write_atomically
from lmms_eval_captions.judges.files.bounded_files import parse_json, read_whole
from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.judged import Judged
from lmms_eval_captions.lmms_eval_tasks.signature import JUDGE_FP

FOLDER: Final = "judge_verify"
"""Below the cache folder."""
FRESH_DAYS: Final = 30.0
"""Days after which a verification says nothing of an endpoint any more."""
VerifyState = Literal["passed", "failed", "undecided"]

_DAY_S: Final = 86_400.0
_SKEW_DAYS: Final = 0.05
"""By how much the clocks of machines that share a cache folder may differ: some 70 minutes."""
_OF_OTHERS: Final = (
    "stored replies were used that are not known to be of this endpoint (of another one, or stored "
    "by a version that did not write down of which), so that the signature has no judge-fp; "
    "LMMS_CAPTIONS_STORE_BY=endpoint asks anew"
)
"""Said of a judge that was verified, where not all verdicts are known to be its own."""
FINGERPRINT: Final = re.compile(r"(?:[0-9a-f]{8})?")
"""Of one, or of none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedBenchmark:
    """What is known of a judge by the anchors of one benchmark."""

    state: VerifyState
    fingerprint: str
    """Eight digits, the same for all judges that were verified against one record."""
    verified_s: float
    """When, in seconds since the epoch."""
    protocol: int
    """Version of the benchmark's prompts and of how replies are read."""
    prompts: str = ""
    """See :func:`prompts_digest`."""
    differs: str = ""
    """What fails it, in a few words."""

    def age_days(self, now_s: float) -> float:
        """Days since it was verified, below 0 where a clock is wrong."""
        return (now_s - self.verified_s) / _DAY_S


def prompt_fields(benchmark: Benchmark[Any, Any], config: JudgeConfig) -> dict[str, str]:
    """The signature's fields of the judge's prompts, empty for those of the papers."""
    names = chain.from_iterable(task.judge_prompts for task in benchmark.tasks.values())
    return config.prompts.extras(dict.fromkeys(names))


def prompts_digest(benchmark: Benchmark[Any, Any], config: JudgeConfig) -> str:
    """What tells the judge's prompts from others, their order too; empty for those of the papers.

    Judges that are asked in another order give other verdicts.
    """
    return ", ".join(prompt_fields(benchmark, config).values())


def kept_path(cache: Path, model: str, endpoints: Sequence[str]) -> Path:
    """Where it is kept what is known of a model at an endpoint.

    Args:
        cache: The cache folder.
        model: Name that is asked for.
        endpoints: Names of the endpoint's addresses, without secrets.
    """
    where = hashlib.blake2b("\n".join(sorted(endpoints)).encode(), digest_size=4).hexdigest()
    return cache / FOLDER / f"{slug(model)}@{where}.json"


def write_kept(
    path: Path,
    *,
    model: str,
    endpoints: Sequence[str],
    benchmarks: Mapping[str, VerifiedBenchmark],
    record: Mapping[str, object] | None,
) -> None:
    """Keep what is known of a judge.

    Args:
        path: See :func:`kept_path`.
        model: Name that is asked for.
        endpoints: Names of the endpoint's addresses.
        benchmarks: Each benchmark that it was verified by.
        record: What later verifications are compared with; ``None`` where there is none yet.

    Raises:
        DataError: If it cannot be written.
    """
    document = {
        "model": model,
        "endpoints": list(endpoints),
        "benchmarks": {name: asdict(each) for name, each in benchmarks.items()},
        "record": record,
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(document, indent=1).encode("utf-8"))
    except OSError as error:
        raise DataError(
            f"{path}: what was found out about the judge cannot be kept: {error}; make room, or "
            "set LMMS_CAPTIONS_CACHE to a folder that can be written"
        ) from error


def read_kept(path: Path) -> tuple[dict[str, VerifiedBenchmark], object]:
    """What is known of a judge, by benchmark, and the record that it is compared with.

    Returns:
        Nothing of either where nothing is kept.

    Raises:
        DataError: If the file is there and cannot be read.
    """
    if not path.is_file():
        return {}, None
    try:
        document: Any = parse_json(read_whole(path))
        entries = document["benchmarks"].items()
        return {str(name): _benchmark(each) for name, each in entries}, document["record"]
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise DataError(
            f"{path}: expected what `lmms-eval-captions judge verify` has kept: {error}; delete "
            "it, and verify the judge again"
        ) from error


def _benchmark(found: dict[str, Any]) -> VerifiedBenchmark:
    """What is kept of one benchmark; raises where a field is not what it should be."""
    each = VerifiedBenchmark(**found)
    texts = (each.fingerprint, each.prompts, each.differs)
    is_time = type(each.verified_s) in (int, float) and isfinite(each.verified_s)
    is_known = each.state in get_args(VerifyState) and type(each.protocol) is int
    if not (is_time and is_known and all(type(text) is str for text in texts)):
        raise ValueError(f"a benchmark's entry is {str(found)[:200]!r}")
    if not FINGERPRINT.fullmatch(each.fingerprint):
        raise ValueError(f"a fingerprint is {each.fingerprint[:40]!r}")
    return each


@dataclass(frozen=True, slots=True)
class JudgeStanding:
    """What a run says of its judge."""

    fingerprint: str = ""
    """For the signature; empty where the judge was not verified, or not lately, or has failed."""
    warning: str = ""
    """What a reader of the scores must know, empty where that is nothing."""


class VerifiedJudges:
    """What is kept of the judges of one process, each read once."""

    def __init__(self) -> None:
        self._read: dict[Path, Mapping[str, VerifiedBenchmark]] = {}
        self._standings: dict[tuple[str, str, int], JudgeStanding] = {}

    def standing(
        self, benchmark: Benchmark[Any, Any], config: JudgeConfig, settings: JudgeSettings
    ) -> JudgeStanding:
        """What a run of a benchmark says of its judge; a look into a table but for the first time.

        Args:
            benchmark: Which one.
            config: Its judge.
            settings: Where the judge is asked.
        """
        if benchmark.verification is None or not config.asks_endpoint:
            return JudgeStanding()
        key = (benchmark.name, config.model, config.protocol)
        if key not in self._standings:
            self._standings[key] = self._look(benchmark, config, settings)
        return self._standings[key]

    def _look(
        self, benchmark: Benchmark[Any, Any], config: JudgeConfig, settings: JudgeSettings
    ) -> JudgeStanding:
        path = kept_path(settings.cache, config.model, settings.endpoint.names)
        try:
            if path not in self._read:
                self._read[path] = read_kept(path)[0]
        except DataError as error:
            self._read[path] = {}
            return JudgeStanding(warning=f"it is not known whether the judge was verified: {error}")
        found = holding_for(benchmark, config, self._read[path])
        if found is None:
            return JudgeStanding()
        return standing_of(found, config.model, now_s=time.time())


def fields_of(
    benchmark: Benchmark[Any, Any],
    judged: Judged[Any],
    settings: JudgeSettings,
    known: VerifiedJudges,
) -> tuple[dict[str, str], str]:
    """The field of a caption's signature of a judge that was verified, and a warning or none.

    The field is empty where a verdict may be another judge's, so that a task's signature has none.
    """
    if judged.config is None or not judged.chains:
        return {}, ""
    standing = known.standing(benchmark, judged.config, settings)
    fingerprint, warning = standing.fingerprint, standing.warning
    if fingerprint and any(judgement.usage.is_of_others for judgement in judged.judgements):
        fingerprint, warning = "", _OF_OTHERS
    return ({JUDGE_FP: fingerprint} if standing.fingerprint else {}), warning


def holding_for(
    benchmark: Benchmark[Any, Any], config: JudgeConfig, kept: Mapping[str, VerifiedBenchmark]
) -> VerifiedBenchmark | None:
    """What is kept of a judge that holds for a benchmark as it is judged now.

    Args:
        benchmark: Which one.
        config: Its judge.
        kept: What is kept of that judge, see :func:`read_kept`.

    Returns:
        ``None`` where it was verified with other prompts, or not by this benchmark.
    """
    found = kept.get(benchmark.name)
    now = (config.protocol, prompts_digest(benchmark, config))
    return found if found is not None and (found.protocol, found.prompts) == now else None


def standing_of(found: VerifiedBenchmark, model: str, *, now_s: float) -> JudgeStanding:
    """What a run says of a judge that was verified.

    Args:
        found: What is kept of it.
        model: Its name.
        now_s: Seconds since the epoch.
    """
    age_days = found.age_days(now_s)
    again = "run `lmms-eval-captions judge verify` again"
    if found.state == "failed":
        return JudgeStanding(
            warning=f"the judge {model} failed its verification {days_ago(age_days)}: "
            f"{found.differs or 'its verdicts differ'}. Do not use these numbers before it passes: "
            f"{again}"
        )
    if found.state != "passed":
        return JudgeStanding()
    if age_days < -_SKEW_DAYS:
        return JudgeStanding(
            warning=f"the judge {model} was verified at a time that is yet to come, so that its "
            f"age is not known: look at the clock of this machine, and {again}"
        )
    if age_days > FRESH_DAYS:
        return JudgeStanding(
            warning=f"the judge {model} was verified {days_ago(age_days)}, which says nothing of "
            f"it after {FRESH_DAYS:.0f} days: {again}"
        )
    return JudgeStanding(fingerprint=found.fingerprint)


def days_ago(days: float) -> str:
    """How long ago something was.

    >>> days_ago(0.2), days_ago(1.4), days_ago(40.0)
    ('today', '1 day ago', '40 days ago')
    """
    whole = int(days)
    if whole < 1:
        return "today"
    return f"{whole} day{'s' * (whole > 1)} ago"
