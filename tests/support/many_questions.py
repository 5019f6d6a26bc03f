"""Documents of every benchmark whose judge is asked, with as many questions as a test likes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks

Document = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A benchmark, its first task, and how a document of it is made."""

    name: str
    document: Callable[[int, int], Document]
    """From the number of its video and of its questions."""
    n_videos: int = 48
    n_questions: int = 15
    """Of each video; 1 where a caption is judged as a whole."""
    n_runs: int = 1
    n_steps: int = 1
    """Requests about one question in one judge run."""

    @property
    def benchmark(self) -> Benchmark[Any, Any]:
        """The benchmark's value."""
        return all_benchmarks()[self.name]

    @property
    def documents(self) -> list[Document]:
        """Videos that have not all as many questions."""
        few = self.n_questions // 3
        return [
            self.document(video, self.n_questions + (video % (2 * few + 1) - few if few else 0))
            for video in range(self.n_videos)
        ]


def _questions(video: int, n: int, **fields: object) -> list[Document]:
    return [{"question": f"{video}.{i}?", **fields} for i in range(n)]


def _vdc(video: int, n: int) -> Document:
    return {
        "video_id": f"v{video}",
        "aspect": "camera",
        "questions": [
            {**one, "answer": "a red ball", "category": "ab"[i % 2]}
            for i, one in enumerate(_questions(video, n))
        ],
    }


def _vidcapbench(video: int, n: int) -> Document:
    kinds = (("video motion", "object motion"), ("physical laws", "common sense"))
    return {
        "video_id": f"v{video}",
        "video_dir": f"v{video}.mp4",
        "subset": "AE",
        "caption_format": "free",
        "questions": [
            {**one, "answer": "red", "primary_category": kinds[i % 2][0],
             "sub_category": kinds[i % 2][1]}
            for i, one in enumerate(_questions(video, n))
        ],
    }  # fmt: skip


def _vcapsbench(video: int, n: int) -> Document:
    return {
        "video_id": f"v{video}",
        "questions": [
            {**one, "category": ("color", "action")[i % 2], "answer": "yes"}
            for i, one in enumerate(_questions(video, n))
        ],
        "n_malformed": 0,
        "n_malformed_in_file": 0,
    }


def _capquiz(video: int, n: int) -> Document:
    return {
        "video": f"v{video}",
        "domain": "Nature",
        "caption_prompt": "standard",
        "questions": [
            {**one, "category": ("Entity", "Causal")[i % 2], "answer": "b",
             "options": ["a", "b", "c", "d", "e"]}
            for i, one in enumerate(_questions(video, n))
        ],
    }  # fmt: skip


KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind("vdc", _vdc, n_steps=2),
        Kind("vdc_rouge", lambda video, n: {**_vdc(video, n), "matching": "rouge-l"}),
        Kind(
            "vdc_vdd",
            lambda video, _: {
                "video_id": f"v{video}", "aspect": "camera", "reference": f"Ball {video}.",
            },
            n_videos=1000,
            n_questions=1,
        ),
        Kind("vidcapbench", _vidcapbench, n_runs=3, n_steps=2),
        Kind("vcapsbench", _vcapsbench, n_steps=3),
        Kind("capquiz", _capquiz),
        Kind(
            "msvd_eval",
            lambda video, _: {
                "video_id": f"v{video}", "vname": f"v{video}.avi", "setting": "ref_only",
                "references": [f"dog {video} runs"],
            },
            n_videos=1000,
            n_questions=1,
        ),
    )
}  # fmt: skip
"""Of clips of one's own there are no questions; they are judged as ``msvd_eval`` is."""
