"""A setting that cannot be used stops what needs it, in every benchmark, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from five_tasks import TASKS, Task, Texts, write_data
from lmms_eval_captions.judges.errors import CaptionsError
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN
from lmms_eval_captions.model_wrappers.caption_openai import CaptionOpenai

CAPTION = "A dog."
VIDEO_FOLDERS = {
    "vdc_camera": "vdc/videos",
    "vidcapbench_ae": "vidcapbench/videos",
    "vcapsbench": "vcapsbench/videos5k",
    "capquiz": "capquiz/videos",
    "dream1k": "dream1k/video",
    "carebench": "carebench/videos",
    "salmonn2": "salmonn2/video",
    "ugc_videocap": "ugc_videocap/video",
    "caption_qa": "caption_qa/videos",
    "msvd_eval_ref_only": "msvd_eval/YouTubeClips",
    "own_gveval_ref_free": "own/videos",
    "own_vllm_judge": "own/videos",
}
BAD_JUDGES = {
    "url": {"LMMS_CAPTIONS_JUDGE_URL": "here"},
    "replicas in batch mode": {
        "OPENAI_BASE_URL": "http://127.0.0.1:1/v1,http://127.0.0.1:2/v1",
        "LMMS_CAPTIONS_JUDGE_MODE": "batch",
    },
    "rank": {"RANK": "x"},
    "misspelt": {"LMMS_CAPTIONS_MAX_COTS": "1"},
}


@pytest.fixture
def data(tmp_path: Path, bench: pytest.MonkeyPatch) -> Path:
    """The files of all benchmarks about one video, and the video, where the settings say."""
    root = write_data(tmp_path / "data", [Texts("clip")])
    for folder in VIDEO_FOLDERS.values():
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / "clip.mp4").touch()
    bench.setenv("LMMS_CAPTIONS_DATA", str(root))
    return root


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@pytest.mark.parametrize("environ", BAD_JUDGES.values(), ids=BAD_JUDGES)
def test_a_judge_that_cannot_be_asked_stops_no_captioner(
    task: Task, environ: dict[str, str], data: Path, bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Documents, prompts and clips are there, the caption is saved, the sample says why."""
    for name, value in environ.items():
        bench.setenv(name, value)
    (document,) = task.documents()
    (clip,) = task.hooks.doc_to_visual(document)
    assert Path(clip) == data / VIDEO_FOLDERS[task.name] / "clip.mp4"
    assert task.hooks.doc_to_text(document)
    metrics = task.hooks.process_results(document, [CAPTION])
    record = next(iter(metrics.values())).wait()
    named = "LMMS_CAPTIONS_JUDGE_MODE" if "OPENAI_BASE_URL" in environ else next(iter(environ))
    assert named in json.dumps(record["reasons"])
    (log,) = (tmp_path / "cache" / "captions").glob("*.jsonl")
    assert CAPTION in log.read_text()


UNUSABLE_JUDGES = {
    **BAD_JUDGES,
    "no number": {"LMMS_CAPTIONS_MAX_COST": "abc"},
    "key": {"LMMS_CAPTIONS_JUDGE_URL": "https://judge.example/v1"},
    "unnamed": {"LMMS_CAPTIONS_JUDGE_URL": "http://127.0.0.1:1/v1", "LMMS_CAPTIONS_JUDGE": ""},
    "prices": {"LMMS_CAPTIONS_PRICES": "/nowhere", "LMMS_CAPTIONS_JUDGE_URL": "http://[::1]:1/v1"},
    "price": {"LMMS_CAPTIONS_JUDGE_URL": "https://judge.example/v1", "OPENAI_API_KEY": "key"},
    "cache": {"LMMS_CAPTIONS_CACHE": "a file", "LMMS_CAPTIONS_JUDGE_URL": "http://[::1]:1/v1"},
}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@pytest.mark.parametrize("environ", UNUSABLE_JUDGES.values(), ids=UNUSABLE_JUDGES)
def test_a_run_that_will_judge_is_ended_before_it_captions(
    task: Task, environ: dict[str, str], data: Path, bench: pytest.MonkeyPatch
) -> None:
    """The documents are not handed out, in one sentence; a run that only predicts goes on."""
    bench.delenv("OPENAI_API_KEY", raising=False)
    (data / "a file").touch()
    for name, value in environ.items():
        bench.setenv(name, str(data / value) if value == "a file" else value)
    assert task.documents()
    bench.setattr(THIS_RUN, "will_judge", True)
    with pytest.raises(CaptionsError) as ended:
        task.documents()
    words = str(ended.value)
    assert re.search(r"LMMS_CAPTIONS_|OPENAI_API_KEY|RANK", words)
    assert len(words) <= 300
    assert "\n" not in words


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_offline_judge_needs_nothing(task: Task, data: Path, bench: pytest.MonkeyPatch) -> None:
    """It keeps no replies, and has no price."""
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    bench.setenv("LMMS_CAPTIONS_MAX_COST", "1")
    (data / "a file").touch()
    bench.setenv("LMMS_CAPTIONS_CACHE", str(data / "a file"))
    bench.setattr(THIS_RUN, "will_judge", True)
    assert task.documents()


def test_replicas_caption_where_the_judge_is_asked_in_batches(bench: pytest.MonkeyPatch) -> None:
    for name, value in BAD_JUDGES["replicas in batch mode"].items():
        bench.setenv(name, value)
    CaptionOpenai(model="seer", device="cpu").clean()


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_data_that_cannot_be_had_stop_no_judge(
    task: Task, data: Path, bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Once the documents are there, captions are judged whatever the settings of the data are.

    But by judges that are shown the clips.
    """
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    (document,) = task.documents()
    bench.setenv("LMMS_CAPTIONS_DATA", str(data / "nowhere"))
    bench.setenv("LMMS_CAPTIONS_VIDCAPBENCH_FORMAT", "long")
    SESSION.close()
    metrics = task.hooks.process_results(document, [CAPTION])
    unscored = task.hooks.aggregate_unscored([metrics["unscored"]])
    assert unscored == (task.hooks.benchmark.name == "own")
    if unscored:
        assert "LMMS_CAPTIONS_VIDCAPBENCH_FORMAT" in str(metrics["unscored"])
