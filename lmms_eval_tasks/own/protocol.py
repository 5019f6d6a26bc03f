"""The two judges that see, for clips wherever they are: G-VEval, and CapQuiz's VLLM-as-a-Judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from lmms_eval_captions.judges.endpoint.request import Picture
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols.gveval import GVeval, Setting
from lmms_eval_captions.judges.protocols.video_rating import ShownVideo
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Doc, Task
from lmms_eval_captions.lmms_eval_tasks.clip_protocol import Clip, ClipProtocol, Need
from lmms_eval_captions.lmms_eval_tasks.gveval_tasks import Comparison
from lmms_eval_captions.lmms_eval_tasks.own.benchmark import OWN_GVEVAL
from lmms_eval_captions.lmms_eval_tasks.own.rating import OWN_RATING
from lmms_eval_captions.model_wrappers.video.frame_strip import (
    frame_strip,
    frames_shown,
    shown_frames,
    strip_of_frames,
)

T = TypeVar("T")

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
    """What the judge is shown of a clip's file, or of its frames."""
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
        benchmark=replace(OWN_GVEVAL, questions=questions),
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
        benchmark=replace(OWN_RATING, questions=lambda doc: [ShownVideo(partial(_shown, doc))]),
        task=replace(OWN_RATING.tasks["own_vllm_judge"], name="vllm_judge", fields={}),
        needs=frozenset({"video"}),
        document=_document,
    ),
)
"""The video of each clip, or its frames; for two of them reference captions."""
