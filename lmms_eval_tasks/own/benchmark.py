"""The user's clips, judged next to their frames: by G-VEval, and by CapQuiz's VLLM-as-a-Judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar

from loguru import logger

from lmms_eval_captions.judges.endpoint.request import Picture
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols import video_rating as rating
from lmms_eval_captions.judges.protocols.gveval import GVeval, Setting
from lmms_eval_captions.judges.protocols.video_rating import HIGHEST, LOWEST, ShownVideo
from lmms_eval_captions.judges.settings import DataSettings, data_settings
from lmms_eval_captions.judges.verdict import RatingsJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Doc, Metric, Task, over_videos
from lmms_eval_captions.lmms_eval_tasks.common import gveval_tasks
from lmms_eval_captions.lmms_eval_tasks.common.clip_protocol import Clip, ClipProtocol, Need
from lmms_eval_captions.lmms_eval_tasks.common.gveval_tasks import Comparison
from lmms_eval_captions.lmms_eval_tasks.data.files import find_video, list_videos
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source
from lmms_eval_captions.lmms_eval_tasks.judge_check import JudgeCheck
from lmms_eval_captions.lmms_eval_tasks.ratios import of_means
from lmms_eval_captions.metrics.gveval import mean_rating
from lmms_eval_captions.model_wrappers.video import frame_strip as strips

T = TypeVar("T")

SOURCE: Final = Source(
    benchmark="own",
    page="",
    license="yours",
    video_folder="own/videos",
    note="Put the clips, or links to them, into DATA/own/videos, in folders of any depth, and set "
    "LMMS_CAPTIONS_DATA=DATA",
)


def documents(settings: DataSettings, task: Task) -> list[dict[str, object]]:
    """Return a document for each clip, by its path below the folder.

    Raises:
        DataError: If there is no clip; the message says where they go.
    """
    names = list_videos(settings, SOURCE)
    # A caption file's ``clip`` is any clip of that name, whatever its folder.
    counts = Counter(PurePosixPath(name).stem for name in names)
    shared = [name for name, n in counts.items() if n > 1]
    if shared:
        logger.warning(
            "own: {} names are those of several clips, such as {!r}: a caption file must name each "
            "of these clips by its path below own/videos",
            len(shared),
            shared[0],
        )
    return [{"video_id": name, **task.fields} for name in names]


def _shown(doc: Doc, n_frames: int) -> Sequence[Picture]:
    of_file, of_frames = strips.shown_frames, strips.frames_shown
    return _seen(doc, partial(of_file, n_frames=n_frames), partial(of_frames, n_frames=n_frames))


def _seen(doc: Doc, of_file: Callable[..., T], of_frames: Callable[[Sequence[Any]], T]) -> T:
    """Return what the judge sees of a clip's file, or of its frames."""
    frames = doc.get("frames")
    try:
        if frames is None:
            frames = find_video(data_settings(), SOURCE, doc["video_id"])
        if isinstance(frames, (str, Path)):
            return of_file(Path(frames), cache=doc.get("cache") or data_settings().cache)
        return of_frames(frames)
    except DataError as error:
        raise DataError(f"no frames to show to the judge: {error}") from error


class OwnGVeval(gveval_tasks.GVevalBenchmark):
    """Scores of captions of the user's clips; in tasks, without references."""

    source = SOURCE
    read = staticmethod(documents)

    def __init__(self, setting: Setting = "ref_free") -> None:
        self.scorer = GVeval(setting)
        task = Task(
            name=f"own_gveval_{setting}",
            fields={"judge": "gveval"},
            caption_prompt="own_caption.own",
            judge_prompts=(self.scorer.prompt_name,),
            extras={"frames": "first_middle_last"} if self.scorer.sees else {},
            caption_chars=600,
        )
        self.tasks = {task.name: task}

    def questions(self, doc: Doc) -> list[Comparison]:
        """Return the one question."""
        picture = partial(_seen, doc, strips.frame_strip, strips.strip_of_frames)
        seen = picture if self.scorer.sees else None
        return [Comparison(self.scorer, doc.get("references", ()), seen)]


def _metric(dimension: str) -> Metric:
    return Metric(
        score=over_videos(mean_rating),
        scale=1.0,
        lowest=LOWEST,
        highest=HIGHEST,
        ratios=of_means(),
        values=lambda judgement: (judgement.numbers.get(dimension),),
        field="scores",
    )


class OwnRating(Benchmark[ShownVideo, RatingsJudgement]):
    """The mean rating along each of three dimensions."""

    template = "_rating_template_yaml"
    source = SOURCE
    read = staticmethod(documents)
    tasks = {
        "own_vllm_judge": Task(
            name="own_vllm_judge",
            fields={"judge": "vllm_judge"},
            caption_prompt="own_caption.own",
            judge_prompts=(rating.PROMPT,),
            caption_chars=600,
        )
    }
    metrics = {name: _metric(name) for name in rating.DIMENSIONS}
    headline = "overall"
    headline_means = "mean of the judge's ratings of how good the caption is as a whole, 1 to 5"
    judge = staticmethod(rating.judge_video)
    judge_check = JudgeCheck(
        # No caption of the user's clips is known to be right, so there is no anchor.
        tell=lambda _question: "",
        credit=lambda judgement: (
            (judgement.numbers["overall"] - LOWEST) / (HIGHEST - LOWEST)
            if judgement.numbers
            else None
        ),
        said=lambda _question, judgement: "/".join(map(str, judgement.numbers.values())) or None,
        silent=frozenset({"/".join(str(LOWEST) for _ in rating.DIMENSIONS)}),
    )
    output_tokens = {rating.PROMPT: 200}
    questions = staticmethod(lambda doc: [ShownVideo(partial(_shown, doc))])
    unseen = staticmethod(lambda _question: ShownVideo(lambda n: [gveval_tasks.NO_PICTURE] * n))


OWN_GVEVAL: Final = OwnGVeval()
OWN_RATING: Final = OwnRating()


def _document(clip: Clip) -> Doc:
    return {
        "video_id": clip.clip_id,
        "references": tuple(clip.references),
        "frames": clip.frames,
        "cache": clip.cache,
    }


def _protocol(name: str, benchmark: Benchmark[Any, Any], *needs: Need) -> ClipProtocol:
    (task,) = benchmark.tasks.values()
    return ClipProtocol(
        benchmark=benchmark,
        task=replace(task, name=name, fields={}),
        needs=frozenset(needs),
        document=_document,
    )


PROTOCOLS: Final = (
    _protocol("gveval_ref_free", OWN_GVEVAL, "video"),
    _protocol("gveval_ref_only", OwnGVeval("ref_only"), "reference"),
    _protocol("gveval_combined", OwnGVeval("combined"), "reference", "video"),
    _protocol("vllm_judge", OWN_RATING, "video"),
)
"""The video of each clip, or its frames; for two of them reference captions."""
