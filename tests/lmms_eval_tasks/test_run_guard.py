"""A run that ends early says why in one sentence, and Ctrl-C what is kept."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace

import pytest
from lmms_eval.api.instance import Instance
from tenacity import retry, stop_after_attempt

from chains import chain
from conftest import ServerFactory
from lmms_eval_captions.judges.errors import CaptionsError, DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks import run_guard
from lmms_eval_captions.lmms_eval_tasks.integration.patches import apply_patches
from lmms_eval_captions.lmms_eval_tasks.judging.session import Session
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN
from lmms_eval_captions.model_wrappers.base import CaptionModel
from lmms_eval_captions.model_wrappers.captions import RUN_CAPTIONS

Evaluate = Callable[..., object]


@pytest.fixture(autouse=True)
def _no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was said before, and what is said is forgotten."""
    monkeypatch.setattr(THIS_RUN, "errors", [])
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setattr(THIS_RUN, "is_ours", False)


def _guarded(evaluate: Evaluate) -> Evaluate:
    """An evaluator as lmms-eval has it, patched."""

    def simple_evaluate(
        *,
        predict_only: bool = False,
        launcher_args: str | None = None,
        verbosity: str = "INFO",
        **others: object,
    ) -> object:
        return evaluate(**others)

    module = ModuleType("lmms_eval.evaluator")
    vars(module).update(simple_evaluate=simple_evaluate, evaluate=print)
    apply_patches(module)
    guarded: Evaluate = vars(module)["simple_evaluate"]
    return guarded


@retry(stop=stop_after_attempt(2))
def _tried_again() -> None:
    raise DataError("no such file; add it")


def _bad_setting() -> None:
    raise SettingsError("X: expected 1, got '2'")


@pytest.mark.parametrize(
    ("fails", "sentence"),
    [(_bad_setting, "X: expected 1, got '2'"), (_tried_again, "no such file; add it")],
    ids=["plain", "tried again"],
)
def test_an_error_of_ours_is_kept_for_the_last_line(
    fails: Callable[[], None], sentence: str
) -> None:
    with pytest.raises(CaptionsError) as ended:
        _guarded(lambda **_: fails())(verbosity="INFO")
    assert str(ended.value) == sentence
    assert THIS_RUN.errors == [sentence]
    shown = "".join(traceback.format_exception(ended.value))
    assert "RetryError" not in shown
    assert fails.__name__ not in shown


@pytest.mark.parametrize(
    ("arguments", "will_judge"),
    [
        ({}, True),
        ({"predict_only": True}, False),
        ({"launcher_args": "name=sglang"}, False),
    ],
)
def test_the_judge_is_needed_where_a_run_judges_with_it(
    arguments: dict[str, object], will_judge: bool
) -> None:
    """Not where nothing is judged, and not where lmms-eval starts the judge after captioning."""
    seen: list[bool] = []
    _guarded(lambda **_: seen.append(THIS_RUN.will_judge))(**arguments)
    assert seen == [will_judge]
    assert not THIS_RUN.will_judge


def _interrupted(**_: object) -> None:
    THIS_RUN.is_ours = True
    raise KeyboardInterrupt


def test_ctrl_c_says_how_many_replies_are_kept(
    serve: ServerFactory, bench: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, that the same command resumes, and no traceback."""
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", serve().url)
    run = Session()
    bench.setattr(run_guard, "SESSION", run)
    run.engine().submit([chain(f"prompt {i}") for i in range(3)]).result(timeout=30)
    with pytest.raises(KeyboardInterrupt) as stopped:
        _guarded(_interrupted)()
    [line] = THIS_RUN.errors
    assert line.startswith("Stopped by Ctrl-C: 3 new replies are kept in ")
    assert "the same command resumes" in line
    sys.excepthook(stopped.type, stopped.value, stopped.tb)
    assert "KeyboardInterrupt" not in capsys.readouterr().err
    sys.excepthook(OSError, OSError("another"), None)
    assert "OSError: another" in capsys.readouterr().err
    run.close()


def test_ctrl_c_while_captions_are_made_says_where_they_are(bench: pytest.MonkeyPatch) -> None:
    """They took hours, and the same command makes them anew."""
    bench.setattr(run_guard, "SESSION", Session())

    def caption(**_: object) -> None:
        RUN_CAPTIONS.log().save(task="t", video_id="v", caption="A dog.", aspect=None)
        _interrupted()

    with pytest.raises(KeyboardInterrupt):
        _guarded(caption)()
    [line] = THIS_RUN.errors
    assert f"--model caption_file --model_args path={RUN_CAPTIONS.log().path} " in line


class Text(CaptionModel):
    """A captioner that is never asked."""

    def generate_until(self, requests: Sequence[Instance]) -> list[str]:
        return [""] * len(requests)


@pytest.mark.parametrize(
    "kind",
    ["multiple_choice", "loglikelihood", "generate_visual_cot", "generate_until_multi_round"],
)
def test_tasks_that_a_captioner_cannot_answer_end_the_run_before_the_others(
    kind: str,
) -> None:
    """They are named, and those of groups, too; nothing was captioned that could be lost."""
    began: list[object] = []
    module = ModuleType("lmms_eval.evaluator")
    vars(module)["evaluate"] = lambda lm, task_dict, limit: began.append((lm, task_dict, limit))
    vars(module)["simple_evaluate"] = print
    apply_patches(module)
    fine, choice = (SimpleNamespace(OUTPUT_TYPE=name) for name in ("generate_until", kind))
    evaluate = vars(module)["evaluate"]
    asked = "loglikelihood" if kind == "multiple_choice" else kind
    with pytest.raises(SettingsError, match=rf"Text .* {asked} requests \(arc, mmbench\)"):
        evaluate(
            lm=Text(), task_dict={"vdc": fine, "g": {"mmbench": choice}, "arc": choice}, limit=1
        )
    assert not began
    evaluate(lm=Text(), task_dict={"vdc": fine}, limit=1)
    evaluate(lm=object(), task_dict={"arc": choice}, limit=1)
    assert len(began) == 2
