"""The user's clips, judged next to their frames: by G-VEval, and by CapQuiz's VLLM-as-a-Judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from lmms_eval_captions.judges.endpoint.request import Picture
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols.gveval import GVeval, Setting
from lmms_eval_captions.judges.protocols.video_rating import (
    DIMENSIONS,
    HIGHEST,
    LOWEST,
    PROMPT,
    ShownVideo,
    judge_video,
)
from lmms_eval_captions.judges.settings import DataSettings, data_settings
from lmms_eval_captions.judges.verdict import RatingsJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Doc, Metric, Task, over_videos
from lmms_eval_captions.lmms_eval_tasks.clip_protocol import Clip, ClipProtocol, Need
from lmms_eval_captions.lmms_eval_tasks.gveval_tasks import (
    Comparison,
    GVevalBenchmark,
    seen_of,
    strip_of,
)
from lmms_eval_captions.lmms_eval_tasks.judge_check import JudgeCheck
from lmms_eval_captions.lmms_eval_tasks.own.data import SOURCE, documents
from lmms_eval_captions.lmms_eval_tasks.ratios import of_means
from lmms_eval_captions.metrics.gveval import mean_rating
from lmms_eval_captions.model_wrappers.video.frame_strip import (
    Sampling,
    frame_strip,
    frames_shown,
    shown_frames,
    strip_of_frames,
)

T = TypeVar("T")

_SCORER: Final = GVeval("ref_free")
_FRAMES: Final[Sampling] = "first_middle_last"


class OwnGVeval(GVevalBenchmark):
    """Scores of captions of the user's clips, without references."""

    name = "own"
    folder = Path(__file__).parent
    source = SOURCE
    tasks = {
        "own_gveval_ref_free": Task(
            name="own_gveval_ref_free",
            fields={"judge": "gveval"},
            caption_prompt="own_caption.own",
            judge_prompts=(_SCORER.prompt_name,),
            extras={"frames": _FRAMES},
            caption_chars=600,
        )
    }

    def read(self, settings: DataSettings, task: Task) -> list[dict[str, object]]:
        """Return a document for each clip."""
        return documents(settings, task)

    def questions(self, doc: Doc) -> list[Comparison]:
        """Return the one question."""
        return [Comparison(_SCORER, (), strip_of(SOURCE, str(doc["video_id"]), _FRAMES))]


OWN_GVEVAL: Final = OwnGVeval()


def _frames(video: str, n_frames: int) -> Sequence[Picture]:
    return seen_of(SOURCE, video, lambda path, cache: shown_frames(path, n_frames, cache=cache))


def _no_frames(n_frames: int) -> Sequence[Picture]:
    # A picture's tokens do not depend on its content.
    return [Picture(b"", "image/jpeg")] * n_frames


def _rating(judgement: RatingsJudgement, dimension: str) -> tuple[int | None]:
    return (judgement.numbers.get(dimension),)


def _metric(dimension: str) -> Metric:
    return Metric(
        score=over_videos(mean_rating),
        scale=1.0,
        lowest=LOWEST,
        highest=HIGHEST,
        ratios=of_means(),
        values=partial(_rating, dimension=dimension),
        field="scores",
    )


class OwnRating(Benchmark[ShownVideo, RatingsJudgement]):
    """The mean rating along each of three dimensions."""

    name = "own"
    folder = Path(__file__).parent
    template = "_rating_template_yaml"
    source = SOURCE
    tasks = {
        "own_vllm_judge": Task(
            name="own_vllm_judge",
            fields={"judge": "vllm_judge"},
            caption_prompt="own_caption.own",
            judge_prompts=(PROMPT,),
            caption_chars=600,
        )
    }
    metrics = {name: _metric(name) for name in DIMENSIONS}
    headline = "overall"
    headline_means = "mean of the judge's ratings of how good the caption is as a whole, 1 to 5"
    judge = staticmethod(judge_video)
    judge_check = JudgeCheck(
        # No caption of the user's clips is known to be right, so there is no anchor.
        tell=lambda _question: "",
        credit=lambda judgement: (
            (judgement.numbers["overall"] - LOWEST) / (HIGHEST - LOWEST)
            if judgement.numbers
            else None
        ),
        said=lambda _question, judgement: "/".join(map(str, judgement.numbers.values())) or None,
        silent=frozenset({"/".join(str(LOWEST) for _ in DIMENSIONS)}),
    )
    output_tokens = {PROMPT: 200}

    def read(self, settings: DataSettings, task: Task) -> list[dict[str, object]]:
        """Return a document for each clip."""
        return documents(settings, task)

    def questions(self, doc: Doc) -> list[ShownVideo]:
        """Return the one question."""
        return [ShownVideo(partial(_frames, str(doc["video_id"])))]

    def unseen(self, question: ShownVideo) -> ShownVideo:
        """Return the same question without its video."""
        return replace(question, frames=_no_frames)


OWN_RATING: Final = OwnRating()


_OWN_TASK: Final = OWN_GVEVAL.tasks["own_gveval_ref_free"]
_NEEDS: Final[dict[Setting, frozenset[Need]]] = {
    "ref_free": frozenset({"video"}),
    "ref_only": frozenset({"reference"}),
    "combined": frozenset({"reference", "video"}),
}


def _strip(doc: Doc) -> Picture:
    return _seen(doc, lambda path, cache: frame_strip(path, cache=cache), strip_of_frames)


def _shown(doc: Doc, n_frames: int) -> Sequence[Picture]:
    return _seen(
        doc,
        lambda path, cache: shown_frames(path, n_frames, cache=cache),
        lambda frames: frames_shown(frames, n_frames),
    )


def _seen(
    doc: Doc, of_file: Callable[[Path, Path], T], of_frames: Callable[[Sequence[Any]], T]
) -> T:
    """Return what the judge sees of a clip's file, or of its frames."""
    frames = doc["frames"]
    try:
        if isinstance(frames, (str, Path)):
            return of_file(Path(frames), doc["cache"] or data_settings().cache)
        return of_frames(frames)
    except DataError as error:
        raise DataError(f"no frames to show to the judge: {error}") from error


def _document(clip: Clip) -> Doc:
    return {
        "video_id": clip.clip_id,
        "references": tuple(clip.references),
        "frames": clip.frames,
        "cache": clip.cache,
    }


def _gveval(setting: Setting) -> ClipProtocol:
    scorer = GVeval(setting)

    def questions(doc: Doc) -> list[Comparison]:
        picture = partial(_strip, doc) if scorer.sees else None
        return [Comparison(scorer, doc["references"], picture)]

    return ClipProtocol(
        name=f"gveval_{setting}",
        benchmark=OWN_GVEVAL.variant(questions=questions),
        task=Task(
            name=f"gveval_{setting}",
            caption_prompt=_OWN_TASK.caption_prompt,
            judge_prompts=(scorer.prompt_name,),
            extras=_OWN_TASK.extras if scorer.sees else {},
            caption_chars=_OWN_TASK.caption_chars,
        ),
        needs=_NEEDS[setting],
        document=_document,
    )


PROTOCOLS: Final = (
    _gveval("ref_free"),
    _gveval("ref_only"),
    _gveval("combined"),
    ClipProtocol(
        name="vllm_judge",
        benchmark=OWN_RATING.variant(questions=lambda doc: [ShownVideo(partial(_shown, doc))]),
        task=replace(OWN_RATING.tasks["own_vllm_judge"], name="vllm_judge", fields={}),
        needs=frozenset({"video"}),
        document=_document,
    ),
)
"""The video of each clip, or its frames; for two of them reference captions."""
