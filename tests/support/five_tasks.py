"""One task of each benchmark, from its files through its hooks to what lmms-eval logs."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from aggregated import signature_of_items
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.lmms_eval_tasks.hooks import Hooks, hooks_of
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks

Sample = dict[str, Any]


@dataclass(frozen=True)
class Texts:
    video_id: str = "clip"
    question: str = "What is there?"
    gold: str = "A dog."
    """Gold answer, right option, or reference caption; VCapsBench's is always yes."""


@dataclass(frozen=True)
class Task:
    """A task of lmms-eval by its hooks."""

    name: str
    hooks: Hooks[Any, Any]

    def documents(self) -> list[dict[str, Any]]:
        """The task's documents, from the files under ``LMMS_CAPTIONS_DATA``."""
        return list(self.hooks.process_docs([self.hooks.benchmark.tasks[self.name].fields]))

    def samples(self, captions: Sequence[str], output: Path) -> list[Sample]:
        documents = self.documents()
        metrics = [
            self.hooks.process_results(document, [caption])
            for document, caption in zip(documents, captions, strict=True)
        ]
        columns = {name: [items[name] for items in metrics] for name in metrics[0]}
        arguments = Namespace(output_path=str(output))
        for metric in self.hooks.benchmark.metrics:
            self.hooks.aggregate(metric)(columns[metric], args=arguments)
        self.hooks.aggregate_unscored(columns["unscored"])
        signature = signature_of_items(columns["unscored"])
        return [
            {
                "doc": document,
                "target": self.hooks.doc_to_target(document),
                "input": self.hooks.doc_to_text(document),
                "signature of the task": signature,
                **metrics[place],
            }
            for place, document in enumerate(documents)
        ]


_OWN: Final = "own"
"""Folder of the benchmarks of one's own clips, which have nothing but the clips in common."""


def _first_tasks() -> Iterator[Task]:
    """The first task of each benchmark; a variant of one in the same folder has none here."""
    seen: set[str] = set()
    for benchmark in all_benchmarks().values():
        if benchmark.name not in seen or benchmark.name == _OWN:
            yield Task(next(iter(benchmark.tasks)), hooks_of(benchmark))
        seen.add(benchmark.name)


TASKS: Final = tuple(_first_tasks())
CAPTIONER_PAPERS: Final = ("dream1k", "carebench", "salmonn2", "ugc_videocap", "caption_qa")
"""Benchmarks without anchors for their judge and without a protocol for the user's clips."""


def write_data(root: Path, videos: Sequence[Texts]) -> Path:
    """The official files of all benchmarks with these videos, escaped to ASCII, and own clips."""
    pairs = [{"question": v.question, "answer": v.gold} for v in videos]
    kind = {"primary_category": "video motion", "sub_category": "object motion"}
    _lines(
        root / "vdc/VDCScore_qa/camera.jsonl",
        [{v.video_id: [pair]} for v, pair in zip(videos, pairs, strict=True)],
    )
    _lines(
        root / "vidcapbench/VidCapBench-AE_QA.jsonl",
        [
            {"video_dir": v.video_id, "QA_pairs": [{**pair, **kind}]}
            for v, pair in zip(videos, pairs, strict=True)
        ],
    )
    _lines(
        root / "vcapsbench/VCapsBench_100KQA.jsonl",
        [{"video_id": v.video_id, "qa": [f"action*{v.question}*yes"]} for v in videos],
    )
    _lines(root / "capquiz/capquiz.jsonl", list(map(_quiz, videos)))
    rated = {
        v.video_id: {"vname": f"{v.video_id}.mp4", "ref": [v.gold, v.question]} for v in videos
    }
    (root / "msvd_eval").mkdir(parents=True)
    (root / "msvd_eval/MSVD-Eval.json").write_text(json.dumps(rated))
    write_captioner_papers(root, videos)
    for video in videos:
        # A file's name holds no half characters, but may be no UTF-8.
        name = whole(video.video_id).replace("\ufffd", os.fsdecode(b"\xff"))
        write_clip(root / "own/videos" / f"{name}.mp4", repr(video))
    return root


def write_captioner_papers(root: Path, videos: Sequence[Texts]) -> None:
    """Write the files of DREAM-1K, CaReBench, video-SALMONN 2, UGC-VideoCap and Daily-Omni."""
    _lines(
        root / "dream1k/DREAM-1k.jsonl",
        [
            {
                "idx": v.video_id,
                "dataset": "DREAM/youtube",
                "messages": [{"content": [{"reference": v.gold}]}],
                "extra_info": {"events": [v.question], "n_shots": 1, "n_subjects": 1},
            }
            for v in videos
        ],
    )
    files = {
        "carebench/json/metadata.json": [
            {
                "video": v.video_id,
                "caption": v.gold,
                "events": [v.question],
                "objects": [v.gold],
            }
            for v in videos
        ],
        "salmonn2/video_salmonn2_test.json": [
            {"video": f"{v.video_id}.mp4", "events": [v.question]} for v in videos
        ],
        "ugc_videocap/final_caption_qa.json": {
            "samples": [
                {"video_id": v.video_id, "path": f"{v.video_id}.mp4", "answer": v.gold}
                for v in videos
            ]
        },
    }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(json.dumps(content))
    asked = [
        {"question": v.question, "options": [v.gold, "green", "blue"], "answer": v.gold}
        for v in videos
    ]
    _lines(
        root / "caption_qa/questions.jsonl",
        [{"video": v.video_id, **row} for v, row in zip(videos, asked, strict=True)],
    )


def write_clip(path: Path, shows: str) -> None:
    """A tiny clip of two frames, other ones for another text; its folders are made."""
    from PIL import Image

    colours = blake2b(shows.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    first, second = (Image.new("RGB", (16, 16), tuple(colours[n : n + 3])) for n in (0, 3))
    path.parent.mkdir(parents=True, exist_ok=True)
    first.save(path, "GIF", save_all=True, append_images=[second])


def _quiz(texts: Texts) -> dict[str, object]:
    question = {
        "category": "Entity",
        "question": texts.question,
        "options": [texts.gold, "green", "blue", "white", "black"],
        "answer": texts.gold,
    }
    return {"video": texts.video_id, "domain": "Nature", "questions": [question]}


def _lines(path: Path, rows: Sequence[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
