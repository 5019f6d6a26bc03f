"""What a verification is going to do: beside what, with which requests, at which price."""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.endpoint.prices import load_prices
from lmms_eval_captions.judges.endpoint.request import Request
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.anchor_round import benchmark_in
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.bounds import Bounds, bounds_of
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.keeping import KeptJudge
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.probes import Probe, ProbeMaker
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.record import JudgeRecord
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.recorded import (
    RecordedItems,
    recorded_items,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.session import open_session
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.subjects import Subject
from lmms_eval_captions.metrics.disagreement_test import DISAGREEMENT_TEST, DisagreementTest

_N_HEADS: Final = 2
"""Completions of the first address whose heads are looked at; of each other one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is to be verified, and beside what."""

    against: JudgeRecord | None = None
    """The record that is trusted; without, what is kept of this judge at this endpoint."""
    recorded: Path | None = None
    """Results folder of a recorded run."""
    is_first: bool = False
    """Whether what is kept of the judge is put aside, and a new record taken."""
    is_anew: bool = False
    """Whether an interrupted verification is not gone on with."""
    wants_record: bool = False
    """Whether all anchors are asked, for a record that is written."""
    max_cost_usd: float | None = None
    test: DisagreementTest = DISAGREEMENT_TEST


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A verification before anything is asked."""

    subjects: Sequence[Subject]
    """The benchmarks, all with the same judge."""
    settings: JudgeSettings
    options: Options
    kept: KeptJudge
    """What earlier verifications have left."""
    trusted: JudgeRecord | None
    """What verdicts are compared with; without, how anchors are built."""
    nonce: int
    goes_on: bool
    """Whether an interrupted verification is gone on with."""
    items: dict[str, RecordedItems]
    """Benchmark to the items of the recorded run."""
    probes: Sequence[Probe]
    heads: Sequence[Sequence[Request]]
    """For each address the requests for heads of completions."""

    @classmethod
    def of(cls, subjects: Sequence[Subject], settings: JudgeSettings, options: Options) -> Plan:
        """What is going to be done.

        Args:
            subjects: The benchmarks, all with the same judge.
            settings: Whom to ask.
            options: What is to be verified.

        Raises:
            DataError: If what is kept, or the recorded run, cannot be read, or if the record
                cannot be compared with.
            SettingsError: If cost is limited, and the judge's price is not known.
        """
        model = subjects[0].config.model
        _require_price(model, settings, options)
        kept = KeptJudge.of(model, settings, is_first=options.is_first)
        trusted = options.against
        if trusted is None and not options.is_first:
            trusted = kept.record
        # Before anything is asked: what cannot be compared is an error.
        _require_in(options.against, subjects)
        for subject in subjects:
            benchmark_in(trusted, subject)
        session = open_session(kept.session, anew=options.is_anew)
        # Not of the session: what it drew before has been seen by the endpoint.
        rng = random.Random(secrets.randbits(64))  # noqa: S311 - no secret # nosec B311
        maker = ProbeMaker(
            model,
            subjects[0].config.timeout_s,
            rng,
            least_tokens=max(each.config.max_tokens for each in subjects),
        )
        return cls(
            subjects=subjects,
            settings=settings,
            options=options,
            kept=kept,
            trusted=trusted,
            nonce=session.nonce,
            goes_on=session.goes_on,
            items=_recorded_items(subjects, session.nonce, options),
            probes=maker.all(),
            heads=[
                maker.heads(1 if place else _N_HEADS)
                for place in range(len(settings.endpoint.urls))
            ],
        )

    @property
    def model(self) -> str:
        """Name of the judge."""
        return self.subjects[0].config.model

    @property
    def n_heads(self) -> int:
        """Requests for heads of completions."""
        return sum(map(len, self.heads))

    @property
    def heads_usd(self) -> float | None:
        """What heads of completions cost at most, ``None`` where the price is not known."""
        requests = [request for each in self.heads for request in each]
        return load_prices(self.settings.prices).cost_usd(
            self.model,
            input_tokens=sum(len(str(each.messages)) for each in requests),
            output_tokens=sum(int(str(each.params["max_tokens"])) for each in requests),
        )

    @property
    def limit_usd(self) -> float | None:
        """What may be billed beside the heads of completions, which are asked first.

        Raises:
            SettingsError: If they alone may cost more than is allowed.
        """
        most = self.options.max_cost_usd
        if most is None:
            return None
        left = most - (self.heads_usd or 0.0)
        if left <= 0.0:
            raise SettingsError(
                f"--max-cost: ${most:g} is less than the first {self.n_heads} requests may cost: "
                "nothing was sent; allow more"
            )
        return left

    @property
    def bounds(self) -> Bounds:
        """What it takes at most."""
        return bounds_of(
            self.subjects,
            [
                (each, self.items[each.name].items)
                for each in self.subjects
                if each.name in self.items
            ],
            self.probes,
            n_heads=self.n_heads,
            settings=self.settings,
            prices=load_prices(self.settings.prices),
        )

    @property
    def words(self) -> list[str]:
        """What is going to be done, a sentence each."""
        names = ", ".join(each.name for each in self.subjects)
        where = ", ".join(self.settings.endpoint.names)
        beside = f"a record of {self.trusted.made[:10]}" if self.trusted else "how they are built"
        told = [
            f"{self.model} at {where}: anchors of {names}, beside {beside}",
            self.bounds.words,
        ]
        if self.trusted is not None and not self.options.wants_record:
            told.append(
                f"some {self.options.test.least_items} of {len(self.subjects[0].facts)} anchors "
                "suffice where nothing differs"
            )
        if self.goes_on:
            told.append(
                "goes on with the verification that was begun within a day and not decided: what "
                "was answered then is not asked again (--anew asks all of it)"
            )
        return told


def _require_price(model: str, settings: JudgeSettings, options: Options) -> None:
    """Refuse a limit of cost where nobody knows what is billed."""
    if options.max_cost_usd is None:
        return
    if load_prices(settings.prices).cost_usd(model, input_tokens=1, output_tokens=1) is None:
        raise SettingsError(
            f"--max-cost: ${options.max_cost_usd:g} is set and the price of {model!r} is not "
            "known: nothing was sent; name it in the file of LMMS_CAPTIONS_PRICES, or set no limit"
        )


def _require_in(against: JudgeRecord | None, subjects: Sequence[Subject]) -> None:
    """Refuse a file of which nothing can be said of a benchmark that was asked for."""
    if against is None:
        return
    missing = [each.name for each in subjects if each.name not in against.benchmarks]
    if missing:
        raise DataError(
            f"--against: expected a record of {', '.join(missing)}, the file has "
            f"{', '.join(against.benchmarks) or 'none'}: choose of these with --tasks, or take a "
            "new record with -o FILE at the endpoint that you trust"
        )


def _recorded_items(
    subjects: Sequence[Subject], nonce: int, options: Options
) -> dict[str, RecordedItems]:
    folder = options.recorded
    if folder is None:
        return {}
    found = {
        subject.name: recorded_items(folder, subject, nonce, most=options.test.most_items)
        for subject in subjects
    }
    items = {name: each for name, each in found.items() if each is not None}
    if not items:
        raise DataError(
            f"--recorded {folder}: expected a run of any of {', '.join(found)}, which are "
            "verified, found none; choose others with --tasks"
        )
    return items
