"""A short share of what ``benchmarks/prefixes.py`` counts and measures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest

import prefix_server
import prefixes
from conftest import ServerFactory
from lmms_eval_captions.judges.protocols.prompt_folder import Prompts
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks
from prompt_orders import text_of

ASKED: Final = {
    prompt
    for benchmark in all_benchmarks().values()
    for task in benchmark.tasks.values()
    for prompt in task.judge_prompts
}
_ROW: Final = re.compile(r"^\| `(\w+)` \| (real|sample) \| (.*) \|$", re.MULTILINE)


def _rows(text: str) -> dict[str, tuple[str, list[float]]]:
    return {
        name: (data, [float(cell.replace(",", "").strip("% ")) for cell in cells.split("|")])
        for name, data, cells in _ROW.findall(text)
    }


def test_every_prompt_of_a_judge_has_its_shares(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the sample's questions; more is shared constant first, where there is such an order."""
    monkeypatch.setenv("LMMS_CAPTIONS_DATA", "sample")
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path))
    assert prefixes.main(["shares", "--captions", "4"]) == 0
    rows = _rows(capsys.readouterr().out)
    assert rows.keys() == ASKED
    for name, (data, cells) in rows.items():
        constant, paper, first, paper_in_blocks, first_in_blocks = cells[3:]
        assert data == "sample"
        assert 0 < constant <= paper <= first < 100
        assert (first > paper) == (name in Prompts(order="constant-first").reordered)
        assert paper_in_blocks <= paper
        assert first_in_blocks <= first


def test_the_first_word_names_a_part(capsys: pytest.CaptureFixture[str]) -> None:
    """Without one, or with another, the parts are named."""
    for argv in ([], ["orders"], ["--help"]):
        assert prefixes.main(argv) == 2
        assert "expected one of shares, simulate, server" in capsys.readouterr().err


@pytest.mark.parametrize("order", ["paper", "constant-first"])
def test_a_server_is_asked_in_the_order_that_is_named(
    order: str,
    serve: ServerFactory,
    shared_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """VDC's prompts come as printed or constant first, and the server's own counts are shown."""
    server = serve()
    server.keep_bodies = True
    questions = tmp_path / "vdc/VDCScore_qa"
    questions.parent.mkdir()
    questions.symlink_to(shared_data / "vdc_qa")
    monkeypatch.setenv("LMMS_CAPTIONS_DATA", str(tmp_path))
    told = iter(range(0, 1000, 100))

    def metrics(_: str) -> str:
        n: Any = next(told)
        return f"vllm:prefix_cache_queries_total {n}\nvllm:prefix_cache_hits_total {n // 4}\n"

    monkeypatch.setattr(prefix_server, "_metrics", metrics)
    line = f"server --model m --url {server.url} --captions 1 --questions 2 --rounds 1"
    assert prefixes.main([*line.split(), "--order", order]) == 0
    shown = capsys.readouterr().out
    assert f"prompts in the order {order}, " in shown
    assert shown.count("| 25.0% |") == 3
    texts = [text_of(body["messages"][-1]) for body in server.bodies]
    matches = [text for text in texts if "Predicted Answer: " in text]
    assert len(matches) == 6
    is_first = [text.startswith("Provide your evaluation only") for text in matches]
    assert is_first == [order == "constant-first"] * 6
