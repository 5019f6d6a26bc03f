"""``LMMS_CAPTIONS_JUDGE=as-published``: the judge, wording and sampling of published tables."""

from __future__ import annotations

from typing import Any

import pytest

from aggregated import signature_of_items
from conftest import ServerFactory
from judge_server import last_text
from lmms_eval_captions.judges.protocols.prompt import Prompts, released_prompts
from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task


def test_the_released_wording_has_our_slots() -> None:
    """It is another one than the paper's, and is filled with the same."""
    for name, content in released_prompts().items():
        ours, theirs = Prompts(), Prompts(is_released=True)
        assert theirs.messages(name) == content["messages"]
        assert theirs.load(name).slots == ours.load(name).slots
        assert theirs.messages(name) != ours.messages(name)


def _asked(task: str, bench: pytest.MonkeyPatch, serve: ServerFactory) -> tuple[list[Any], str]:
    """Requests about one caption of a task, and the signature."""
    server = serve()
    server.keep_bodies = True
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_JUDGE", "as-published")
    hooks = hooks_of(benchmark_of_task(task))
    doc = hooks.process_docs([hooks.benchmark.tasks[task].fields])[0]
    items = hooks.process_results(doc, ["A red circle moves to the right."])
    signature = signature_of_items([items["unscored"]])
    return server.bodies, signature


def test_vdc_is_judged_as_in_table_7(
    bench: pytest.MonkeyPatch, serve: ServerFactory, tmp_path: Any
) -> None:
    """By Llama-3.1-8B-Instruct at temperature 1, in the released words; the signature says so."""
    bench.setenv("LMMS_CAPTIONS_DATA", str(sample_root(tmp_path)))
    bodies, signature = _asked("vdc_camera", bench, serve)
    assert {body["model"] for body in bodies} == {"meta-llama/Llama-3.1-8B-Instruct"}
    assert {body["temperature"] for body in bodies} == {1.0}
    released = released_prompts()["vdc_answer"]["messages"][0]["content"]
    assert any(body["messages"][0]["content"] == released for body in bodies)
    assert "judge:meta-llama/Llama-3.1-8B-Instruct|" in signature
    assert "|temperature:1|" in signature
    assert "|prompts:" in signature


def test_vcapsbench_asks_once(
    bench: pytest.MonkeyPatch, serve: ServerFactory, tmp_path: Any
) -> None:
    bench.setenv("LMMS_CAPTIONS_DATA", str(sample_root(tmp_path)))
    bodies, signature = _asked("vcapsbench", bench, serve)
    assert "|asks:1|" in signature
    assert {body["model"] for body in bodies} == {"gpt-4.1-2025-04-14"}
    assert len({(body["seed"], last_text(body)) for body in bodies}) == len(bodies)


def test_gveval_shows_frames_in_every_setting(
    bench: pytest.MonkeyPatch, serve: ServerFactory, tmp_path: Any
) -> None:
    bench.setenv("LMMS_CAPTIONS_DATA", str(sample_root(tmp_path)))
    bodies, signature = _asked("msvd_eval_ref_only", bench, serve)
    contents = [body["messages"][-1]["content"] for body in bodies]
    assert contents
    assert all(part["type"] == "image_url" for content in contents for part in content[1:])
    assert "|always_frames:1|" in signature
