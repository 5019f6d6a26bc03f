"""Clips of an evaluation set are refused, by their names and by what is asked about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from conftest import ServerFactory
from five_tasks import Texts, write_data
from judge_server import JudgeServer
from lmms_eval_captions import CaptionReward
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.scorer.evaluation_clips import EvaluationClips
from scorers import open_reward

ASKED = [("who runs?", "a dog"), ("where?", "here"), ("when?", "now"), ("why?", "fun")]
OTHERS = [{"question": "Is it a new one?", "answer": "yes"}]


@pytest.fixture
def server(serve: ServerFactory) -> JudgeServer:
    """The judge."""
    return serve()


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Official files of all benchmarks, with one video."""
    root = write_data(tmp_path / "data", [Texts(video_id="eval_1", question="Is there a dog?")])
    monkeypatch.setenv("LMMS_CAPTIONS_DATA", str(root))
    return root


def ask(reward: CaptionReward, clip_id: str, **columns: Any) -> list[float | None]:
    """The reward of a caption of one clip."""
    given = {"questions": OTHERS, **columns}
    return reward([""], ["A dog."], clip_id=[clip_id], **{k: [v] for k, v in given.items()})


@pytest.mark.parametrize(
    ("clip_id", "columns"),
    [
        pytest.param("eval_1", {}, id="id"),
        pytest.param("eval_1.mp4", {}, id="name of the file"),
        pytest.param("train_1", {"video": "/clips/eval_1.webm"}, id="file in another folder"),
        pytest.param("train_1", {"video": {"path": "eval_1.mp4"}}, id="file of a table"),
        pytest.param("EVAL_1", {}, id="another case"),
        pytest.param("train_1", {"video": ["Eval_1.MP4"]}, id="a list of one file"),
        pytest.param("train_1", {"video": {"video": "eval_1.mp4"}}, id="verl's form of a file"),
        pytest.param(
            "train_1",
            {"questions": [{"question": "Is  there a DOG?", "answer": "Yes"}]},
            id="all of its questions",
        ),
    ],
)
def test_clips_of_the_own_benchmark_are_refused(
    clip_id: str, columns: dict[str, Any], server: JudgeServer, data: Path, tmp_path: Path
) -> None:
    """Nothing is asked about the batch, whatever else is in it."""
    with open_reward("vcapsbench", server, tmp_path, evaluation="official") as reward:
        with pytest.raises(DataError, match=r"one of the evaluation set: vcapsbench has a clip"):
            ask(reward, clip_id, **columns)
        assert server.counts.n_requests == 0
        assert ask(reward, "train_1") != [None]


def test_tasks_groups_and_files_can_be_named(
    server: JudgeServer, data: Path, tmp_path: Path
) -> None:
    """Several of them together."""
    text, lines, table = (tmp_path / f"ids.{ending}" for ending in ("txt", "jsonl", "parquet"))
    text.write_text("one.mp4\n\ntwo\n")
    lines.write_text(json.dumps({"clip_id": "three", "question": "?"}) + '\n{"video_id": "four"}\n')
    pyarrow.parquet.write_table(pyarrow.table({"clip_id": ["five"]}), table)
    given = ["vidcapbench_ae", "capquiz", text, lines, str(table)]
    with open_reward("vcapsbench", server, tmp_path, evaluation=given) as reward:
        for clip_id in ("one", "two", "three.mp4", "four", "five", "eval_1"):
            with pytest.raises(DataError, match="one of the evaluation set"):
                ask(reward, clip_id)
        assert ask(reward, "six") != [None]


def test_what_cannot_be_read_says_what_to_set(server: JudgeServer, tmp_path: Path) -> None:
    """Training does not begin without a look unless it is asked for."""
    folder = tmp_path / "empty"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as variables:
        variables.setenv("LMMS_CAPTIONS_DATA", str(folder))
        with pytest.raises(DataError, match=r"capquiz, on which .* LMMS_CAPTIONS_DATA .*=None"):
            open_reward("capquiz", server, tmp_path, evaluation="official")
    ids = tmp_path / "ids.jsonl"
    ids.write_text('{"name": "a"}\n')
    with pytest.raises(DataError, match="line 1: expected a clip_id"):
        open_reward("capquiz", server, tmp_path, evaluation=ids)


def test_ones_own_clips_have_no_official_set(
    server: JudgeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing need be there for the judges that see."""
    monkeypatch.setenv("LMMS_CAPTIONS_DATA", str(tmp_path / "nowhere"))
    with open_reward("gveval_ref_only", server, tmp_path, evaluation="official") as reward:
        assert len(reward.evaluation) == 0
        given = {"clip_id": ["a", "a"], "reference": ["A dog.", "A cat."]}
        assert None not in reward(["", ""], ["A dog.", "A cow."], **given)


def test_a_reward_by_a_task_refuses_its_clips(
    server: JudgeServer, data: Path, tmp_path: Path
) -> None:
    """Its clips are those of the evaluation set, unless that is left out on purpose."""
    with (
        open_reward("capquiz_detailed", server, tmp_path, evaluation="official") as guarded,
        open_reward("capquiz_detailed", server, tmp_path) as reward,
    ):
        with pytest.raises(DataError, match="eval_1"):
            guarded([""], ["A dog."], clip_id=["eval_1"])
        assert server.counts.n_requests == 0
        assert reward([""], ["A dog."], clip_id=["eval_1"]) != [None]


@pytest.mark.parametrize(
    ("facts", "is_refused"),
    [
        pytest.param(ASKED, True, id="all"),
        pytest.param(ASKED[:3], True, id="all but one"),
        pytest.param(ASKED[:2], False, id="two of them may be alike by chance"),
        pytest.param([*ASKED[:3], ("what?", "it")], False, id="another one among them"),
        pytest.param([(asked, "no") for asked, _ in ASKED], False, id="other answers"),
        pytest.param([], False, id="nothing"),
    ],
)
def test_a_clip_is_known_by_its_questions(
    facts: list[tuple[str, str]], *, is_refused: bool
) -> None:
    """All that is asked of a clip, or at least three of its questions and no other."""
    clips = EvaluationClips()
    clips.add("a_task", ["one"], ASKED)
    clips.add("a_task", ["two"], [("who runs?", "a dog")])
    if is_refused:
        with pytest.raises(DataError, match=r"clip 'x': .* a_task has a clip with the same"):
            clips.require_other(["x"], facts)
    else:
        clips.require_other(["x"], facts)


def test_a_clip_is_known_by_all_of_its_references() -> None:
    """A few short captions may be those of many clips."""
    clips = EvaluationClips()
    references = [("", f"a man sings {number}") for number in range(5)]
    clips.add("msvd_eval_ref_only", ["one"], references)
    clips.require_other(["x"], references[:4])
    with pytest.raises(DataError, match="the same questions"):
        clips.require_other(["x"], references)


def test_its_questions_beside_others_are_refused() -> None:
    """Where they are three or more: fewer may be anybody's."""
    clips = EvaluationClips()
    clips.add("official", ["eval"], ASKED[:3])
    clips.add("official", ["short"], [("is there a dog?", "yes")])
    more = [("what colour?", "red"), ("is there a dog?", "yes")]
    with pytest.raises(DataError, match="a clip with the same questions"):
        clips.require_other(["train"], [*ASKED[:3], *more])
    clips.require_other(["train"], [*ASKED[:2], *more])


@pytest.mark.parametrize("name", ["ids.csv", "ids.yaml", "ids"])
def test_files_of_another_kind_are_refused(name: str, server: JudgeServer, tmp_path: Path) -> None:
    """Their lines would be taken for names, which no clip has."""
    (tmp_path / name).write_text("clip_id,caption\neval_1,hello\n")
    with pytest.raises(DataError, match="expected clip ids as lines of text"):
        open_reward("vcapsbench", server, tmp_path, evaluation=str(tmp_path / name))


def test_an_empty_list_is_no_guard(server: JudgeServer, tmp_path: Path) -> None:
    """It is said how to go without."""
    with pytest.raises(SettingsError, match="evaluation=None"):
        open_reward("vcapsbench", server, tmp_path, evaluation=[])
