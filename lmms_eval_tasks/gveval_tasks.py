"""Base of the benchmarks whose captions G-VEval scores along four dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from lmms_eval_captions.judges.endpoint.request import Ask, Picture
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.protocols.gveval import ACCR, GVeval
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.judges.verdict import ScoresJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Metric, over_videos
from lmms_eval_captions.lmms_eval_tasks.data.files import find_video
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source
from lmms_eval_captions.lmms_eval_tasks.judge_check import JudgeCheck
from lmms_eval_captions.lmms_eval_tasks.ratios import of_means
from lmms_eval_captions.metrics.gveval import gveval_expectation, gveval_score
from lmms_eval_captions.model_wrappers.video.frame_strip import Sampling, frame_strip

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The one question about a caption: its quality compared with references, video, or both."""

    scorer: GVeval
    references: tuple[str, ...]
    picture: Callable[[], Picture] | None
    """Makes the picture that the judge sees, ``None`` if it sees none."""


def strip_of(source: Source, video: str, sampling: Sampling) -> Callable[[], Picture]:
    """Return a function that makes the three frames that the judge sees of a video.

    Args:
        source: The benchmark.
        video: Name below the benchmark's folder of videos.
        sampling: Choice of the frames.
    """
    return partial(_strip, source, video, sampling)


def seen_of(source: Source, video: str, draw: Callable[[Path, Path], T]) -> T:
    """Return what is drawn of a video for the judge.

    Args:
        source: The benchmark.
        video: Its name below the benchmark's folder of videos.
        draw: Draws from the video's file, given the package's cache folder.

    Raises:
        DataError: If the video is missing or cannot be read.
    """
    settings = data_settings()
    try:
        return draw(find_video(settings, source, video), settings.cache)
    except DataError as error:
        raise DataError(f"no frames to show to the judge: {error}") from error


def _strip(source: Source, video: str, sampling: Sampling) -> Picture:
    return seen_of(
        source, video, lambda path, cache: frame_strip(path, cache=cache, sampling=sampling)
    )


def _no_frames() -> Picture:
    # A picture's tokens do not depend on its content.
    return Picture(b"", "image/jpeg")


def _expected(judgement: ScoresJudgement, dimensions: Sequence[str]) -> list[float | None]:
    """Return the expected score along each dimension, in [0, 100]; ``None`` is unscored."""
    distributions = map(judgement.distributions.get, dimensions)
    return [None if numbers is None else gveval_expectation(numbers) for numbers in distributions]


def _metric(*dimensions: str) -> Metric:
    return Metric(
        score=over_videos(gveval_score),
        scale=1.0,
        ratios=of_means(),
        values=partial(_expected, dimensions=dimensions),
        n_values=len(dimensions),
        field="scores",
    )


class GVevalBenchmark(Benchmark[Comparison, ScoresJudgement]):
    """Each dimension's mean score, and the mean of the four."""

    metrics = {**{name: _metric(name) for name in ACCR}, "avg": _metric(*ACCR)}
    headline = "avg"
    headline_means = "mean of the judge's four ratings of the caption, 0 to 100"
    judge_check = JudgeCheck(
        # Without references there is no caption that is known to be right, and so no anchor.
        tell=lambda question: next(iter(question.references), ""),
        # A caption that says nothing may be accurate, concise and relevant.
        credit=lambda judgement: (
            judgement.numbers["completeness"] / 100 if judgement.numbers else None
        ),
        said=lambda _question, judgement: (
            "/".join(f"{number:g}" for number in judgement.numbers.values()) or None
        ),
        silent=frozenset({"/".join("0" for _ in ACCR)}),
        n_anchors=6,
    )
    output_tokens = {"gveval": 400}

    async def judge(
        self, ask: Ask, question: Comparison, caption: str, *, config: JudgeConfig, run: int
    ) -> ScoresJudgement:
        """Score one caption, see :meth:`GVeval.judge`."""
        return await question.scorer.judge(
            ask,
            caption,
            references=question.references,
            picture=question.picture,
            config=config,
            run=run,
        )

    def unseen(self, question: Comparison) -> Comparison:
        """Return the same question without its video."""
        return replace(question, picture=None if question.picture is None else _no_frames)

    def extras(
        self, judgements: Sequence[ScoresJudgement], _fields: Mapping[str, object]
    ) -> dict[str, str]:
        """Return the origin of the scores: probabilities or the plain numbers."""
        scorings = sorted({j.scoring for j in judgements if j.scoring is not None})
        return {"scoring": "+".join(scorings)} if scorings else {}
