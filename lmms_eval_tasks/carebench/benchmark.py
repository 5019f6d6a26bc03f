"""CaReBench: its file, task and metrics."""

from __future__ import annotations

from typing import Any, Final

from lmms_eval_captions.judges.protocols import events as protocol
from lmms_eval_captions.judges.protocols.events import EventJudgement, Reference
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Task
from lmms_eval_captions.lmms_eval_tasks.common.event_metrics import event_metrics
from lmms_eval_captions.lmms_eval_tasks.data.files import find_file, read_clips
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source

SOURCE: Final = Source(
    benchmark="carebench",
    page="https://huggingface.co/datasets/MCG-NJU/CaReBench",
    license="MIT",
    video_folder="carebench/videos",
    hub_repo="MCG-NJU/CaReBench",
)
FILE: Final = "json/metadata.json"
_KINDS: Final = ("events", "objects")


class CareBench(Benchmark[Reference, EventJudgement]):
    """Events and static objects of captions, and of human captions."""

    source = SOURCE
    probe_file = FILE
    name_fields = ("video",)
    tasks = {
        "carebench": Task(
            name="carebench",
            caption_prompt="carebench_caption.caption",
            judge_prompts=(
                "events_extract", "events_relation", "objects_extract", "objects_relation",
            ),
            extras={"prompts": "ours"},
            caption_chars=1400,
        )
    }  # fmt: skip
    metrics = {**event_metrics("care_action"), **event_metrics("care_object", "objects")}
    headline = "care_action_f1"
    headline_means = "% harmonic mean of recall and precision of events"
    counts_ahead = False
    ask = staticmethod(protocol.judge_events)
    silent = staticmethod(protocol.silent_events)
    output_tokens = {
        "events_extract": 90, "events_relation": 50, "objects_extract": 90, "objects_relation": 70,
    }  # fmt: skip

    read = staticmethod(
        lambda settings, _task: read_clips(
            find_file(settings, SOURCE, FILE), _clip, expected="video, caption, events and objects"
        )
    )
    questions = staticmethod(
        lambda doc: [Reference(tuple(doc[kind]), doc["reference"], kind) for kind in _KINDS]
    )
    question_text = staticmethod(lambda question: question.kind)


def _clip(row: Any) -> dict[str, object]:  # noqa: ANN401 - a row of the file
    for kind in _KINDS:
        if not isinstance(row[kind], list):
            raise TypeError(f"{kind}: expected a list of texts, got {row[kind]!r:.80}")
    lists = {kind: [str(text) for text in row[kind]] for kind in _KINDS}
    return {"video": str(row["video"]), "reference": str(row["caption"]), **lists}


CAREBENCH: Final = CareBench()
