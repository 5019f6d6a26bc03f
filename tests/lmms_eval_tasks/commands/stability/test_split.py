"""``lmms-eval-captions stability --split`` writes official files that tasks read back."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ended_runs import judge
from lmms_eval_captions.judges.errors import DataError, NoVideosError
from lmms_eval_captions.judges.settings import SAMPLE, DataSettings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.data.files import find_file, find_video
from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks, benchmark_of_task
from planted_stability import NAMES, Asked, official_questions, plant, tasks_of_name

PARTS = ("stable", "unstable")


def _fates(questions: Mapping[Asked, Any], *, seed: str) -> dict[tuple[Asked, str], Any]:
    generator = random.Random(seed)
    return {
        (asked, captioner): generator.choices(["same", "differs", "unscored"], [8, 2, 1])[0]
        for asked in questions
        for captioner in "ab"
    }


def _split(
    monkeypatch: pytest.MonkeyPatch, settings: DataSettings, out: Path, *words: str | Path
) -> int:
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(settings.cache))
    monkeypatch.setenv("LMMS_CAPTIONS_DATA", str(settings.data))
    return main(["stability", *map(str, words), "--split", str(out)])


def _root(out: Path, name: str, part: str) -> Path:
    return out / f"{benchmark_of_task(tasks_of_name(name)[0]).name}-{part}"


def _all_questions(settings: DataSettings, name: str) -> dict[Asked, Any]:
    tasks = [official_questions(settings, task) for task in tasks_of_name(name)]
    return {asked: groups for of_task in tasks for asked, groups in of_task.items()}


def _rows(settings: DataSettings, task: str) -> list[tuple[str, dict[str, object], list[object]]]:
    """Each video of a task that has questions, with all else of its document, and the questions."""
    benchmark = benchmark_of_task(task)
    docs = benchmark.read(settings, benchmark.tasks[task])
    return [
        (
            benchmark.video_id(doc),
            {field: value for field, value in doc.items() if field != "questions"},
            [*benchmark.questions(doc)],
        )
        for doc in docs
        if benchmark.questions(doc)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_parts_are_the_benchmark(
    name: str, settings: DataSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each question is in one part with all that belongs to it, in its order."""
    questions = _all_questions(settings, name)
    fates = _fates(questions, seed=name)
    never = next(iter(questions))[1]
    plans = dict.fromkeys("ab", lambda asked, captioner: fates[asked, captioner])
    folders = plant(tmp_path, settings, name, plans, leave_out=[never])
    assert _split(monkeypatch, settings, tmp_path / "out", *folders) == 0
    for task in tasks_of_name(name):
        asked = iter(official_questions(settings, task))
        expected: dict[str, list[object]] = {part: [] for part in PARTS}
        for video, fields, of_video in _rows(settings, task):
            rows: dict[str, list[object]] = {part: [] for part in PARTS}
            for question, key in zip(of_video, asked, strict=False):
                is_stable = video != never and all(fates[key, c] == "same" for c in "ab")
                rows["stable" if is_stable else "unstable"].append(question)
            for part in PARTS:
                expected[part] += [(video, fields, rows[part])] if rows[part] else []
        for part in PARTS:
            here = replace(settings, data=str(_root(tmp_path / "out", name, part)))
            assert str(_rows(here, task)) == str(expected[part])


@pytest.mark.parametrize("name", NAMES)
def test_a_part_says_how_it_was_made(
    name: str, settings: DataSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts that add up to the original, results, signatures and judges; and clips are found."""
    questions = _all_questions(settings, name)
    fates = _fates(questions, seed=name)
    plans = dict.fromkeys("ab", lambda asked, captioner: fates[asked, captioner])
    folders = plant(tmp_path, settings, name, plans)
    assert _split(monkeypatch, settings, tmp_path / "out", *folders) == 0
    n_questions = 0
    for part in PARTS:
        root = _root(tmp_path / "out", name, part)
        here = replace(settings, data=str(root))
        manifest = json.loads((root / "split.json").read_text(encoding="utf-8"))
        assert manifest["n_questions"] == len(_all_questions(here, name)) > 0
        n_questions += manifest["n_questions"]
        assert [captioner["name"] for captioner in manifest["captioners"]] == ["a", "b"]
        for task in tasks_of_name(name):
            said = manifest["captioners"][1]["tasks"][task]
            assert (tmp_path / "b" / "m" / Path(said["results"]).name).is_file()
            assert said["signature"].startswith(f"{task}|judge:gpt-4o|runs:3|")
            benchmark = benchmark_of_task(task)
            for doc in benchmark.read(here, benchmark.tasks[task]):
                assert benchmark.video_path(here, doc) == benchmark.video_path(settings, doc)
        assert manifest["judges"] == ["gpt-4o"]
        words = f"{manifest['n_questions']:,} of {len(questions):,} questions"
        assert words in (root / "README.md").read_text(encoding="utf-8")
    assert n_questions == len(questions)


@pytest.mark.parametrize("name", NAMES)
def test_a_part_is_judged_like_the_benchmark(
    name: str, settings: DataSettings, tmp_path: Path, bench: pytest.MonkeyPatch
) -> None:
    """The hooks of its tasks ask exactly its questions."""
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    bench.setenv("LMMS_CAPTIONS_JUDGE_RUNS", "1")
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "1")
    tasks = tasks_of_name(name)
    fates: dict[tuple[Asked, str], Any] = {}
    for task in tasks:
        fates |= _fates(official_questions(settings, task), seed=task)
    folders = plant(tmp_path, settings, name, dict.fromkeys("ab", lambda a, c: fates[a, c]))
    assert _split(bench, settings, tmp_path / "out", *folders) == 0
    benchmark = benchmark_of_task(tasks[0])
    bench.setenv("LMMS_CAPTIONS_DATA", str(tmp_path / "out" / f"{benchmark.name}-stable"))
    for task in tasks:
        documents = list(hooks_of(benchmark).process_docs([benchmark.tasks[task].fields]))
        results = judge(task, ["A red circle moves."] * len(documents), documents)
        stable = [
            asked
            for asked, _ in fates
            if asked[0] == task and all(fates[asked, c] == "same" for c in "ab")
        ]
        assert f"unscored:0/{len(set(stable))}" in str(results["signature,none"])


def test_only_some_groups_are_split_off(
    settings: DataSettings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As VidCapBench-HE has unstable questions of motion and physical laws alone."""
    folders = plant(tmp_path, settings, "vidcapbench", {"a": lambda *_: "differs"})
    chosen = ("video motion", "physical laws")
    words = [word for name in chosen for word in ("--only", name)]
    assert _split(monkeypatch, settings, tmp_path / "out", *folders, *words) == 0
    here = {
        part: replace(settings, data=str(tmp_path / "out" / f"vidcapbench-{part}"))
        for part in PARTS
    }
    for part, tasks in (("stable", ["vidcapbench_ae"]), ("unstable", tasks_of_name("vidcapbench"))):
        for task in tasks:
            for groups in official_questions(here[part], task).values():
                assert (groups["dimensions"] in chosen) == (part == "unstable")
    with pytest.raises(DataError, match="has no question of this file: leave its task out"):
        official_questions(here["stable"], "vidcapbench_he")
    readme = (Path(str(here["stable"].data)) / "README.md").read_text(encoding="utf-8")
    assert "--tasks vidcapbench_ae --output_path" in readme
    assert "only those of video motion, physical laws were split off" in readme
    capsys.readouterr()
    assert _split(monkeypatch, settings, tmp_path / "out2", *folders, "--only", "motion") == 2
    assert "expected any of all, vidcapbench_ae" in capsys.readouterr().err
    assert not (tmp_path / "out2").exists()


def test_two_prompts_about_one_file_must_agree(
    settings: DataSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CapQuiz's tasks ask the same of captions that were asked for differently."""
    first = next(iter(official_questions(settings, "capquiz")))
    for task in ("capquiz", "capquiz_detailed"):
        plant(
            tmp_path / task, settings, task,
            {"a": lambda a, _: "differs" if a == first else "same"},
        )  # fmt: skip
    # One folder that has both, as of a run over both tasks.
    one, other = (tmp_path / task / "a" / "m" for task in ("capquiz", "capquiz_detailed"))
    results = json.loads((one / "20260102_030405_results.json").read_text())
    more = json.loads((other / "20260102_030405_results.json").read_text())
    for key in ("results", "group_subtasks"):
        results[key] |= more[key]
    results["lmms_eval_captions"]["tasks"] |= more["lmms_eval_captions"]["tasks"]
    (one / "20260102_030405_results.json").write_text(json.dumps(results))
    for file in other.glob("*verdicts*"):
        shutil.copy(file, one)
    assert _split(monkeypatch, settings, tmp_path / "out", tmp_path / "capquiz" / "a") == 0
    unstable = replace(settings, data=str(tmp_path / "out" / "capquiz-unstable"))
    (asked,) = official_questions(unstable, "capquiz_detailed")
    assert asked[1:] == first[1:]


def test_what_cannot_be_split_is_refused(
    settings: DataSettings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One run, a folder that is there, other data, and two kinds of verdicts on one file."""
    one = plant(tmp_path / "one", settings, "vcapsbench", {"a": lambda *_: "same"}, n_runs=1)
    assert _split(monkeypatch, settings, tmp_path / "out", *one) == 2
    assert "expected at least 2 judge runs" in capsys.readouterr().err
    some = plant(tmp_path / "some", settings, "vcapsbench", {"a": lambda *_: "same"})
    assert _split(monkeypatch, settings, tmp_path / "out", *some) == 0
    assert not (tmp_path / "out" / "vcapsbench-unstable" / "vcapsbench").exists()
    assert _split(monkeypatch, settings, tmp_path / "out", *some) == 2
    assert "is there already; delete it" in capsys.readouterr().err
    other = tmp_path / "data" / "vcapsbench"
    other.mkdir(parents=True)
    row = {"video_id": "v", "qa": ["action*Is it?*yes"]}
    (other / "VCapsBench_100KQA.jsonl").write_text(json.dumps(row))
    elsewhere = replace(settings, data=str(other.parent))
    assert _split(monkeypatch, elsewhere, tmp_path / "out2", *some) == 2
    assert "expected the questions that were judged, got none" in capsys.readouterr().err


def test_clips_of_a_split(settings: DataSettings, tmp_path: Path) -> None:
    """Its own come first, then those of the data it was made from, also through a second split."""
    source = benchmark_of_task("vdc_camera").source
    doc = next(iter(official_questions(settings, "vdc_camera")))
    clip = find_video(settings, source, doc[1])

    def found(root: Path, data: object, *, own: bool = False) -> Path:
        root.mkdir(parents=True)
        (root / "split.json").write_text(json.dumps({"data": data}))
        if own:
            (root / "vdc" / "videos").mkdir(parents=True)
            shutil.copy(clip, root / "vdc" / "videos")
        return find_video(replace(settings, data=str(root)), source, doc[1])

    assert found(tmp_path / "first", settings.data) == clip
    assert found(tmp_path / "second", str(tmp_path / "first")) == clip
    assert found(tmp_path / "own", settings.data, own=True).is_relative_to(tmp_path / "own")
    assert found(tmp_path / "sample", SAMPLE).name == clip.name
    source = benchmark_of_task("capquiz").source
    with pytest.raises(NoVideosError, match="not on the Hugging Face hub"):
        found(tmp_path / "hub", None)
    source = benchmark_of_task("vdc_camera").source
    for name, data in (("gone", str(tmp_path / "nowhere")), ("itself", str(tmp_path / "itself"))):
        with pytest.raises(NoVideosError, match=r"split\.json: expected the root of the data"):
            found(tmp_path / name, data)


def test_the_whole_of_vdc(
    settings: DataSettings, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real file with a video that is there twice, and questions that are there twice in one."""
    folder = tmp_path / "data" / "vdc" / "VDCScore_qa"
    folder.mkdir(parents=True)
    shutil.copy(shared_data / "vdc_qa" / "main_object.jsonl.gz", folder)
    here = replace(settings, data=str(tmp_path / "data"))
    questions = official_questions(here, "vdc_main_object")
    generator = random.Random(0)
    fates = {asked: generator.choice(["same", "differs"]) for asked in questions}
    folders = plant(tmp_path, here, "vdc_main_object", {"a": lambda asked, _: fates[asked]})
    assert _split(monkeypatch, here, tmp_path / "out", *folders) == 0
    pairs = {
        (video, json.dumps(pair))
        for line in gzip.decompress((folder / "main_object.jsonl.gz").read_bytes()).splitlines()
        for video, of_video in json.loads(line).items()
        for pair in of_video
    }
    n = 0
    for part, fate in zip(PARTS, ("same", "differs"), strict=True):
        root = tmp_path / "out" / f"vdc-{part}"
        lines = (root / "vdc" / "VDCScore_qa" / "main_object.jsonl").read_text().splitlines()
        written = [
            (video, json.dumps(pair))
            for line in lines
            for video, of_video in json.loads(line).items()
            for pair in of_video
        ]
        assert set(written) <= pairs
        n += len(written)
        expected = sorted(asked[:3] for asked in questions if fates[asked] == fate)
        read = official_questions(replace(here, data=str(root)), "vdc_main_object")
        assert sorted(asked[:3] for asked in read) == expected
    assert n == len(questions) == 19_234


def test_the_whole_of_msvd_eval(
    settings: DataSettings, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every entry is kept with its candidate and its human scores."""
    shutil.copytree(shared_data / "msvd_eval", tmp_path / "data" / "msvd_eval")
    here = replace(settings, data=str(tmp_path / "data"))
    task = "msvd_eval_ref_only"
    stable = set(list(official_questions(here, task))[::3])
    plan = lambda asked, _: "same" if asked in stable else "differs"  # noqa: E731
    folders = plant(tmp_path, here, task, {"a": plan})
    assert _split(monkeypatch, here, tmp_path / "out", *folders) == 0
    whole = json.loads((tmp_path / "data/msvd_eval/MSVD-Eval.json").read_text(encoding="utf-8"))
    parts = {
        part: json.loads(
            (tmp_path / f"out/msvd_eval-{part}/msvd_eval/MSVD-Eval.json").read_text(
                encoding="utf-8"
            )
        )
        for part in PARTS
    }
    assert set(parts["stable"]) == {asked[1] for asked in stable}
    assert {**parts["stable"], **parts["unstable"]} == whole
    assert sum(map(len, parts.values())) == len(whole)


TASKS = [
    pytest.param(benchmark, task, id=task)
    for benchmark in all_benchmarks().values()
    if benchmark.question_file is not None
    for task in benchmark.tasks
]


@pytest.mark.parametrize(("benchmark", "task"), TASKS)
def test_files_are_asked_for_every_question_of_every_task(
    benchmark: Benchmark[Any, Any], task: str, settings: DataSettings
) -> None:
    """In the task's order within each video; a variant that asks others has no file of them."""
    question_file, known = benchmark.question_file, benchmark.tasks[task]
    assert question_file is not None
    kept: dict[str, list[str]] = {}

    def keep(video_id: str, text: str) -> bool:
        kept.setdefault(video_id, []).append(text)
        return True

    path = find_file(settings, benchmark.source, question_file.name(known.fields))
    question_file.select(path, keep)
    expected: dict[str, list[str]] = {}
    for _, video, text, _ in official_questions(settings, task):
        expected.setdefault(video, []).append(text)
    assert kept == expected
