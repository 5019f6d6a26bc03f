"""A caption of which a sample of the questions is judged: what a plan is told of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from lmms_eval_captions.judges.endpoint.endpoint import Model, parse_models, split_address
from lmms_eval_captions.judges.endpoint.request import Chain
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.sampling.held import HeldCaption

J = TypeVar("J", bound=Judgement)

_VARIABLE: Final = "LMMS_CAPTIONS_CHEAP_JUDGE"


@dataclass(frozen=True, slots=True, kw_only=True)
class InPart(Generic[J]):
    """One caption and its questions."""

    benchmark: Benchmark[Any, J]
    task: str
    video_id: str
    names: Sequence[str]
    """Shape (n_questions,): the text of each question."""
    cheap_chains: Callable[[str], Sequence[Chain[Sequence[J]]]]
    """From the name of the cheap judge to what asks it all questions, once each."""

    def held(
        self,
        chains: Sequence[Chain[Sequence[J]]],
        *,
        n_runs: int,
        submit: Callable[[Sequence[Chain[Sequence[J]]]], Future[list[Sequence[J]]]],
        cheap: Callable[[], Sequence[Sequence[J]]] | None,
    ) -> HeldCaption[J]:
        """The caption as it waits; see :class:`HeldCaption`."""
        return HeldCaption(
            task=self.task,
            video_id=self.video_id,
            names=self.names,
            n_runs=n_runs,
            chains=chains,
            submit=submit,
            cheap=cheap,
        )


def cheap_judge(settings: JudgeSettings, judge: str) -> Model | None:
    """The judge that answers every question, ``None`` where there is none.

    Args:
        settings: Those of the run.
        judge: Name of the judge that is asked a sample.

    Raises:
        SettingsError: If it cannot be asked, or is the judge itself.
    """
    text = settings.cheap_judge
    if text is None:
        return None
    models = parse_models(_VARIABLE, text, settings.endpoint)
    if len(models) > 1:
        raise SettingsError(f"{_VARIABLE}: expected one model, got {len(models)}")
    if models[0].name == judge:
        raise SettingsError(
            f"{_VARIABLE}: expected another model than the judge, got {models[0].name!r} for both"
        )
    return models[0]


def name_of(cheap: str) -> str:
    """The model's name in the setting, without its address.

    >>> name_of("small@http://me:secret@127.0.0.1:8000/v1#KEY"), name_of("small@2024")
    ('small', 'small@2024')
    """
    return split_address(cheap)[0]


def sample_words(settings: JudgeSettings) -> str:
    """How many of the questions are asked, empty where all are."""
    if settings.precision is None:
        return ""
    cheap = settings.cheap_judge
    return (
        f"as many questions as give the headline within {settings.precision:g} points"
        f"{f', all of them asked of {name_of(cheap)}' if cheap else ''}"
    )
