"""What another order of the prompts does to verdicts, from judging to what ``agree`` says."""

from __future__ import annotations

import ast
import json
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from conftest import ServerFactory
from judge_server import JudgeServer
from label_runs import judged_run
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.lmms_eval_tasks.task_names import tasks_of
from prompt_orders import order_blind_reply, text_of

TASKS: Final = tuple(tasks_of("vdc_score"))
_FLIPPED: Final = "Provide your evaluation only"
"""How the second step's prompt begins with everything constant first."""


def _lines(prompt: str) -> bytes:
    return "\n".join(sorted(prompt.split("\n"))).encode()


def _reply(prompt: str) -> str:
    """Says of a tenth of the questions the opposite where the prompt comes in the second order."""
    said = order_blind_reply(prompt)
    is_one_in_ten = blake2b(_lines(prompt), digest_size=4).digest()[0] % 10 == 0
    if not (prompt.startswith(_FLIPPED) and is_one_in_ten):
        return said
    verdict = ast.literal_eval(said)
    return str({"pred": "no" if verdict["pred"] == "yes" else "yes", "score": 5 - verdict["score"]})


def _verdicts(server: JudgeServer, order: str) -> dict[bytes, str]:
    """What was said of each question in one order, by what the prompt holds."""
    prompts = [text_of(body["messages"][-1]) for body in server.bodies]
    return {
        _lines(prompt): ast.literal_eval(_reply(prompt))["pred"]
        for prompt in prompts
        if "Predicted Answer: " in prompt
        and prompt.startswith(_FLIPPED) == (order == "constant-first")
    }


@pytest.fixture
def folders(bench: pytest.MonkeyPatch, serve: ServerFactory, tmp_path: Path) -> list[Path]:
    """The same captions judged in both orders."""
    server = serve()
    server.reply = _reply
    server.keep_bodies = True
    SERVERS[:] = [server]
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_DATA", str(sample_root(tmp_path / "sample")))
    captions = {
        task: [f"A thing of {task} moves, number {n}." for n in range(12)] for task in TASKS
    }
    made = []
    for order in ("paper", "constant-first"):
        bench.setenv("LMMS_CAPTIONS_PROMPT_ORDER", order)
        JUDGE_RUN.close()
        judged_run(tmp_path / order, captions)
        made.append(tmp_path / order)
    return made


SERVERS: list[JudgeServer] = []


def test_agree_measures_what_the_order_changes(
    folders: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """The two orders are two judges; flips, kappa, AC1 and confusion are those planted."""
    assert main(["agree", *map(str, folders), "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["benchmarks"]
    by_order = [_verdicts(SERVERS[0], order) for order in ("paper", "constant-first")]
    assert by_order[0].keys() == by_order[1].keys()
    x, y = ([said[key] for key in by_order[0]] for said in by_order)
    n_flips = sum(a != b for a, b in zip(x, y, strict=True))
    assert 0.05 < n_flips / len(x) < 0.15
    (pair,) = found["pairs"]
    assert pair["other"] == "judge (prompt-order constant-first)"
    assert pair["reference"] == "judge (plain)"
    agreement: dict[str, Any] = pair["agreements"][0]
    assert agreement["n_units"] == len(x)
    assert agreement["same"] == pytest.approx(1 - n_flips / len(x))
    assert agreement["kappa"]["value"] == pytest.approx(cohen_kappa_score(x, y))
    yes = (x.count("yes") + y.count("yes")) / (2 * len(x))
    by_chance = 2 * yes * (1 - yes)
    ac1 = (agreement["same"] - by_chance) / (1 - by_chance)
    assert agreement["ac1"]["value"] == pytest.approx(ac1)
    labels = pair["confusion"]["labels"]
    assert pair["confusion"]["counts"] == confusion_matrix(x, y, labels=labels).tolist()
    assert main(["agree", *map(str, folders)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    kappa = agreement["kappa"]["value"]
    said = f"judge (prompt-order constant-first): agrees with judge (plain) to kappa {kappa:.2f} ["
    assert last.startswith(said)


def test_compare_refuses_captioners_that_were_judged_in_two_orders(
    folders: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the field and both values; across judges it is a warning."""
    assert main(["compare", *map(str, folders)]) == 2
    error = capsys.readouterr().err
    assert "prompt-order is none in " in error
    assert "constant-first in " in error
    assert main(["compare", *map(str, folders), "--across-judges"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "WARNING: vdc_camera: prompt-order is none in " in told
