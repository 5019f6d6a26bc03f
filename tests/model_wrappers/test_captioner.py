"""The base class of captioners: order, batches, decoding ahead, failures, settings."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from lmms_eval.api.instance import unwrap_generation_output
from lmms_eval.caching.response_cache import ResponseCache

from caption_requests import GREEDY, caption_all, make_requests, results_of
from hostile_clips import write_clip
from lmms_eval_captions.judges.errors import CaptionError, DataError, SettingsError
from lmms_eval_captions.model_wrappers import captioner as module
from lmms_eval_captions.model_wrappers.captioner import Batch, Caption, Captioner, CaptionJob
from lmms_eval_captions.model_wrappers.model_args import Generation
from lmms_eval_captions.model_wrappers.video.clip import Clip
from lmms_eval_captions.model_wrappers.video.frames import read_frames
from lmms_eval_captions.model_wrappers.video.sampling import Uniform

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


FIVE = {f"task{number}": f"Prompt {number}." for number in range(5)}


class Echo(Captioner):
    """Says which clip and prompt it was asked about, and remembers its batches."""

    sampling = Uniform(2)

    def __init__(self, act: Callable[[Batch], None] | None = None, **common: Any) -> None:
        super().__init__(**{"device": "cpu", **common})
        self.batches: list[Batch] = []
        self.act = act

    def caption(self, batch: Batch) -> Sequence[str | Caption | Future[Caption]]:
        """Name and prompt."""
        self.batches.append(batch)
        if self.act:
            self.act(batch)
        return [f"{job.path.stem}: {job.prompt}" for job in batch.jobs]


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Six clips, the later the longer."""
    folder = tmp_path_factory.mktemp("clips")
    return [write_clip(folder / f"clip{n}.mp4", 2 + 6 * n) for n in range(6)]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counts: Counter[str] = Counter()
    original = read_frames

    def counting(path: Path, *args: Any, **named: Any) -> object:
        counts[path.stem] += 1
        return original(path, *args, **named)

    monkeypatch.setattr(module, "read_frames", counting)
    return counts


@pytest.mark.parametrize("batch_size", [1, 2, 7, "64"])
def test_captions_come_back_in_the_order_of_the_requests(
    clips: list[Path], batch_size: object
) -> None:
    """However the work is ordered and batched, each request gets its own caption."""
    captions = caption_all(Echo(batch_size=batch_size), clips, FIVE)
    assert captions == [f"{path.stem}: {prompt}" for prompt in FIVE.values() for path in clips]


@pytest.mark.parametrize("batch_size", [1, 3, 8])
def test_each_clip_is_decoded_once_for_all_its_prompts(
    clips: list[Path], decoded: Counter[str], batch_size: int
) -> None:
    """Five tasks on the same clips decode each once, and costly clips come first."""
    model = Echo(batch_size=batch_size)
    caption_all(model, clips, FIVE)
    assert decoded == {path.stem: 1 for path in clips}
    assert all(len(batch.jobs) <= batch_size for batch in model.batches)
    order = list(dict.fromkeys(job.path for batch in model.batches for job in batch.jobs))
    assert order == sorted(clips, key=lambda path: path.stat().st_size, reverse=True)


def test_coming_clips_are_decoded_while_the_model_works(clips: list[Path]) -> None:
    """While the first batch is captioned, the next clips are decoded, and only so many."""
    started: list[str] = []
    both = threading.Event()
    ahead: list[int] = []

    class Watched(Echo):
        def _read(self, path: Path) -> Clip:
            started.append(path.stem)
            if len(started) >= 3:
                both.set()
            return super()._read(path)

    def wait(_: Batch) -> None:
        assert both.wait(20), "nothing was decoded ahead"
        time.sleep(0.05)
        ahead.append(len(started))

    caption_all(Watched(wait, batch_size=1, decode_threads=1), clips)
    assert ahead[0] == 3, "one in use and two ahead"
    assert ahead == sorted(ahead)
    assert all(n <= done + 3 for done, n in enumerate(ahead))


def test_a_broken_clip_costs_its_own_caption_alone(
    clips: list[Path], tmp_path: Path, logged: list[str]
) -> None:
    """It gets no caption and is named once, with the reason; the others are captioned."""
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"no video")
    model = Echo(batch_size=4)
    results = results_of(model, [clips[0], broken, clips[1]], FIVE)
    assert [bool(result.text) for result in results] == [True, False, True] * 5
    missing = results[1]
    assert "broken.mp4" in missing.text.reason
    # A log without verdicts tells it from an empty caption by this.
    assert missing.token_counts.to_dict() == {"input_tokens": 0, "output_tokens": 0}
    assert sum("WARNING no caption for broken.mp4" in line for line in logged) == 1
    assert len(model.outcome.failures) == 5
    assert any("ERROR 5 document(s) have no caption" in line for line in logged)


def test_a_missing_video_is_reported_by_its_document(clips: list[Path]) -> None:
    """A task that cannot find a video costs that document alone."""
    model = Echo()
    captions = caption_all(model, [clips[0].with_name("gone.mp4"), clips[1]])
    assert captions[0] == ""
    assert "found none at" in model.outcome.failures["task", 0]
    assert captions[1]


def test_a_clip_that_the_model_cannot_use_is_left_out_of_its_batch(clips: list[Path]) -> None:
    """A DataError of prepare is pinned on the job that causes it."""

    class Picky(Echo):
        def prepare(self, jobs: Sequence[CaptionJob], _generation: Generation) -> object:
            if any(job.path == clips[2] for job in jobs):
                raise DataError("too odd")
            return len(jobs)

    model = Picky(batch_size=3)
    captions = caption_all(model, clips)
    assert [bool(caption) for caption in captions] == [n != 2 for n in range(6)]
    assert model.outcome.failures == {("task", 2): "clip2.mp4: too odd"}
    assert all(batch.prepared == len(batch.jobs) for batch in model.batches)


def test_an_error_of_the_captioner_ends_the_run(clips: list[Path]) -> None:
    """A mistake in the captioner is not taken for a broken clip."""

    def fail(_: Batch) -> None:
        raise KeyError("a mistake")

    with pytest.raises(KeyError, match="a mistake"):
        caption_all(Echo(fail), clips)


def test_a_batch_too_large_for_the_memory_is_halved(clips: list[Path]) -> None:
    """Halves are tried until they fit; what never fits is named."""

    def small_memory(batch: Batch) -> None:
        if len(batch.jobs) > 2 or any(job.path == clips[5] for job in batch.jobs):
            raise torch.OutOfMemoryError("out of memory, tried to allocate 9 GiB")

    model = Echo(small_memory, batch_size=6)
    captions = caption_all(model, clips)
    assert [bool(caption) for caption in captions] == [True] * 5 + [False]
    assert "9 GiB" in model.outcome.failures["task", 5]


def test_settings_of_the_request_reach_the_captioner(clips: list[Path]) -> None:
    """Requests with different settings are never in one batch, and captions end at a stop."""
    model = Echo(batch_size=8)
    settings = {**GREEDY, "max_new_tokens": 99, "until": ["mpt"]}
    assert caption_all(model, clips[:1], settings=settings) == ["clip0: Describe the video."]
    assert caption_all(model, clips[:1], {"t": "A prompt."}, settings) == ["clip0: A pro"]
    assert model.batches[0].generation.max_new_tokens == 99


def test_token_counts_are_passed_on(clips: list[Path]) -> None:
    """Counts reach lmms-eval, and survive being futures."""

    class Counting(Echo):
        def caption(self, _batch: Batch) -> list[Caption | Future[Caption]]:
            later: Future[Caption] = Future()
            threading.Timer(0.05, later.set_result, [Caption("b", 3, 4)]).start()
            return [Caption("a", 1, 2), later]

    first, second = results_of(Counting(batch_size=2), clips[:2])
    counts = [(result.text, result.token_counts.to_dict()) for result in (second, first)]
    assert counts == [
        ("a", {"input_tokens": 1, "output_tokens": 2}),
        ("b", {"input_tokens": 3, "output_tokens": 4}),
    ]


def test_use_cache_keeps_captions(clips: list[Path], tmp_path: Path) -> None:
    """lmms-eval's response cache serves a second run, and asks again only for what failed."""
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"no video")
    paths = [*clips[:2], broken]
    seen = []
    models = [Echo(batch_size=2), Echo(batch_size=2)]
    for model in models:
        model.task_dict = {"task": {"test": [{"video": str(path)} for path in paths]}}
        requests = make_requests(3, {"task": "Describe."}, GREEDY, is_simple=True)
        cache = ResponseCache(str(tmp_path / "cache.db"), str(tmp_path / "cache.jsonl"))
        results = cache.execute(model, "generate_until", requests)
        cache.close()
        seen.append([unwrap_generation_output(result)[0] for result in results])
    assert seen[0] == seen[1] == ["clip0: Describe.", "clip1: Describe.", ""]
    assert models[1].batches == []


def test_a_future_that_fails_costs_its_own_caption_alone(clips: list[Path]) -> None:
    """A refused request is named like a broken clip."""

    class Refused(Echo):
        def caption(self, _batch: Batch) -> list[str | Future[Caption]]:
            refused: Future[Caption] = Future()
            refused.set_exception(CaptionError("refused"))
            return ["fine", refused]

    model = Refused(batch_size=2)
    assert sorted(caption_all(model, clips[:2])) == ["", "fine"]
    assert list(model.outcome.failures.values()) == ["clip0.mp4: refused"]


def test_too_few_captions_are_an_error(clips: list[Path]) -> None:
    """A captioner that loses a caption is stopped, not shifted."""

    class Loses(Echo):
        def caption(self, _batch: Batch) -> list[str]:
            return ["one"]

    with pytest.raises(SettingsError, match="one caption per job, 2, got 1"):
        caption_all(Loses(batch_size=2), clips[:2])


def test_unknown_arguments_are_named_with_all_that_exist() -> None:
    """A typing error lists the captioner's own arguments and the base's."""
    with pytest.raises(SettingsError, match=r"\['batchsize'\].*'act'.*'batch_size'.*'device'"):
        Echo(batchsize=4)


@pytest.mark.parametrize("value", [0, -1, "auto", 1.5, True])
def test_a_batch_size_that_cannot_be_used(value: object) -> None:
    """Only a whole number of at least 1 is taken."""
    with pytest.raises(SettingsError, match="batch_size"):
        Echo(batch_size=value)
