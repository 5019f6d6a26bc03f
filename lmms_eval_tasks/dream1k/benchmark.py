"""DREAM-1K: its file, task, metrics and groups."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Final

from lmms_eval_captions.judges.protocols import events as protocol
from lmms_eval_captions.judges.protocols.events import EventJudgement, Reference
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Task
from lmms_eval_captions.lmms_eval_tasks.common.event_metrics import event_metrics
from lmms_eval_captions.lmms_eval_tasks.data.files import find_file, read_clips
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source

SOURCE: Final = Source(
    benchmark="dream1k",
    page="https://huggingface.co/datasets/omni-research/DREAM-1K",
    license="Apache-2.0",
    video_folder="dream1k/video",
)
FILE: Final = "DREAM-1k.jsonl"
SOURCES: Final = (
    "movie_animation", "movie_live_action", "vertical_video", "videvo", "youtube",
)  # fmt: skip
EVENT_BUCKETS: Final = ("<=3", "4-5", "6-7", ">=8")
COUNT_BUCKETS: Final = ("<=1", "2", "3", ">=4")


class Dream1k(Benchmark[Reference, EventJudgement]):
    """Events of captions, and of references, of clips in five sources."""

    source = SOURCE
    probe_file = FILE
    name_fields = ("video",)
    tasks = {
        "dream1k": Task(
            name="dream1k",
            caption_prompt="dream1k_caption.caption",
            judge_prompts=("events_extract", "events_relation"),
            extras={"prompts": "ours"},
            caption_chars=900,
        )
    }
    metrics = event_metrics("dream")
    headline = "dream_f1"
    headline_means = "% harmonic mean of recall and precision of events"
    sections = {
        "sources": SOURCES,
        "events": EVENT_BUCKETS,
        "shots": COUNT_BUCKETS,
        "subjects": COUNT_BUCKETS,
    }
    counts_ahead = False
    ask = staticmethod(protocol.judge_events)
    silent = staticmethod(protocol.silent_events)
    output_tokens = {"events_extract": 90, "events_relation": 50}

    read = staticmethod(
        lambda settings, _task: read_clips(
            find_file(settings, SOURCE, FILE),
            _clip,
            expected="dataset, idx, messages and extra_info.events",
        )
    )
    questions = staticmethod(lambda doc: [Reference(tuple(doc["events"]), doc["reference"])])
    groups = staticmethod(
        lambda doc, _question, _judgement: {
            "sources": doc["source"],
            "events": EVENT_BUCKETS[bisect_left((3, 5, 7), len(doc["events"]))],
            "shots": COUNT_BUCKETS[bisect_left((1, 2, 3), doc["n_shots"])],
            "subjects": COUNT_BUCKETS[bisect_left((1, 2, 3), doc["n_subjects"])],
        }
    )
    # Clips are averaged within their source.
    fields = staticmethod(lambda doc, _caption: {"source": doc["source"]})


def _clip(row: Any) -> dict[str, object]:  # noqa: ANN401 - a row of the file
    info, reply = row["extra_info"], row["messages"][-1]["content"][0]
    return {
        "video": str(row.get("vid", row["idx"])),
        "source": str(row["dataset"]).rpartition("/")[2],
        "reference": str(reply["reference"]),
        "events": [str(event) for event in info["events"]],
        "n_shots": int(info["n_shots"]),
        "n_subjects": int(info["n_subjects"]),
    }


DREAM1K: Final = Dream1k()
