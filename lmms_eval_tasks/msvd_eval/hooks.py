"""Hooks of the MSVD-Eval tasks, named by the YAML files beside this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols.gveval import GVeval, Setting
from lmms_eval_captions.judges.protocols.gveval_reading import ACCR
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.judges.surrogates import whole
from lmms_eval_captions.lmms_eval_tasks.caption_prompts import caption_prompt
from lmms_eval_captions.lmms_eval_tasks.chat_messages import video_messages
from lmms_eval_captions.lmms_eval_tasks.judge_run import PendingRecord, Record, judge_defaults
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.data import read_items, video_path
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.records import GVevalRecords
from lmms_eval_captions.lmms_eval_tasks.records import Inquiry, pending, submit_caption
from lmms_eval_captions.lmms_eval_tasks.scoring import (  # noqa: F401 - the YAML files name them
    aggregate_signature,
    aggregate_unscored,
    mean_over_runs,
    resolve,
)
from lmms_eval_captions.lmms_eval_tasks.vdc.records import by_run
from lmms_eval_captions.metrics.gveval_score import gveval_score
from lmms_eval_captions.model_wrappers.video.frame_strip import Sampling, frame_strip

if TYPE_CHECKING:
    from collections.abc import Callable

    from datasets import Dataset

    from lmms_eval_captions.judges.endpoint.chain import Chain
    from lmms_eval_captions.judges.judge_config import JudgeConfig
    from lmms_eval_captions.judges.endpoint.picture import Picture
    from lmms_eval_captions.judges.verdict import ScoresJudgement

Doc = Mapping[str, object]

TEMPLATE: Final = Path(__file__).with_name("_default_template_yaml")
"""Holds the paper's judge under ``metadata.judge``."""


def process_docs(stub: Dataset) -> Dataset:
    """The documents of one setting: ``video_id``, ``vname``, ``setting`` and ``references``.

    Raises:
        DataError: If ``MSVD-Eval.json`` is missing or broken.
    """
    from datasets import Dataset

    setting = stub[0]["setting"]
    return Dataset.from_list(
        [
            {
                "video_id": item.video_id,
                "vname": item.vname,
                "setting": setting,
                "references": list(item.references),
            }
            for item in read_items(data_settings())
        ]
    )


def doc_to_visual(doc: Doc) -> list[str]:
    """Path of the document's video, looked up when a captioner asks for it."""
    return [str(video_path(data_settings(), str(doc["vname"])))]


def doc_to_text(_doc: Doc, lmms_eval_specific_kwargs: Mapping[str, str] | None = None) -> str:
    """The paper's caption prompt, between a model's own ``pre_prompt`` and ``post_prompt``."""
    return caption_prompt("gveval_caption", "msvd_eval", lmms_eval_specific_kwargs)


doc_to_messages = video_messages(doc_to_visual, doc_to_text)


def doc_to_target(doc: Doc) -> str:
    """The video's id: it makes a sample log readable again, also one without verdicts."""
    return str(doc["video_id"])


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, PendingRecord]:
    """Submit one caption; the records fill in place once it is judged."""
    caption = whole(results[0])
    setting = cast("Setting", doc["setting"])
    references = cast("list[str]", doc["references"])
    records = submit_caption(
        GVevalRecords,
        caption,
        task=f"msvd_eval_{setting}",
        video_id=str(doc["video_id"]),
        defaults=judge_defaults(TEMPLATE),
        inquiries=[
            Inquiry(
                partial(chain, GVeval(setting), caption, references, str(doc["vname"])),
                silent=None,
            )
        ],
        prompts=(GVeval(setting).prompt_name, "gveval_caption.msvd_eval"),
        **signature_extras(setting, "first_middle_last"),
    )
    return pending(
        records,
        {
            **{name: partial(GVevalRecords.dimension, name=name) for name in ACCR},
            "avg": GVevalRecords.avg,
        },
    )


def aggregate_score(items: Sequence[Record]) -> float:
    """The mean score in [0, 100] of the items' metric, mean over judge runs."""
    records = resolve(items)
    metric = str(records[0]["metric"]) if records else "score"
    return mean_over_runs(
        metric, records, lambda: [gveval_score(videos) for videos in by_run(records, "scores")]
    )


def chain(
    scorer: GVeval,
    caption: str,
    references: Sequence[str],
    vname: str,
    config: JudgeConfig,
    run: int,
    *,
    sampling: Sampling = "first_middle_last",
) -> Chain[ScoresJudgement]:
    """The one question about a caption, with the video's frames where the setting has them."""
    picture: Callable[[], Picture] = partial(_frames, vname, sampling)
    return partial(
        scorer.judge,
        caption=caption,
        references=references,
        picture=picture if scorer.sees else None,
        config=config,
        run=run,
    )


def signature_extras(setting: Setting, sampling: Sampling) -> dict[str, str]:
    """What else moves a score, for its signature."""
    return {"frames": sampling} if GVeval(setting).sees else {}


def _frames(vname: str, sampling: Sampling) -> Picture:
    settings = data_settings()
    try:
        return frame_strip(video_path(settings, vname), cache=settings.cache, sampling=sampling)
    except DataError as error:
        raise DataError(f"no frames to show to the judge: {error}") from error
