"""Captions of local models are kept as they come: a run that was ended goes on where it stopped."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import vllm_stand_in
from caption_requests import GREEDY, caption_all
from hostile_clips import write_clip
from judge_server import Behaviour, JudgeServer
from killed_captioner import (
    MAKERS,
    MINE,
    PROMPTS,
    ask,
    checkpoints_of,
    ended_after,
    start,
)
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers import captions as captions_module
from lmms_eval_captions.model_wrappers.captioner import Batch, Captioner
from lmms_eval_captions.model_wrappers.video.sampling import Uniform
from tiny_auroracap import write_auroracap
from zoo import ARCHITECTURES

pytestmark = pytest.mark.keeps_captions


class Words(Captioner):
    """Writes one word more with each caption, or what it is told."""

    sampling = Uniform(2)

    def __init__(self, *, text: str | None = None, **common: Any) -> None:
        super().__init__(device="cpu", **common)
        self.text = text
        self.n = 0

    def caption(self, batch: Batch) -> list[str]:
        """Each is another."""
        self.n += len(batch.jobs)
        return [f"{self.n} words ## end" if self.text is None else self.text] * len(batch.jobs)


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Four clips."""
    folder = tmp_path_factory.mktemp("clips")
    return [write_clip(folder / f"clip{n}.mp4", 4 + n) for n in range(4)]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """A tiny checkpoint for each captioner that needs one."""
    folder = tmp_path_factory.mktemp("checkpoints")
    ARCHITECTURES["qwen2_5_vl"].write(folder / "hf")
    write_auroracap(folder / "auroracap")
    (folder / "mine.py").write_text(MINE)
    return checkpoints_of(folder)


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """Threads that wait for each other cost more than these models."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


@pytest.fixture(autouse=True)
def _vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transformers plays vLLM."""
    for name, module in vllm_stand_in.modules().items():
        monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture(autouse=True)
def _cache(bench: pytest.MonkeyPatch) -> None:
    """A cache folder of the test's own."""


@pytest.fixture(autouse=True)
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgeServer]:
    with JudgeServer(Behaviour(latency_s=0.01), reply=lambda prompt: f"Of: {prompt}") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def interrupt() -> None:
    raise KeyboardInterrupt


def killed_after(model: Captioner, n: int = 10**9) -> list[int]:
    """Have a captioner be ended by Ctrl-C when it is asked for more captions than so many."""
    return ended_after(model, n, interrupt)


def in_order(parts: Sequence[Sequence[str]], n: int) -> list[str]:
    """Captions of several processes in the order of all requests."""
    return [parts[at % len(parts)][at // len(parts)] for at in range(n)]


KILLED = [
    *((name, 5, 1, 1) for name in MAKERS),
    *((name, 3, 2, 1) for name in MAKERS),
    # How ranks share what is kept is the same code for all.
    *(
        (name, *ranks)
        for name in ("caption_hf", "futures")
        for ranks in ((0, 1, 1), (4, 1, 3), (12, 1, 2))
    ),
]


@pytest.mark.parametrize(("name", "n_before", "n_ranks_before", "n_ranks_after"), KILLED)
def test_a_rerun_writes_only_what_is_missing(
    name: str,
    n_before: int,
    n_ranks_before: int,
    n_ranks_after: int,
    clips: list[Path],
    checkpoints: Mapping[str, Path],
) -> None:
    """Whenever a run is ended, on however many ranks, and however many go on: equal captions."""
    n_kept = 0
    for rank in range(n_ranks_before):
        model = MAKERS[name](checkpoints)
        asked = killed_after(model, n_before)
        if n_before == len(clips) * len(PROMPTS):
            ask(model, clips, rank, n_ranks_before)
        else:
            with pytest.raises(KeyboardInterrupt):
                ask(model, clips, rank, n_ranks_before)
        n_kept += sum(asked)
    # The prompts of a clip may come together.
    assert n_before * n_ranks_before - 2 <= n_kept <= n_before * n_ranks_before
    n_all = len(clips) * len(PROMPTS)
    parts, n_written = [], 0
    for rank in range(n_ranks_after):
        model = MAKERS[name](checkpoints)
        asked = killed_after(model)
        parts.append(ask(model, clips, rank, n_ranks_after))
        n_written += sum(asked)
    assert n_written == n_all - n_kept
    whole = MAKERS[name](checkpoints)
    whole.reuse = False
    assert in_order(parts, n_all) == ask(whole, clips)


@pytest.mark.parametrize(
    ("name", "number"), [("caption_custom", signal.SIGKILL), ("futures", signal.SIGTERM)]
)
def test_a_signal_costs_no_caption_that_was_written(
    name: str,
    number: signal.Signals,
    clips: list[Path],
    checkpoints: Mapping[str, Path],
    endpoint: JudgeServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two processes ended at 3 and 2 of 6: a rerun in one writes the others, nothing twice."""
    cache = {name: os.environ[name] for name in ("LMMS_CAPTIONS_CACHE", "OPENAI_BASE_URL")}
    folder = checkpoints["hf"].parent
    running = [
        start(cache, name, number, (rank, 2, n), folder, clips) for rank, n in enumerate((3, 2))
    ]
    for process in running:
        process.join(300)
        assert process.exitcode == -number
    model = MAKERS[name](checkpoints)
    asked = killed_after(model)
    captions = ask(model, clips)
    n_all = len(clips) * len(PROMPTS)
    # The prompts of a clip may come together.
    assert n_all - 5 <= sum(asked) <= n_all - 3
    if name == "caption_openai":
        assert endpoint.counts.n_requests == n_all
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / "another"))
    assert ask(MAKERS[name](checkpoints), clips) == captions


def test_captions_serve_other_tasks_in_any_order(clips: list[Path]) -> None:
    """Known by what is asked of which clip, and not by who asks, nor by ``until``'s cut."""
    first = caption_all(Words(), clips[:2], {"a": "What?", "b": "Who?"})
    again = caption_all(Words(text=None), clips[1::-1], {"c": "Who?", "d": "What?", "e": "Why?"})
    assert again[:4] == [first[3], first[2], first[1], first[0]]
    assert again[4:] == ["1 words ## end", "2 words ## end"]


@pytest.mark.parametrize("settings", [{"max_new_tokens": 9}, {"num_beams": 2}, {"until": ["##"]}])
def test_other_generation_settings_are_other_captions(
    settings: Mapping[str, object], clips: list[Path]
) -> None:
    """A caption that was to be longer is no shorter one."""
    caption_all(Words(), clips[:1])
    model = Words()
    caption_all(model, clips[:1], settings={**GREEDY, **settings})
    assert model.n == 1


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_caption_is_not_kept(text: str, clips: list[Path]) -> None:
    """A rerun asks the model again."""
    for _ in range(2):
        model = Words(text=text)
        caption_all(model, clips[:1])
        assert model.n == 1


def test_a_clip_that_could_not_be_read_is_tried_again(tmp_path: Path, clips: list[Path]) -> None:
    place = tmp_path / "clip.mp4"
    place.write_bytes(b"no video")
    assert caption_all(Words(), [place]) == [""]
    place.write_bytes(clips[0].read_bytes())
    assert caption_all(Words(), [place]) == ["1 words ## end"]


def test_reuse_can_be_switched_off(clips: list[Path], tmp_path: Path, logged: list[str]) -> None:
    """``reuse=false`` neither takes captions nor keeps them; what is taken is said."""
    caption_all(Words(reuse=False), clips[:1])
    for reuse, n in ((True, 1), (True, 0), (False, 1)):
        model = Words(reuse=reuse)
        caption_all(model, clips[:1])
        assert model.n == n
    assert [line for line in logged if "1 of 1 captions are taken from earlier runs" in line]
    with pytest.raises(SettingsError, match="reuse=true or"):
        Words(reuse="perhaps")


def files(tmp_path: Path) -> list[Path]:
    """Files of captions."""
    return sorted((tmp_path / "cache" / "captions").rglob("*.jsonl"))


@pytest.mark.parametrize("damage", [b"", b"\xff" * 50, b"{}\n" * 9, b"0" * 32 + b" []\n"])
def test_a_damaged_store_costs_only_what_was_damaged(
    damage: bytes, tmp_path: Path, clips: list[Path]
) -> None:
    first = ask(Words(), clips[:1])
    [segment] = files(tmp_path)
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(lines[0] + damage + lines[1][: len(lines[1]) // 2])
    model = Words()
    again = ask(model, clips[:1])
    assert model.n == len(PROMPTS) - 1
    assert len({*again} & {*first}) >= 1


def _no_folder(cache: Path) -> Iterator[None]:
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "captions").write_text("a file stands here")
    yield


def _full_disk(_: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(captions_module, "_append", _no_space)
        yield


def _no_space(*_: object) -> int:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("trouble", [_no_folder, _full_disk])
def test_a_store_that_cannot_be_written_loses_no_run(
    trouble: Callable[[Path], Iterator[None]],
    tmp_path: Path,
    clips: list[Path],
    logged: list[str],
) -> None:
    """Every caption is written and returned; it is said once that none is kept, and what helps."""
    captions = [caption for _ in trouble(tmp_path / "cache") for caption in ask(Words(), clips)]
    assert len({*captions}) == len(clips) * len(PROMPTS)
    [line, *_] = [line for line in logged if "captions cannot be saved" in line]
    assert str(tmp_path) in line
