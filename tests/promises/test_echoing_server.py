"""A server that echoes the key, in every field and code: the key is in nothing that is written."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loguru import logger

from caption_requests import caption_all
from echo_server import CODES, ERRORS, KEY, PLACES, STOPS, EchoServer, traces
from five_tasks import TASKS, Task, Texts, write_data
from lmms_eval_captions.lmms_eval_tasks.judging import session as judging
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.lmms_eval_tasks.vidcapbench import benchmark as vidcapbench_benchmark
from lmms_eval_captions.model_wrappers import caption_openai
from lmms_eval_captions.model_wrappers import chat_api as connection
from lmms_eval_captions.model_wrappers.caption_openai import CaptionOpenai
from lmms_eval_captions.model_wrappers.no_caption import NoCaption

Case = tuple[str, str]

WAITS: dict[str, Any] = {
    "n_rereads": 1,
    "n_attempts": 2,
    "patience_s": 0.03,
    "backoff_s": 0.001,
    "max_backoff_s": 0.01,
    "outage_patience_s": 60.0,
}


@pytest.fixture
def written(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> Iterator[Callable[..., list[str]]]:
    """Looks for the key in all files, all logs at their finest, warnings and what is given."""
    lines: list[str] = []
    # As loguru has it by default: with the values of variables, where it is handed an exception.
    sink = logger.add(lambda line: lines.append(str(line)), level="TRACE", diagnose=True)
    caplog.set_level(logging.DEBUG)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")

        def look(*more: object) -> list[str]:
            out, err = capfd.readouterr()
            texts = {"log": "".join(lines), "stdout": out, "stderr": err, "logging": caplog.text}
            texts |= {"warnings": "\n".join(str(one.message) for one in warned)}
            texts |= {f"given {n}": f"{one!s} {one!r}" for n, one in enumerate(more)}
            raws = {name: text.encode() for name, text in texts.items()}
            raws |= {str(path): path.read_bytes() for path in _files(tmp_path)}
            assert lines, "nothing was logged at all"
            return [f"{place}: {name}" for place, raw in raws.items() for name in traces(raw)]

        yield look
    logger.remove(sink)


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def _cases(shift: int, *, with_stops: bool = True) -> list[Case]:
    """Every place in one code, another one for each shift; the content in all of them."""
    codes = list(CODES)
    stops = [f"{status} {name}" for status in STOPS for name in ERRORS]
    places = enumerate((*PLACES, *stops) if with_stops else PLACES)
    rotated = [(place, codes[(n + 3 * shift) % len(codes)]) for n, place in places]
    return [*rotated, *(("content", code) for code in codes)]


def _set(bench: pytest.MonkeyPatch, url: str, data: Path, **changes: Any) -> None:
    make = judging.engine_config
    bench.setattr(
        judging, "engine_config", lambda settings: replace(make(settings), **WAITS | changes)
    )
    bench.setattr(vidcapbench_benchmark, "tokenizer", lambda: (len, None))
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", url)
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "1")
    bench.setenv("LMMS_CAPTIONS_DATA", str(data))
    bench.setenv("LMMS_CAPTIONS_JUDGE_RUNS", "1")
    bench.setenv("OPENAI_API_KEY", KEY)


def _judge(task: Task, captions: list[str], output: Path) -> str:
    samples = task.samples(captions, output)
    (output / "samples.json").parent.mkdir(exist_ok=True)
    text = json.dumps(samples, default=str)
    (output / "samples.json").write_text(text)
    return text


@pytest.mark.parametrize("task", TASKS[:2], ids=lambda task: task.name)
def test_an_echoed_key_is_in_nothing_that_judging_writes(
    task: Task, bench: pytest.MonkeyPatch, tmp_path: Path, written: Callable[..., list[str]]
) -> None:
    """Whatever field of an answer, header or status holds the key, in whatever code."""
    shown = 0
    for number, case in enumerate(cases := _cases(TASKS.index(task))):
        data = write_data(tmp_path / f"data{number}", [Texts(question=f"What of {number}?")])
        with EchoServer([case]) as server:
            _set(bench, server.url, data)
            shown += "[key]" in _judge(task, [f"A dog, {number}."], tmp_path / f"output{number}")
            SESSION.close()
        assert server.seen == {case}
    assert shown > len(cases) / 3, "what was left out is said in texts and reasons"
    assert written() == []
    assert list((tmp_path / "cache" / "replies").rglob("*.jsonl")), "replies were stored"


def test_an_echoed_key_is_in_no_caption(
    bench: pytest.MonkeyPatch, tmp_path: Path, written: Callable[..., list[str]]
) -> None:
    """``caption_openai`` asks through the same client, with a key of its own."""
    clip = next((sample_root(tmp_path / "sample") / "msvd_eval").rglob("*.mp4"))
    make = connection.engine_config
    bench.setattr(
        caption_openai,
        "engine_config",
        lambda *args, **named: replace(make(*args, **named), **WAITS),
    )
    bench.setenv("THE_KEY", KEY)
    captions: list[str] = []
    for number, case in enumerate(_cases(0)[::3]):
        with EchoServer([case]) as server:
            model = CaptionOpenai(
                model="seer",
                base_url=server.url,
                max_num_frames=1,
                api_key_env="THE_KEY",
                device="cpu",
            )
            captions += caption_all(model, [clip], {"task": f"Describe it, {number}."})
            model.clean()
        assert server.seen == {case}
    reasons = [one.reason for one in captions if isinstance(one, NoCaption)]
    assert any("[key]" in caption for caption in captions)
    assert any("[key]" in reason for reason in reasons)
    assert written(captions, reasons) == []
