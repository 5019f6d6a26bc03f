"""Common parts of tests of a real judge: its runs, judgements and replies."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.protocols.capquiz import LETTERS, UNKNOWN, read_choice
from lmms_eval_captions.judges.protocols.gveval import read_scores
from lmms_eval_captions.judges.protocols.vcapsbench import read_answer
from lmms_eval_captions.judges.protocols.vdc_reading import read_match
from lmms_eval_captions.judges.protocols.vidcapbench import read_correctness
from runs import Run, environment
from small_model import NAME
from stamped_runs import StampedRun, run_stamped
from vllm_server import KEY, VllmServer

TIMEOUT_S: Final = os.environ.get("SMALL_MODEL_TIMEOUT")
"""Time-out of the judge, in seconds, for a machine that the benchmarks' own is too short on."""
_RUN_S: Final = 7200.0

Options = Mapping[tuple[str, str], tuple[str, ...]]


def judge_captions(
    server: VllmServer,
    output: Path,
    *,
    captions: Path,
    tasks: Sequence[str],
    n_videos: int | str,
    judge: str | None = NAME,
    **variables: str,
) -> StampedRun:
    """Have the captions of a file judged by the server; runs in one folder share a cache.

    Args:
        server: The judge.
        output: The run's own folder, in the one that is shared.
        captions: What ``caption_file`` reads.
        tasks: Names.
        n_videos: Most videos of each task.
        judge: Name that it is asked by, ``None`` for none.
        variables: More of the run's environment.
    """
    ours = {"LMMS_CAPTIONS_JUDGE_URL": server.url, "OPENAI_API_KEY": KEY}
    if judge is not None:
        ours["LMMS_CAPTIONS_JUDGE"] = judge
    if TIMEOUT_S is not None:
        ours["LMMS_CAPTIONS_JUDGE_TIMEOUT"] = TIMEOUT_S
    return run_stamped(
        output,
        "--model", "caption_file", "--model_args", f"path={captions}",
        "--tasks", ",".join(tasks), "--limit", str(n_videos),
        env=environment(output.parent / "cache", **{**ours, **variables}),
        timeout_s=_RUN_S,
    )  # fmt: skip


def headline_of(run: Run, task: str) -> float:
    """A task's first score."""
    names = {"vcapsbench": "ar", "capquiz": "capf1", "msvd_eval_ref_only": "avg"}
    prefix = "vdc_acc" if task.startswith("vdc") else names.get(task, "acc")
    return float(run.results[task][f"{prefix},none"])


def judged(run: Run, task: str) -> list[dict[str, Any]]:
    """Every judgement of a task with its video, from the samples."""
    items = (
        next(v for v in sample.values() if isinstance(v, dict) and "judgements" in v)
        for sample in run.samples(task)
    )
    return [
        {**judgement, "video_id": item["video_id"]}
        for item in items
        for judgement in item["judgements"]
    ]


def verdict_of(task: str, judgement: Mapping[str, Any]) -> object:
    if task.startswith("vdc"):
        return judgement["verdict"] and (judgement["verdict"], judgement["score"])
    names = {"vcapsbench": "predicted_answer", "capquiz": "choice", "msvd_eval_ref_only": "numbers"}
    return judgement[names.get(task, "verdict")]


def says(task: str, judgement: Mapping[str, Any], options: Options) -> object:
    if "no answer from the caption" in (judgement["reason"] or ""):
        return None
    # Samples do not say how a reply ended: one that was unreadable may have been cut.
    reply = Reply(judgement["reply"], "stop" if judgement["reason"] is None else "length")
    if task.startswith("vdc"):
        return read_match(reply)
    if task == "vcapsbench":
        return read_answer(reply)
    if task == "capquiz":
        menu = options[judgement["video_id"], judgement["question"]]
        letter = read_choice(reply, menu)
        return letter and menu[LETTERS.index(letter)]
    if task == "msvd_eval_ref_only":
        scores = read_scores(reply)
        return scores and {name: float(written.text) for name, written in scores.items()}
    return read_correctness(reply)


def judging_of(run: Run) -> dict[str, Any]:
    """The judging document of a run, which must have written one."""
    (path,) = run.output.rglob("*_judging.json")
    document: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return document


def kind_of_unread(judgement: Mapping[str, Any]) -> str:
    """Why a person reads no verdict in the reply of an unscored judgement, in a few words."""
    reply = (judgement["reply"] or "").strip()
    verdicts = {word.lower() for word in re.findall(r"\b(?:yes|no)\b", reply, re.IGNORECASE)}
    kinds = {
        "no answer in the first step": "no answer from the caption" in judgement["reason"],
        "no kind known": "unreadable reply" not in judgement["reason"],
        "empty": not reply,
        "code": "def " in reply or "```" in reply,
        "both verdicts": len(verdicts) == 2,
        "a verdict and a number": bool(verdicts) and bool(re.search(r"\d", reply)),
        "a verdict without a score": bool(verdicts),
        "no verdict": True,
    }
    return next(kind for kind, is_so in kinds.items() if is_so)


def options_of(root: Path) -> Options:
    """The options of each of CapQuiz's questions, by video and question."""
    rows = map(json.loads, (root / "capquiz" / "capquiz.jsonl").read_text("utf-8").splitlines())
    return {
        (row["video"], question["question"]): (*question["options"], UNKNOWN)
        for row in rows
        for question in row["questions"]
    }
