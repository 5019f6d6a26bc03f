"""One task of each benchmark, from its official files through its hooks to what lmms-eval logs."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from lmms_eval_captions.lmms_eval_tasks.capquiz import hooks as capquiz
from lmms_eval_captions.lmms_eval_tasks.msvd_eval import hooks as msvd_eval
from lmms_eval_captions.lmms_eval_tasks.vcapsbench import hooks as vcapsbench
from lmms_eval_captions.lmms_eval_tasks.vdc import hooks as vdc
from lmms_eval_captions.lmms_eval_tasks.vidcapbench import hooks as vidcapbench

Sample = dict[str, Any]


@dataclass(frozen=True)
class Texts:
    """What stands in the files of a benchmark, about one video."""

    video_id: str = "clip"
    question: str = "What is there?"
    gold: str = "A dog."
    """Gold answer, right option, or reference caption; VCapsBench's is always yes."""


@dataclass(frozen=True)
class Task:
    """A task of lmms-eval by its hooks."""

    name: str
    hooks: ModuleType
    stub: dict[str, str]
    headline: Callable[[Sequence[Any], Namespace], float]
    """Aggregation of the first metric, which writes the breakdown where there is one."""

    def documents(self) -> list[dict[str, Any]]:
        """The task's documents, from the files under ``LMMS_CAPTIONS_DATA``."""
        return list(self.hooks.process_docs([self.stub]))

    def samples(self, captions: Sequence[str], output: Path) -> list[Sample]:
        """What lmms-eval logs of a run over the documents, one caption each."""
        documents = self.documents()
        metrics = [
            self.hooks.process_results(document, [caption])
            for document, caption in zip(documents, captions, strict=True)
        ]
        first = next(iter(metrics[0]))
        self.headline([one[first] for one in metrics], Namespace(output_path=str(output)))
        for name in metrics[0]:
            vdc.resolve([one[name] for one in metrics])
        signature = vdc.aggregate_signature([one["signature"] for one in metrics])
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


def _score(items: Sequence[Any], _args: Namespace) -> float:
    return vdc.aggregate_acc(items)


def _gveval_score(items: Sequence[Any], _args: Namespace) -> float:
    return msvd_eval.aggregate_score(items)


TASKS: Final = (
    Task("vdc_camera", vdc, {"aspect": "camera"}, _score),
    Task("vidcapbench_ae", vidcapbench, {"subset": "AE"}, vidcapbench.aggregate_acc),
    Task("vcapsbench", vcapsbench, {}, vcapsbench.aggregate_ar),
    Task("capquiz", capquiz, {"caption_prompt": "standard"}, capquiz.aggregate_capf1),
    Task("msvd_eval_ref_only", msvd_eval, {"setting": "ref_only"}, _gveval_score),
)


def write_data(root: Path, videos: Sequence[Texts]) -> Path:
    """The official files of all five benchmarks with these videos, escaped to ASCII."""
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
    return root


def _quiz(texts: Texts) -> dict[str, object]:
    question = {
        "category": "Entity",
        "question": texts.question,
        "options": [texts.gold, "green", "blue", "white", "black"],
        "answer": texts.gold,
    }
    return {"video": texts.video_id, "domain": "Nature", "questions": [question]}


def _lines(path: Path, rows: Sequence[object]) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
