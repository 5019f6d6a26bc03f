"""Captions of local models are on disk batch by batch, those of a run in one place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lmms_eval.api.instance import Instance

from caption_requests import make_requests
from hostile_clips import write_clip
from lmms_eval_captions.judges.errors import DataError, NoVideosError
from lmms_eval_captions.model_wrappers.caption_files.records import open_captions
from lmms_eval_captions.model_wrappers.captioner import Batch, Caption, Captioner
from lmms_eval_captions.model_wrappers.captions import RUN_CAPTIONS, CaptionLog, RunName
from lmms_eval_captions.model_wrappers.no_caption import NoCaption
from lmms_eval_captions.model_wrappers.video.sampling import Uniform

TASKS = {"camera": "How does the camera move?", "short": "In short?", "foreign": "What is it?"}
OURS = ("camera", "short")


class Endless(Captioner):
    """Writes so many batches, and is then ended like a process that is killed."""

    sampling = Uniform(2)

    def __init__(self, n_batches: int = 10**9) -> None:
        super().__init__(device="cpu")
        self.n_batches = n_batches
        self.n_saved: list[int] = []

    def caption(self, batch: Batch) -> Sequence[str | Caption | Future[Caption]]:
        """Name and prompt, with blanks around."""
        self.n_saved.append(len(rows()))
        if len(self.n_saved) > self.n_batches:
            raise KeyboardInterrupt
        return [f" {job.path.stem}: {job.prompt} \n" for job in batch.jobs]


@pytest.fixture(autouse=True)
def _log(bench: pytest.MonkeyPatch) -> Iterator[None]:
    """Tasks whose documents are known, and no captions yet."""
    for task in OURS:
        RUN_CAPTIONS.expect(task, lambda doc, task=task: (Path(doc["video"]).stem, task))  # type: ignore[misc]
    yield
    RUN_CAPTIONS._identities.clear()


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three clips."""
    folder = tmp_path_factory.mktemp("clips")
    return [write_clip(folder / f"clip{n}.mp4", 6) for n in range(3)]


def requests(model: Captioner, paths: Sequence[Path]) -> list[Instance]:
    """All tasks about all clips."""
    model.task_dict = {task: {"test": [{"video": str(path)} for path in paths]} for task in TASKS}
    return make_requests(len(paths), TASKS, {"max_new_tokens": 8}, is_simple=True)


def rows() -> list[dict[str, Any]]:
    path = RUN_CAPTIONS.log().path
    return [] if path is None else [json.loads(line) for line in path.read_text().splitlines()]


def test_a_killed_run_s_captions_can_be_judged(clips: list[Path]) -> None:
    """Every batch is on disk before the next one begins, in a file that ``caption_file`` reads."""
    model = Endless(5)
    with pytest.raises(KeyboardInterrupt):
        model.generate_until(requests(model, clips))
    # Three prompts of each clip follow each other, one of them of a task that is not ours.
    assert model.n_saved == [0, 1, 2, 2, 3, 4]
    path = RUN_CAPTIONS.log().path
    assert path is not None
    captions_of = open_captions(path)
    [first, second, _] = dict.fromkeys(row["video_id"] for row in rows()) | {"": None}
    for task in OURS:
        for video in (first, second):
            found = captions_of(task).find(video, task)
            assert found is not None
            assert found.strip() == f"{video}: {TASKS[task]}"


def test_captions_are_saved_once(clips: list[Path]) -> None:
    """Not again when their task is handed them, stripped as lmms-eval does; another text is."""
    model = Endless()
    results = model.generate_until(requests(model, clips))
    before = rows()
    assert len(before) == len(OURS) * len(clips)
    log = RUN_CAPTIONS.log()
    for number, path in enumerate(clips):
        for at, task in enumerate(OURS):
            text = results[at * len(clips) + number].text.strip()
            log.save(task=task, video_id=path.stem, caption=text, aspect=task)
    assert rows() == before
    log.save(task="camera", video_id="clip0", caption="thought over", aspect="camera")
    log.save(task="camera", video_id="clip1", caption=NoCaption("lost"), aspect="camera")
    assert len(rows()) == len(before) + 2
    assert log.path is not None
    assert open_captions(log.path)("camera").find("clip0", "camera") == "thought over"


def test_captions_of_several_processes_are_one_folder(tmp_path: Path, logged: list[str]) -> None:
    """It is said once, and what ``caption_file`` takes."""
    for rank in (1, 0):
        log = CaptionLog(tmp_path, RunName("run", rank, 2, is_first=not rank))
        log.save(task="t", video_id=f"v{rank}", caption=f"of {rank}", aspect=None)
        assert log.path == tmp_path / "captions" / "run"
    table = open_captions(tmp_path / "captions" / "run")("t")
    assert (table.find("v0"), table.find("v1")) == ("of 0", "of 1")
    [line] = [line for line in logged if "captions are saved" in line]
    assert line.rstrip().endswith(f"path={tmp_path / 'captions' / 'run'}")


def _lookup(error: type[DataError], found: Mapping[str, Path]) -> Any:
    def visual(doc: Mapping[str, str]) -> list[str]:
        if doc["video"] not in found:
            raise error(f"no video {doc['video']!r}")
        return [str(found[doc["video"]])]

    return visual


def asked(
    model: Captioner, n_clips: int, error: type[DataError], found: Mapping[str, Path]
) -> list[Any]:
    """Requests about clips of which some are found."""
    model.task_dict = {"t": {"test": [{"video": f"v{n}"} for n in range(n_clips)]}}
    visual = _lookup(error, found)
    return [
        SimpleNamespace(args=("Describe.", {}, visual, number, "t", "test"))
        for number in range(n_clips)
    ]


def test_a_missing_video_folder_is_one_error(logged: list[str]) -> None:
    """The run ends at the first look-up, without a word about any other clip."""
    model = Endless()
    with pytest.raises(NoVideosError, match="no video 'v0'"):
        model.generate_until(asked(model, 5000, NoVideosError, {}))
    assert not [line for line in logged if "no caption for" in line]


def test_many_missing_videos_are_not_a_line_each(clips: list[Path], logged: list[str]) -> None:
    """The first twenty are named, then their number is told; the others are captioned."""
    model = Endless()
    results = model.generate_until(asked(model, 300, DataError, {"v7": clips[0]}))
    assert sum("no caption for document" in line for line in logged) == 20
    assert [line for line in logged if "299 of 300 videos were not found" in line]
    assert results[7].text
    assert isinstance(results[299].text, NoCaption)
    assert "no video 'v299'" in results[299].text.reason
