"""The built-in sample: official layout, true answers, and safety under races and kills."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks import sample
from lmms_eval_captions.lmms_eval_tasks.registry import modules
from lmms_eval_captions.lmms_eval_tasks.sample import render
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks
from lmms_eval_captions.lmms_eval_tasks.vdc.sample import questions
from lmms_eval_captions.model_wrappers.caption_files.columns import ASPECTS
from lmms_eval_captions.model_wrappers.video.frames import read_frames

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A freshly written sample."""
    return sample.sample_root(tmp_path_factory.mktemp("cache"))


def _rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _texts(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(root.rglob("*.jsonl"))}


def test_every_benchmark_writes_its_own_folder(root: Path) -> None:
    """Each has all clips, of which there is one copy; nothing else is left in the sample."""
    folders = {benchmark.name for benchmark in all_benchmarks().values()}
    assert {name.partition("/")[0] for of in modules("sample") for name in of.files()} < folders
    assert {path.name for path in root.iterdir()} == {*folders, "SAMPLE_VERSION"}
    for folder in folders:
        clips = list((root / folder).rglob("*.mp4"))
        assert {clip.stem for clip in clips} == {scene.video_id for scene in SCENES}
        assert all(clip.stat().st_nlink == len(folders) for clip in clips)


@pytest.mark.parametrize("aspect", ASPECTS)
def test_question_files_have_the_official_form(root: Path, aspect: str) -> None:
    """A line has one key, a clip that exists, with 4 to 8 complete and distinct questions."""
    rows = _rows(root / "vdc" / "VDCScore_qa" / f"{aspect}.jsonl")
    assert [list(row) for row in rows] == [[scene.video_id] for scene in SCENES]
    for row in rows:
        ((video_id, pairs),) = row.items()
        assert (root / "vdc" / "videos" / f"{video_id}.mp4").is_file()
        assert isinstance(pairs, list)
        assert 4 <= len(pairs) <= 8
        assert all(set(pair) == {"question", "answer", "category"} for pair in pairs)
        assert all(all(pair.values()) for pair in pairs)
        assert len({pair["question"] for pair in pairs}) == len(pairs)


def test_every_clip_has_a_reference_caption_for_every_aspect(root: Path) -> None:
    """Reference captions cover all clips and all aspects."""
    rows = _rows(root / "vdc" / "captions.jsonl")
    assert [row["video_id"] for row in rows] == [scene.video_id for scene in SCENES]
    for row in rows:
        assert all(row[f"{aspect}_caption"] for aspect in ASPECTS)
        assert row["caption"]


def test_clips_decode_to_the_pictures_that_were_drawn(root: Path) -> None:
    """Each clip has the size, length and, up to compression, the pixels of its scene."""
    for scene in SCENES:
        clip = read_frames(root / "vdc" / "videos" / f"{scene.video_id}.mp4", 3)
        drawn = list(render.frames(scene))
        assert clip.n_total == len(drawn)
        assert clip.duration_s == pytest.approx(render.DURATION_S, abs=0.1)
        assert clip.frames.shape[1:] == (render.HEIGHT, render.WIDTH, 3)
        for got, index in zip(clip.frames, (0, round((len(drawn) - 1) / 2), -1), strict=True):
            difference = abs(got.astype(float) - drawn[index].astype(float))
            assert difference.mean() < 6, scene.video_id


def _answer(scene_number: int, aspect: str, question: str) -> str:
    pairs = questions(SCENES[scene_number - 1], aspect)
    return next(pair["answer"] for pair in pairs if question in pair["question"])


@pytest.mark.parametrize(
    ("scene_number", "aspect", "question", "answer"),
    [
        pytest.param(1, "main_object", "move in the scene", "it moves to the right", id="motion"),
        pytest.param(2, "short", "move in the scene", "it moves down", id="down"),
        pytest.param(3, "main_object", "How many objects", "three", id="count"),
        pytest.param(4, "camera", "camera pan", "yes, to the right", id="pan"),
        pytest.param(5, "camera", "camera zoom", "yes, in", id="zoom"),
        pytest.param(6, "camera", "How many shots", "two", id="cut"),
        pytest.param(7, "background", "brightness", "it gets darker", id="light"),
        pytest.param(8, "background", "text", "HELLO", id="text"),
        pytest.param(9, "main_object", "other object", "an orange circle", id="several"),
    ],
)
def test_answers_follow_from_the_scene(
    scene_number: int, aspect: str, question: str, answer: str
) -> None:
    """Hand-checked answers of each kind of clip."""
    assert _answer(scene_number, aspect, question) == answer


def test_a_complete_sample_is_left_alone(root: Path) -> None:
    """The second call writes nothing and returns at once."""
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    start_s = time.monotonic()
    sample.write_sample(root)
    assert time.monotonic() - start_s < 0.5
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_another_version_is_replaced(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A complete sample of an older version gives way to the new one, leaving nothing behind."""
    monkeypatch.setattr(render, "write_video", lambda _scene, path: path.write_bytes(b"video"))
    old = tmp_path / "sample"
    (old / "vdc").mkdir(parents=True)
    (old / "SAMPLE_VERSION").write_text("0\n")
    (old / "vdc" / "gone.jsonl").write_text("{}\n")
    sample.write_sample(old)
    assert _texts(old) == _texts(root)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == ["sample"]


def test_a_failure_midway_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writing that fails leaves neither the folder nor a draft."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(render, "write_video", full)
    with pytest.raises(DataError, match="No space left"):
        sample.write_sample(tmp_path / "sample")
    assert [path for path in tmp_path.iterdir() if path.suffix != ".lock"] == []


def test_a_killed_process_leaves_no_half_sample(root: Path, tmp_path: Path) -> None:
    """After a kill midway there is no folder, and the next call writes all of it."""
    target = tmp_path / "sample"
    code = (
        "import sys; from pathlib import Path\n"
        "from lmms_eval_captions.lmms_eval_tasks.sample import write_sample\n"
        "write_sample(Path(sys.argv[1]))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(target)])
    deadline_s = time.monotonic() + 60
    while not list(tmp_path.glob(".*/clips/sample_02.mp4")):
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert not target.exists()
    sample.write_sample(target)
    assert _texts(target) == _texts(root)


def test_two_processes_at_once_end_with_one_sample(root: Path, tmp_path: Path) -> None:
    """Both calls succeed, the result is complete, and no draft remains."""
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=sample.write_sample, args=(tmp_path / "sample",)) for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert _texts(tmp_path / "sample") == _texts(root)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == ["sample"]
