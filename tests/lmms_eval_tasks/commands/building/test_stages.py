"""Stages that are files: what is read again, what is run anew, what one stage alone needs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.settings import read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.commands.building.building import build
from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.kind import Kind
from lmms_eval_captions.lmms_eval_tasks.commands.building.options import Options
from lmms_eval_captions.lmms_eval_tasks.commands.building.reading_clips import CLIPS
from lmms_eval_captions.lmms_eval_tasks.commands.building.stages import (
    Stage,
    read_stage,
    stage_files,
    write_rows,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Wanted, Work
from scripted_crew import ScriptedCrew, model, write_clip


def ask_each(work: Work, rows: list[Row]) -> list[Row]:
    """One request about each row."""
    wanted = [
        Wanted(
            model=work.options.writers[0],
            prompt="build_capquiz_domain",
            messages=[{"role": "user", "content": row["video"]}],
            read=lambda reply: reply.text or None,
            typical=lambda: "x",
        )
        for row in rows
    ]
    asked = work.ask(wanted, n=len(rows), what="each")
    return [{**row, "said": each.value} for row, each in zip(rows, asked, strict=True)]


def drop_first(_work: Work, rows: list[Row]) -> list[Row]:
    """All but the first go on."""
    return [{**rows[0], "dropped": "the first"}, *rows[1:]]


def write_all(work: Work, rows: list[Row]) -> dict[str, int]:
    """What is left, as a file."""
    write_rows(work.options.folder / "all.jsonl", rows)
    return {"all.jsonl": len(rows)}


KIND = Kind(
    name="toy",
    builds="nothing",
    source="nobody",
    tasks=("toy",),
    per_video=1,
    n_frames=2,
    categories={"a": "b"},
    stages=lambda _options: [
        CLIPS,
        Stage(
            name="asked",
            does="ask",
            run=ask_each,
            roles=("writer",),
            prompts=("build_capquiz_domain",),
        ),
        Stage(name="less", does="drop", run=drop_first, options=("seed",)),
    ],
    write=write_all,
    video_folder="videos",
)


@pytest.fixture
def options(tmp_path: Path) -> Options:
    """Two clips."""
    for name in ("a", "b"):
        write_clip(tmp_path / "clips" / f"{name}.mp4")
    one = (model("m"),)
    return Options(
        kind="toy",
        videos=tmp_path / "clips",
        data=tmp_path / "data",
        writers=one,
        solvers=one,
        viewers=one,
        per_video=1,
        n_frames=2,
    )


def run(
    options: Options, answer: Callable[[Any], str] = lambda _request: "yes"
) -> tuple[list[str], int]:
    """The stages that were run now, and the requests that were put."""
    crew = ScriptedCrew(answer)
    prices = options.videos.parent / "prices.yaml"
    prices.write_text("models: {m: {input: 0, output: 0}}")
    environ = {
        "LMMS_CAPTIONS_CACHE": str(options.data / "cache"),
        "LMMS_CAPTIONS_PRICES": str(prices),
    }
    built = build(KIND, options, read_judge_settings(environ), crew)
    return [done.stage.name for done in built.done if done.is_new], len(crew.requests)


def test_a_build_that_is_complete_asks_nothing_and_writes_its_files_anew(options: Options) -> None:
    """Stages come from their files; the official file follows from them."""
    assert run(options) == (["clips", "asked", "less"], 2)
    (options.folder / "all.jsonl").unlink()
    assert run(options) == ([], 0)
    [line] = (options.folder / "all.jsonl").read_text().splitlines()
    assert (json.loads(line)["video"], json.loads(line)["said"]) == ("b", "yes")


def test_heads_tell_what_came_in_what_stayed_and_why_not(options: Options) -> None:
    """They are the first lines of the files, which are numbered in order."""
    run(options)
    files = stage_files(options.folder)
    assert [path.name for path in files] == ["01-clips.jsonl", "02-asked.jsonl", "03-less.jsonl"]
    heads = [read_stage(path)[0] for path in files]
    assert [(head["n_before"], head["n_kept"]) for head in heads] == [(0, 2), (2, 2), (2, 1)]
    assert heads[2]["dropped"] == {"the first": 1}
    assert heads[1]["requests"]["by_model"] == {"m": 2}
    assert heads[1]["models"] == {"writer": ["m"]}
    assert set(heads[1]["prompts"]) == {"build_capquiz_domain"}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param({"n_frames": 3}, ["clips", "asked", "less"], id="frames"),
        pytest.param({"writers": (model("other"),)}, ["asked", "less"], id="model"),
        pytest.param({"writers": (model("m", "http://127.0.0.1:9/v1"),)}, [], id="address"),
        pytest.param({"seed": 1}, ["less"], id="seed"),
        pytest.param({"max_cost_usd": 9.0, "timeout_s": 5.0}, [], id="limits"),
    ],
)
def test_what_a_change_moves_is_made_anew_and_nothing_else(
    options: Options, changed: dict[str, Any], expected: list[str]
) -> None:
    """Those before the change come from their files."""
    run(options)
    assert run(replace(options, **changed))[0] == expected


def test_other_clips_make_all_anew(options: Options) -> None:
    """A clip that was added, or has other content."""
    run(options)
    write_clip(options.videos / "c.mp4")
    assert run(options)[0] == ["clips", "asked", "less"]
    write_clip(options.videos / "c.mp4", shade=200, n_frames=9)
    assert "clips" in run(options)[0]


def test_what_follows_a_stage_with_other_rows_is_made_anew(options: Options) -> None:
    """The same rows leave what follows as it is."""
    run(options)
    path = stage_files(options.folder)[1]
    path.unlink()
    assert run(options) == (["asked"], 2)
    path.unlink()
    assert run(options, lambda _request: "no") == (["asked", "less"], 2)


def test_one_stage_alone_needs_those_before_it(options: Options) -> None:
    """It is run anew, and nothing behind it."""
    with pytest.raises(SettingsError, match="the stage 'clips' before it is not there"):
        run(replace(options, stage="asked"))
    run(replace(options, stage="clips"))
    assert run(replace(options, stage="asked")) == (["asked"], 2)
    assert run(replace(options, stage="asked")) == (["asked"], 2)
    assert not (options.folder / "all.jsonl").exists()
    with pytest.raises(SettingsError, match="expected one of clips, asked, less, got 'more'"):
        run(replace(options, stage="more"))


def test_a_build_can_stop_behind_a_stage_and_go_on_later(options: Options) -> None:
    """People may look at what is there; no file of the benchmark is written yet."""
    assert run(replace(options, until="asked")) == (["clips", "asked"], 2)
    assert not (options.folder / "all.jsonl").exists()
    assert run(options) == (["less"], 0)
    with pytest.raises(SettingsError, match="--until: expected one of clips, asked, less"):
        run(replace(options, until="more"))


@pytest.mark.parametrize("damage", [b"", b"{", b'{"stage": "asked"}\n', b'{"a": 1}\n{"b": 2}\n'])
def test_a_damaged_file_of_a_stage_is_made_anew(options: Options, damage: bytes) -> None:
    """A disk that was full, an editor: the build goes on."""
    run(options)
    path = stage_files(options.folder)[1]
    whole = path.read_bytes()
    path.write_bytes(damage)
    assert run(options)[0] == ["asked"]
    assert path.read_bytes() == whole
    path.write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1])  # cut behind a line
    assert run(options)[0] == ["asked"]


@pytest.mark.parametrize("inside", [".", "data", "deep/data"])
def test_data_is_not_built_among_the_clips(options: Options, inside: str) -> None:
    """Links to clips would be clips of the next run."""
    with pytest.raises(SettingsError, match="expected a folder outside --videos"):
        run(replace(options, data=options.videos / inside))


def test_clips_of_the_folder_that_is_built_in_are_refused(options: Options) -> None:
    """The links are made there."""
    with pytest.raises(SettingsError, match="expected a folder outside"):
        run(replace(options, data=options.videos.parent, kind="clips"))


def test_official_data_is_not_written_over(options: Options) -> None:
    """A folder with questions that no build made is somebody's benchmark."""
    options.folder.mkdir(parents=True)
    (options.folder / "all.jsonl").write_text("theirs")
    with pytest.raises(SettingsError, match=r"'all\.jsonl', which no build made"):
        run(options)
    assert (options.folder / "all.jsonl").read_text() == "theirs"
