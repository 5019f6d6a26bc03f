"""MSVD-Eval as one value: a task for each of G-VEval's settings, and its four dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, get_args

from lmms_eval_captions.judges.endpoint.chain import Ask
from lmms_eval_captions.judges.endpoint.picture import Picture
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols.gveval import GVeval, Setting
from lmms_eval_captions.judges.protocols.gveval_reading import ACCR
from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig
from lmms_eval_captions.judges.settings import DataSettings, data_settings
from lmms_eval_captions.judges.verdict import ScoresJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import (
    Benchmark,
    Doc,
    Metric,
    Task,
    asking,
    over_videos,
)
from lmms_eval_captions.lmms_eval_tasks.data.files import find_video
from lmms_eval_captions.lmms_eval_tasks.grading import Grading, Label, Logged, Rating
from lmms_eval_captions.lmms_eval_tasks.judge_check import JudgeCheck
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.data import (
    FILE,
    QUESTION_FILE,
    SOURCE,
    read_items,
)
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.paper import PAPER_TABLE
from lmms_eval_captions.lmms_eval_tasks.ratios import of_means
from lmms_eval_captions.metrics.gveval_expectation import gveval_expectation
from lmms_eval_captions.metrics.gveval_score import gveval_score
from lmms_eval_captions.model_wrappers.video.frame_strip import Sampling, frame_strip

_SETTINGS: Final[tuple[Setting, ...]] = get_args(Setting)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The one question about a caption: how good it is beside references, video, or both."""

    scorer: GVeval
    references: tuple[str, ...]
    picture: Callable[[], Picture] | None
    """Makes what the judge sees, ``None`` where it sees nothing."""


async def judge_question(
    ask: Ask, question: Comparison, caption: str, *, config: JudgeConfig, run: int
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


def with_frames(sampling: Sampling) -> Benchmark[Comparison, ScoresJudgement]:
    """The benchmark where the judge sees frames drawn so; the paper's are first, middle, last."""
    tasks = [_task(setting, sampling) for setting in _SETTINGS]
    return replace(
        MSVD_EVAL,
        tasks={task.name: task for task in tasks},
        questions=partial(_questions, sampling=sampling),
    )


def _task(setting: Setting, sampling: Sampling) -> Task:
    scorer = GVeval(setting)
    return Task(
        name=f"msvd_eval_{setting}",
        fields={"setting": setting},
        caption_prompt="gveval_caption.msvd_eval",
        judge_prompts=(scorer.prompt_name,),
        extras={"frames": sampling} if scorer.sees else {},
        caption_chars=60,
    )


def _documents(settings: DataSettings, task: Task) -> list[dict[str, object]]:
    return [
        {
            "video_id": item.video_id,
            "vname": item.vname,
            "setting": task.fields["setting"],
            "references": list(item.references),
        }
        for item in read_items(settings)
    ]


def _questions(doc: Doc, *, sampling: Sampling) -> list[Comparison]:
    scorer = GVeval(doc["setting"])
    picture = partial(_frames, str(doc["vname"]), sampling) if scorer.sees else None
    return [Comparison(scorer, tuple(doc["references"]), picture)]


def _frames(vname: str, sampling: Sampling) -> Picture:
    settings = data_settings()
    try:
        path = find_video(settings, SOURCE, vname)
        return frame_strip(path, cache=settings.cache, sampling=sampling)
    except DataError as error:
        raise DataError(f"no frames to show to the judge: {error}") from error


def _no_frames() -> Picture:
    # A picture's tokens do not depend on what it shows.
    return Picture(b"", "image/jpeg")


def _unseen(question: Comparison) -> Comparison:
    return replace(question, picture=_no_frames if question.scorer.sees else None)


def _expected(judgement: ScoresJudgement, dimensions: Sequence[str]) -> list[float | None]:
    """Expected score along each dimension, in [0, 100]; ``None`` is unscored."""
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


def _label(logged: Logged) -> Label | None:
    """The numbers that the judge wrote."""
    numbers = logged["numbers"]
    return Label(ratings={name: float(numbers[name]) for name in ACCR}) if numbers else None


def _rated(_logged: Logged, label: Label) -> Mapping[str, object]:
    numbers = dict(label.ratings)
    return {
        "numbers": numbers,
        "distributions": {name: ((number, 1.0),) for name, number in numbers.items()},
    }


_MEANINGS: Final = {
    "accuracy": "what the caption says is right",
    "completeness": "nothing that matters is missing",
    "conciseness": "nothing is said that need not be",
    "relevance": "it speaks of what matters in the video",
}
_GRADING: Final = Grading(
    asks="Rate the caption along each dimension, 0 to 100.",
    ratings=tuple(
        Rating(name=name, low=0, high=100, text=f"{name.capitalize()}: {_MEANINGS[name]}")
        for name in ACCR
    ),
    needs_data=True,
    references=lambda doc: () if doc["setting"] == "ref_free" else doc["references"],
    of_judge=_label,
    judgement=_rated,
)


def _scoring(
    judgements: Sequence[ScoresJudgement], _fields: Mapping[str, object]
) -> dict[str, str]:
    """What the scores were read from."""
    scorings = sorted({j.scoring for j in judgements if j.scoring is not None})
    return {"scoring": "+".join(scorings)} if scorings else {}


MSVD_EVAL: Final[Benchmark[Comparison, ScoresJudgement]] = Benchmark(
    name="msvd_eval",
    folder=Path(__file__).parent,
    source=SOURCE,
    probe_file=FILE,
    tasks={f"msvd_eval_{setting}": _task(setting, "first_middle_last") for setting in _SETTINGS},
    read=_documents,
    name_fields=("video_id", "vname"),
    question_file=QUESTION_FILE,
    questions=partial(_questions, sampling="first_middle_last"),
    ask=asking(judge_question),
    unseen=_unseen,
    judge_check=JudgeCheck(
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
    ),
    grading=_GRADING,
    metrics={**{name: _metric(name) for name in ACCR}, "avg": _metric(*ACCR)},
    headline="avg",
    headline_means="mean of the judge's four ratings of the caption, 0 to 100",
    extras=_scoring,
    paper_table=PAPER_TABLE,
    output_tokens={"gveval": 400},
)
"""A task for each setting; each dimension's mean score, and the mean of the four (``avg``)."""
