"""The judgements of a caption, or why there are none: what is judged, and what waits for it."""

from __future__ import annotations

import functools
import hashlib
import os
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeVar

from loguru import logger

from lmms_eval_captions.judges.endpoint.request import NO_USAGE, Usage
from lmms_eval_captions.judges.endpoint.urls import scrub
from lmms_eval_captions.judges.errors import CaptionsError
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.model_wrappers.no_caption import DroppedCaption, NoCaption, says_nothing

if TYPE_CHECKING:
    from lmms_eval_captions.judges.protocols.asking import JudgeConfig
    from lmms_eval_captions.judges.settings import JudgeSettings
    from lmms_eval_captions.lmms_eval_tasks.sampling.weights import Sample

J = TypeVar("J", bound=Judgement)

NOTHING_TO_JUDGE = "the caption is empty"
NO_CAPTION = "no caption: "
"""How the reason starts where a caption is not there."""
ELSEWHERE: Final = (
    "the caption was handed in by the process that this one was forked from, and is judged there"
)


@dataclass(frozen=True, slots=True)
class Judged(Generic[J]):
    """The judgements of one caption, or why there are none."""

    chains: Sequence[Sequence[J]]
    """Those of each chain, in the order of the chains; none where nothing was judged."""
    config: JudgeConfig | None
    """``None`` where the settings could not be used."""
    reason: str | None
    """Why nothing was judged, else ``None``."""
    caption: Literal["there", "empty", "missing", "dropped"] = "there"
    """An empty one has no word: its judgements are those of a caption that says nothing. A missing
    one has no judgements, and the reason is the captioner's; a dropped one is left out, too."""
    sample: Sample | None = None
    """Which questions were asked, ``None`` for all; the chains of others are empty."""
    cheap_usage: Usage = NO_USAGE
    """What the cheap judge's answers to all questions took."""
    late: str | None = None
    """Why the chains without judgements were not waited for, ``None`` where all were."""

    @property
    def judgements(self) -> list[J]:
        """Those of all chains."""
        return list(chain.from_iterable(self.chains))


def not_there(caption: str, config: JudgeConfig) -> Judged[J] | None:
    """What a caption that is not there has in the place of judgements, ``None`` for all others."""
    if not isinstance(caption, NoCaption):
        return None
    kind: Literal["dropped", "missing"] = (
        "dropped" if isinstance(caption, DroppedCaption) else "missing"
    )
    return Judged((), config, f"{NO_CAPTION}{caption.reason}", kind)


def without_judge(
    caption: str,
    config: JudgeConfig,
    silent: Callable[[JudgeConfig], Sequence[Sequence[J]] | None],
) -> Judged[J] | None:
    """What a caption counts as that is not sent, ``None`` for one that the judge is asked about.

    Args:
        caption: Candidate caption.
        config: The benchmark's judge.
        silent: Makes the judgements of each chain for a caption that says nothing, by the paper's
            definition; ``None`` where the benchmark has no such verdict.
    """
    missing: Judged[J] | None = not_there(caption, config)
    if missing is not None or not says_nothing(caption):
        return missing
    silences = silent(config)
    return Judged(silences or (), config, NOTHING_TO_JUDGE if silences is None else None, "empty")


def waiting(
    result: Callable[[], Judged[J]],
    config: JudgeConfig,
    settings: JudgeSettings,
    *,
    is_settled: Callable[[], bool],
) -> Callable[[], Judged[J]]:
    """What waits for a result, and gives why there is none in the place of raising it.

    Args:
        result: Waits, and may raise.
        config: The benchmark's judge.
        settings: Those of the run.
        is_settled: Whether the result is there.
    """
    pid = os.getpid()

    @functools.cache
    def wait() -> Judged[J]:
        if os.getpid() != pid and not is_settled():
            # No thread of this process will ever settle it.
            return Judged((), config, ELSEWHERE)
        try:
            return result()
        except (CaptionsError, CancelledError) as error:
            return Judged((), config, str(error) or "judging was cancelled")
        except Exception as error:  # noqa: BLE001 - an error of ours must not cost the run its results
            # Not as loguru shows an exception: it prints the variables' values, the key's too.
            words = "".join(traceback.format_exception(error))
            logger.error("judging a caption failed: {}", _scrubbed(words, settings))
            return Judged((), config, _scrubbed(f"internal error: {error!r}", settings))

    return wait


def require_judge(config: JudgeConfig, settings: JudgeSettings) -> None:
    """Raise where a judge may not be asked.

    Raises:
        SettingsError: If it is not named, or there is no key for it.
    """
    if config.asks_endpoint:
        settings.require_named_judge(config.model)
        settings.require_judge_access()


def caption_digest(caption: str) -> bytes:
    """What tells a caption from others, in every process; 8 bytes."""
    return hashlib.blake2b(caption.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _scrubbed(text: str, settings: JudgeSettings) -> str:
    return scrub(text, settings.endpoint.api_key, *settings.endpoint.urls)
