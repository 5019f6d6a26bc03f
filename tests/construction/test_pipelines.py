"""Faults that pipelines find in questions, through builds with scripted models."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builder_replies import Asked, Told, asked_of, reply_to
from builder_server import Builder, BuilderServer, spoilt
from building_runs import in_this_process
from ended_builds import hasten, name_clips
from judge_server import Say
from lmms_eval_captions.cli.main import main
from lmms_eval_captions.construction.build import Built
from lmms_eval_captions.construction.media import Video, link_videos
from lmms_eval_captions.judges.errors import DataError
from planted_questions import Shares, names_in
from scripted_crew import write_clip

SOUND = Shares(
    blind=0, wrong=0, unstable=0, contradicted=0, one_road=0, duplicate=0, malformed=0, slips=0
)
Answer = Callable[[Asked, str], str]


class Changed(Builder):
    """Scripted models without faults, some of whose replies are changed.

    Args:
        change: The reply to a request, from the one that is scripted.
    """

    def __init__(self, change: Answer) -> None:
        super().__init__(Told(SOUND, n_questions=10))
        self._change = change

    def __call__(self, payload: dict[str, Any]) -> Say | str:
        """See :data:`.judge_server.Script`."""
        asked = asked_of(payload)
        self.steps[asked.step] += 1
        return Say(self._change(asked, reply_to(asked, self.told)))


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Built]:
    """Builds a kind of two clips with changed replies."""
    hasten(monkeypatch)

    def made(kind: str, change: Answer, **further: Any) -> Built:
        clips = name_clips(tmp_path / "clips", 2)
        with BuilderServer(Changed(change)) as server:
            given = {"cache": tmp_path / "cache", "per_video": 40, **further}
            return in_this_process(kind, clips, tmp_path / "data", server.url, **given)

    return made


def _is_chosen(text: str) -> bool:
    """Every third object, in whose questions a fault is planted."""
    return int(names_in(text)[-1].split("-")[-1]) % 3 == 0


def _dropped(built: Built, stage: str) -> Counter[str]:
    return Counter(row.get("dropped", "") for row in built.context.rows[stage])


def test_questions_with_two_right_options_are_dropped(build: Callable[..., Built]) -> None:
    """The viewer names the same other option where the answer is not on the menu."""

    def change(asked: Asked, reply: str) -> str:
        if asked.step != "build_capquiz_sighted" or not _is_chosen(asked.text):
            return reply
        menu = dict(re.findall(r"^([A-F])\. (.+)$", asked.text, re.MULTILINE))
        del menu[max(menu)]
        return reply if reply in menu else min(menu, key=menu.__getitem__)

    built = build("capquiz", change)
    rows = built.context.rows["sighted"]
    assert _dropped(built, "sighted")["sighted check: another option is right too"]
    assert {"dropped" in row for row in rows if _is_chosen(row["question"])} == {True}
    assert {"dropped" in row for row in rows if not _is_chosen(row["question"])} == {False}


def test_pairs_that_no_caption_answers_are_reviewed(build: Callable[..., Built]) -> None:
    """Five times "not mentioned" is a flag, and the viewer drops what is not in the clip."""

    def change(asked: Asked, reply: str) -> str:
        if asked.step == "vidcapbench_judge" and _is_chosen(asked.text):
            return json.dumps({"score": 0, "analysis": "Not mentioned."})
        return reply if asked.step != "build_vidcapbench_review" else '{"decision": "drop"}'

    built = build("vidcapbench", change)
    flags = {row["id"]: row.get("flag") for row in built.context.rows["flagged"]}
    rows = built.context.rows["review"]
    assert {flags[row["id"]] for row in rows if _is_chosen(row["question"])} == {"never answered"}
    assert {row["id"] for row in rows if "dropped" in row} == {
        row["id"] for row in rows if _is_chosen(row["question"])
    }


def test_vdc_asks_for_no_fact_of_an_aspect_twice(build: Callable[..., Built]) -> None:

    def change(asked: Asked, reply: str) -> str:
        if asked.step != "build_vdc_pairs":
            return reply
        again = re.sub(r"What colour does (.*?) have\?", r"Of what colour is \1?", reply)
        return f"{reply[:-1]}, {again[1:]}"

    built = build("vdc", change)
    assert _dropped(built, "similar") == {
        "": 100, "the same as another question of its clip": 100
    }  # fmt: skip
    assert {"Of what" in row["question"] for row in built.context.rows["chosen"]} == {False}


@pytest.mark.parametrize("kind", ["capquiz", "vcapsbench", "vdc", "vidcapbench"])
def test_an_unreadable_reply_of_a_writer_is_asked_again(
    kind: str, build: Callable[..., Built]
) -> None:
    """One of each step costs no clip and no question."""
    seen: set[str] = set()

    def change(asked: Asked, reply: str) -> str:
        if asked.step in seen or not asked.model.startswith("writer"):
            return reply
        seen.add(asked.step)
        return spoilt(reply, "wrong keys").text

    built = build(kind, change)
    assert len(seen) == 2
    assert not any(done.head["requests"]["failures"] for done in built.done)
    assert not any("no readable reply" in " ".join(done.head["dropped"]) for done in built.done)


def test_vidcapbench_judges_by_the_captions_that_it_has(build: Callable[..., Built]) -> None:
    """The first caption of a clip is unreadable each time, and another takes its place."""

    def change(asked: Asked, reply: str) -> str:
        is_first = asked.step == "vidcapbench_caption" and asked.seed % 1_000_003 == 0
        return "" if is_first else reply

    built = build("vidcapbench", change)
    rows = built.context.rows["captions"]
    assert [row["captions"].count(None) for row in rows] == [1, 1]
    assert built.n_questions == 20


def test_an_estimate_needs_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is sent: calls are those of a build in which no question is dropped."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "LMMS_CAPTIONS_JUDGE_URL"):
        monkeypatch.delenv(name, raising=False)
    write_clip(tmp_path / "clips/a.mp4")
    models = ["--writer", "gpt-4o", "--viewer", "other@http://127.0.0.1:1/v1#MY_KEY"]
    arguments = ["--videos", str(tmp_path / "clips"), *models]
    assert main(["estimate", "--build", "capquiz", *arguments]) == 0
    calls = dict(re.findall(r"^(build_\w+) +\S+ +([\d,]+) ", capsys.readouterr().out, re.MULTILINE))
    assert calls == {
        "build_capquiz_domain": "1",
        "build_capquiz_write": "1",
        "build_capquiz_blind": "300",
        "build_capquiz_cluster": "1",
        "build_capquiz_sighted": "88",
    }


def test_links_stay_in_the_folder_of_the_benchmark(tmp_path: Path) -> None:
    """A folder of videos that leads elsewhere is refused, and nothing there is removed."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "old.mp4").symlink_to(tmp_path / "nothing")
    (tmp_path / "capquiz").mkdir()
    (tmp_path / "capquiz/videos").symlink_to(elsewhere)
    with pytest.raises(DataError, match="expected no link"):
        link_videos([Video("a", write_named(tmp_path / "a.mp4"))], tmp_path / "capquiz/videos")
    assert [path.name for path in elsewhere.iterdir()] == ["old.mp4"]


def write_named(path: Path) -> Path:
    """Write a file that stands for a clip."""
    path.write_bytes(b"no clip")
    return path
