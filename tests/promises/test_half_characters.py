"""Lone surrogates, wherever a text enters: nothing that lmms-eval logs holds one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from lmms_eval.filters import build_filter_ensemble
from lmms_eval.filters.selection import TakeFirstFilter

from conftest import ServerFactory
from five_tasks import TASKS, Task, Texts, write_data
from judge_server import JudgeServer, Say
from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols.prompt_folder import Prompts
from lmms_eval_captions.judges.settings import read_settings
from lmms_eval_captions.lmms_eval_tasks.caption_filter import WholeCaptions
from lmms_eval_captions.lmms_eval_tasks.commands.meta_eval.score_file import read_scores
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.lmms_eval_tasks.vidcapbench import benchmark as vidcapbench_benchmark
from lmms_eval_captions.model_wrappers.caption_files.rows import read_rows
from lmms_eval_captions.model_wrappers.no_caption import NoCaption
from lmms_eval_captions.model_wrappers.outcome import Outcome
from runs import environment, run_lmms_eval

HALF = "dog \ud83d"
MENDED = "dog \ufffd"
CAPTION = "A dog runs."
PLACES = ("caption", "reply", "question", "gold", "id", "id in two halves")


def _texts(place: str) -> Texts:
    return {
        "question": Texts(question=f"Is it a {HALF}?"),
        "gold": Texts(gold=f"A {HALF}."),
        "id": Texts(video_id=f"clip {HALF}"),
        "id in two halves": Texts(video_id="clip \ud83d" + "\ude00"),
    }.get(place, Texts())


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_what_is_logged_can_be_written(
    task: Task,
    place: str,
    bench: pytest.MonkeyPatch,
    serve: ServerFactory,
    tmp_path: Path,
    logged: list[str],
) -> None:
    """Half a character in a caption, a reply, a question, a gold answer or an id is mended."""
    bench.setattr(vidcapbench_benchmark, "tokenizer", lambda: (_count_as_utf8, None))
    server = serve(logprobs="whole")
    if place == "reply":
        _answer_in_halves(server)
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "1")
    bench.setenv("LMMS_CAPTIONS_DATA", str(write_data(tmp_path / "data", [_texts(place)])))
    caption = f"{CAPTION} A {HALF}" if place == "caption" else CAPTION
    samples = task.samples([caption], tmp_path / "output")
    written = json.dumps(samples, ensure_ascii=False, default=str).encode("utf-8")
    expected = "\U0001f600" if place == "id in two halves" else MENDED
    is_asked = place == "gold" and task.name in ("vcapsbench", "msvd_eval_ref_only")
    is_asked |= place in ("question", "gold") and task.hooks.benchmark.name == "own"
    if place != "caption" and not is_asked:  # those are sent, or nobody's, and not logged
        assert expected.encode("utf-8") in written
    if place == "reply":
        assert server.counts.n_answered
    assert b'"n_unscored": 0' in written, "the verdict in the reply counts"
    assert not [line for line in logged if line.startswith("ERROR")]


def _count_as_utf8(text: str) -> int:
    return len(text.encode("utf-8").split())


def _answer_in_halves(server: JudgeServer) -> None:
    """Every reply is as scripted, and ends in half a character."""
    scripted = server.reply

    def answer(payload: dict[str, object]) -> Say:
        text = scripted(_prompt(payload))
        # A bare letter counts only where the server says that the reply is whole.
        return Say(_with_half(text), "stop" if len(text) == 1 else HALF)

    server.script = answer


def _prompt(payload: dict[str, Any]) -> str:
    return str(payload["messages"][-1]["content"])


def _with_half(text: str) -> str:
    is_bare = len(text) == 1 or text.startswith("{")
    return f"<think>{HALF}</think>\n{text}" if is_bare else f"{text} {HALF}"


def test_every_packaged_task_mends_the_answers_of_any_model() -> None:
    """The filter stands before the one that takes the first answer; all are logged whole."""
    answers = [[f"A {HALF}", CAPTION], [NoCaption("broken"), None]]
    ensemble = build_filter_ensemble("none", [[WholeCaptions, {}], ["take_first", {}]])
    assert isinstance(ensemble.filters[1], TakeFirstFilter)
    taken = list(ensemble.filters[1].apply(ensemble.filters[0].apply(answers, None), None))
    assert answers == [[f"A {MENDED}", CAPTION], [NoCaption("broken"), None]]
    assert taken[0] == f"A {MENDED}"
    assert isinstance(taken[1], NoCaption)
    folder = Path(WholeCaptions.apply.__code__.co_filename).parent
    templates = [path.read_text() for path in folder.glob("*/_default_template_yaml")]
    assert len(templates) == 6
    assert all("caption_filter.WholeCaptions\n      - function: take_first" in t for t in templates)


@pytest.mark.parametrize("name", ["captions.jsonl", "captions.json"])
def test_caption_files_are_mended(name: str, tmp_path: Path) -> None:
    """Videos and captions of a file hold no half characters."""
    path = tmp_path / name
    path.write_text(json.dumps({"video_id": f"clip {HALF}", "caption": HALF}))
    if name.endswith(".json"):
        path.write_text(json.dumps([{"video_id": f"clip {HALF}", "caption": HALF}]))
    assert [dict(row.fields) for row in read_rows(path)] == [
        {"video_id": f"clip {MENDED}", "caption": MENDED}
    ]


def test_score_files_are_mended(tmp_path: Path) -> None:
    """Items of a score file hold no half characters."""
    path = tmp_path / "scores.json"
    path.write_text(json.dumps({HALF: 1.0}))
    assert read_scores(path) == {"score": {MENDED: 1.0}}


def test_a_file_name_that_is_no_text_is_told_as_one() -> None:
    """Names that are no UTF-8 stand in errors and reasons with a sign for what cannot be shown."""
    name = os.fsdecode(b"clip\xe9.mp4")
    assert str(DataError(f"no file {name}")) == "no file clip\ufffd.mp4"
    assert NoCaption(f"{name}: broken").reason == "clip\ufffd.mp4: broken"
    outcome = Outcome()
    outcome.fail(name, "task", 0, name, (0,))
    assert outcome.no_caption(0).reason == "clip\ufffd.mp4: clip\ufffd.mp4"
    assert outcome.failures == {("task", 0): "clip\ufffd.mp4: clip\ufffd.mp4"}


def test_a_prompt_of_the_users_is_mended(tmp_path: Path) -> None:
    """YAML spells half characters as JSON does; what is asked holds none."""
    prompts = {"caption": "Describe the \\ud83d and \\ud83d\\ude00."}
    text = "".join(f'{name}: "{words}"\n' for name, words in prompts.items())
    (tmp_path / "vcapsbench_caption.yaml").write_text(text)
    found = Prompts(tmp_path).text("vcapsbench_caption", "caption")
    assert found == "Describe the \ufffd and \U0001f600."


def test_a_judge_of_an_odd_name_is_asked_under_a_whole_one() -> None:
    """Bytes of a variable that are no UTF-8 do not reach the signature."""
    settings = read_settings({"LMMS_CAPTIONS_JUDGE": os.fsdecode(b"judge\xff")})
    assert settings.judge == "judge\ufffd"


def test_stored_replies_are_mended() -> None:
    """Replies that were stored before halves were mended are read without."""
    assert Reply.from_json(Reply(HALF, HALF).to_json()) == Reply(MENDED, MENDED)


_FOREIGN = """
from lmms_eval.api.model import lmms


class foreign(lmms):
    def __init__(self, **kwargs):
        super().__init__()

    def generate_until(self, requests):
        return ["A dog \\ud83d runs." for _ in requests]

    def loglikelihood(self, requests):
        raise NotImplementedError

    def generate_until_multi_round(self, requests):
        raise NotImplementedError
"""


@pytest.mark.cli
def test_the_sample_logs_of_other_peoples_models_are_whole(tmp_path: Path) -> None:
    """A model of somebody else's that writes half characters is scored and logged in every task."""
    package = tmp_path / "other" / "models"
    package.mkdir(parents=True)
    (package.parent / "tasks").mkdir()
    for folder in (package.parent, package.parent / "tasks"):
        (folder / "__init__.py").touch()
    (package / "__init__.py").write_text('AVAILABLE_MODELS = {"foreign": "foreign"}\n')
    (package / "foreign.py").write_text(_FOREIGN)
    cache = tmp_path / "cache"
    env = environment(
        cache,
        LMMS_CAPTIONS_JUDGE="lexical",
        LMMS_EVAL_PLUGINS="other",
        LMMS_CAPTIONS_DATA=str(sample_root(cache)),
        PYTHONPATH=f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    )
    tasks = ("vdc_camera", "vidcapbench_ae", "vcapsbench", "capquiz", "msvd_eval_ref_only")
    model = ("--model", "foreign", "--tasks", ",".join(tasks))
    run = run_lmms_eval(tmp_path / "out", *model, env=env, fresh=True)  # plug-ins: when it imports
    assert run.returncode == 0
    assert "Could not save" not in run.log
    for task in tasks:
        samples = run.samples(task)
        assert {sample["filtered_resps"] for sample in samples} == {"A dog \ufffd runs."}
        assert run.results[task]
