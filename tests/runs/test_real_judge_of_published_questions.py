"""A real small model judges 20 videos of VDC with published questions.

What cannot be read is listed by kind, below ``SMALL_MODEL_REPORT`` where that names a folder.
"""

from __future__ import annotations

import gzip
import json
import os
import random
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Final

import pytest

from real_judge import judge_captions, judged, judging_of, kind_of_unread, says, verdict_of
from stamped_runs import StampedRun
from vllm_server import VllmServer

pytestmark = pytest.mark.real

N_VIDEOS: Final = int(os.environ.get("SMALL_MODEL_VDC_VIDEOS", "20"))
"""From 20 on every task asks of a few questions whether the judge reads captions at all."""
TASKS: Final = os.environ.get("SMALL_MODEL_VDC_TASKS", "vdc_short").split(",")
"""Others are such as ``vdc_camera,vdc_detailed``."""
N_QUESTIONS: Final = int(os.environ.get("SMALL_MODEL_VDC_QUESTIONS", "5"))
"""The first of each video, of some 19. A question takes six seconds on two cores: half of what this
model says is unreadable, and asked for four times."""
_KNOWN: Final = 0.6
"""Share of the gold answers that a caption is made of."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Path:
    """Folder of the runs, with captions, questions and the cache that they share."""
    folder = tmp_path_factory.mktemp("published")
    questions = folder / "data" / "vdc" / "VDCScore_qa"
    questions.mkdir(parents=True)
    drawn = random.Random(0)
    with (folder / "captions.jsonl").open("w", encoding="utf-8") as captions:
        for path in sorted((shared_data / "vdc_qa").glob("*.jsonl.gz")):
            aspect = path.name.removesuffix(".jsonl.gz")
            rows = [(video_id, pairs[:N_QUESTIONS]) for video_id, pairs in _rows(path)]
            lines = "".join(json.dumps(dict([row])) + "\n" for row in rows)
            (questions / f"{aspect}.jsonl").write_text(lines, encoding="utf-8")
            for video_id, pairs in rows:
                caption = ". ".join(p["answer"] for p in pairs if drawn.random() < _KNOWN)
                row = {"video_id": video_id, "aspect": aspect, "caption": caption or "A video."}
                captions.write(json.dumps(row) + "\n")
    return folder


@pytest.fixture(scope="module")
def first(real_server: VllmServer, folder: Path) -> StampedRun:
    """The run that asks."""
    return _run(real_server, folder, "first")


def test_every_judgement_is_what_its_reply_says(first: StampedRun) -> None:
    """Verdicts are those that the readers find in the reply; what has none is unscored, by kind."""
    run = first.run
    assert run.returncode == 0, run.log[-3000:]
    assert "Traceback" not in run.log
    kinds: Counter[str] = Counter()
    unread = []
    for task in TASKS:
        judgements = judged(run, task)
        assert len(judgements) >= N_VIDEOS * min(N_QUESTIONS, 10)
        for judgement in judgements:
            assert says(task, judgement, {}) == (verdict_of(task, judgement) or None), judgement
            if judgement["reason"] is not None:
                kinds[kind_of_unread(judgement)] += 1
                unread.append({"task": task, **judgement})
        assert run.results[task]["unscored,none"] == sum(j["task"] == task for j in unread)
    print(f"\n{len(unread)} unread of {sum(len(judged(run, task)) for task in TASKS)}: {kinds}")  # noqa: T201
    _report("unread.jsonl", "".join(json.dumps(row) + "\n" for row in unread))
    assert kinds["no kind known"] == 0


def test_a_judge_that_does_not_judge_is_doubted(first: StampedRun) -> None:
    document = judging_of(first.run)
    doubts = {task: document["tasks"][task]["doubts"] for task in TASKS}
    print(f"\n{json.dumps(doubts, indent=1)}")  # noqa: T201
    assert N_VIDEOS < 20 or any(doubts.values()), doubts


def test_a_rerun_sends_nothing(real_server: VllmServer, first: StampedRun, folder: Path) -> None:
    """Everything is in the store, the unreadable replies and the anchors, too."""
    n_requests = real_server.n_requests()
    again = _run(real_server, folder, "again")
    assert real_server.n_requests() == n_requests
    assert again.run.scores() == first.run.scores()
    assert judging_of(again.run)["judging"]["calls"] == 0


def _run(server: VllmServer, folder: Path, name: str) -> StampedRun:
    return judge_captions(
        server,
        folder / name,
        captions=folder / "captions.jsonl",
        tasks=TASKS,
        n_videos=N_VIDEOS,
        LMMS_CAPTIONS_DATA=str(folder / "data"),
        # Most of what this model says is no verdict, and is to be seen.
        LMMS_CAPTIONS_MAX_UNSCORED="1",
    )


def _rows(path: Path) -> list[tuple[str, list[dict[str, str]]]]:
    """Videos with their question-answer pairs, as published, more videos than are asked about."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [pair for line in islice(lines, 4 * N_VIDEOS) for pair in json.loads(line).items()]


def _report(name: str, text: str) -> None:
    if folder := os.environ.get("SMALL_MODEL_REPORT"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / name).write_text(text, encoding="utf-8")
