"""``caption_auroracap``: clips through lmms-eval with a tiny checkpoint in AuroraCap's layout."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from lmms_eval.api.instance import Instance
from PIL import Image

from caption_requests import GREEDY, caption_all, results_of
from hostile_clips import write_all, write_clip
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.model_wrappers.caption_auroracap import (
    CaptionAuroraCap,
    CaptionAuroraCapChat,
)
from lmms_eval_captions.model_wrappers.caption_files.columns import ASPECTS
from runs import environment, run_lmms_eval
from tiny_auroracap import write_auroracap

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore:.*")

PROMPTS = {"short": "Describe.", "long": "Describe the camera, then the background, in detail."}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Threads cost tiny matrices more than they save, all the more on busy cores."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights, saved."""
    return write_auroracap(tmp_path_factory.mktemp("model") / "auroracap")


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Clips of several lengths and shapes."""
    folder = tmp_path_factory.mktemp("clips")
    shapes = [(3, (64, 48)), (24, (64, 48)), (9, (48, 96)), (1, (32, 32)), (12, (160, 64))]
    return [
        write_clip(folder / f"{index}.mp4", n, size=size) for index, (n, size) in enumerate(shapes)
    ]


def make(checkpoint: Path, **arguments: Any) -> CaptionAuroraCap:
    """A captioner on the CPU."""
    return CaptionAuroraCap(
        **{"pretrained": str(checkpoint), "device": "cpu", "max_num_frames": 4, **arguments}
    )


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="merged"),
        pytest.param({"token_kept_ratio": 1.0}, id="all tokens"),
        pytest.param({"slowfast": True, "keep_aspect": True}, id="slowfast, whole frames"),
    ],
)
def test_batched_is_unbatched(
    checkpoint: Path, clips: list[Path], settings: dict[str, object]
) -> None:
    """Greedy captions and token counts do not depend on what stands beside them in a batch."""
    alone = results_of(make(checkpoint, batch_size=1, **settings), clips, PROMPTS)
    together = results_of(make(checkpoint, batch_size=4, **settings), clips, PROMPTS)
    assert [(result.text, result.token_counts) for result in alone] == [
        (result.text, result.token_counts) for result in together
    ]
    assert len({result.text for result in alone}) >= 8, "captions follow clip and prompt"


def test_input_tokens_follow_the_kept_ratio(checkpoint: Path, clips: list[Path]) -> None:
    """Four frames of 16 patches: 9 tokens fewer a frame at 0.1, but for slowfast's first frame."""

    def n_inputs(**settings: Any) -> int:
        [result] = results_of(make(checkpoint, **settings), clips[1:2])
        return int(result.token_counts.input_tokens)

    whole = n_inputs(token_kept_ratio=1)
    assert whole - n_inputs(token_kept_ratio=0.5) == 4 * 6
    assert whole - n_inputs(token_kept_ratio=0.1) == 4 * 9
    assert whole - n_inputs(token_kept_ratio=0.1, slowfast=True) == 3 * 9
    assert n_inputs(system_prompt=True) > n_inputs()


def test_more_tokens_than_positions_are_told_once(
    checkpoint: Path, clips: list[Path], logged: list[str]
) -> None:
    """At ratio 1.0 the paper's frames are more than Vicuna's positions: run, not in silence."""
    model = make(checkpoint, token_kept_ratio=1.0)
    caption_all(model, clips[1:2])
    assert not any("positions" in line for line in logged)
    model.model.llm.config.max_position_embeddings = 64
    results = results_of(model, clips[1:2], PROMPTS)
    assert all(result.text for result in results)
    [told] = [line for line in logged if "positions" in line]
    n_read = {result.token_counts.input_tokens for result in results}
    assert any(f"are {n} tokens and captions may have 16, the model" in told for n in n_read)
    assert "was made for 64 positions" in told


def test_a_clip_is_seen_once_for_all_its_prompts(
    checkpoint: Path, clips: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Captions that are asked of a clip in a row share the tower's work."""
    model = make(checkpoint, batch_size=2)
    seen: list[int] = []
    see = model.model.see

    def counting(pixels: object, **settings: Any) -> object:
        seen.append(1)
        return see(pixels, **settings)

    monkeypatch.setattr(model.model, "see", counting)
    five = {f"task{number}": f"Prompt {number}." for number in range(5)}
    assert len(set(caption_all(model, clips, five))) > len(clips)
    assert len(seen) == len(clips)


PAPER = {"camera": 0.6, "short": 0.5, "background": 0.4, "main_object": 0.2, "detailed": 0.2}


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_each_aspect_is_captioned_at_the_paper_s_ratio(
    checkpoint: Path, clips: list[Path], batch_size: int
) -> None:
    """In one run over several aspects each caption is the one of its own ratio, however batched."""
    prompts = {f"vdc_{aspect}": "Describe the same." for aspect in PAPER}
    paper = make(checkpoint, ratio="paper", batch_size=batch_size)
    together = results_of(paper, clips[:3], prompts)
    alone = [
        result
        for aspect, ratio in PAPER.items()
        for result in results_of(
            make(checkpoint, token_kept_ratio=ratio),
            clips[:3],
            {f"vdc_{aspect}": "Describe the same."},
        )
    ]
    assert [(result.text, result.token_counts) for result in together] == [
        (result.text, result.token_counts) for result in alone
    ]
    camera, detailed = together[0], together[-3]
    # Three frames of 16 patches, of which 3 layers merge 1 or 3 each.
    assert camera.token_counts.input_tokens - detailed.token_counts.input_tokens == 3 * 6


def test_a_clip_is_seen_once_for_each_ratio(
    checkpoint: Path, clips: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Aspects with one ratio, and the same aspect's two tasks, share the tower's work."""
    model = make(checkpoint, ratio="paper", batch_size=64)
    ratios: list[float] = []
    see = model.model.see

    def recording(pixels: object, *, kept_ratio: float, **settings: Any) -> object:
        ratios.append(kept_ratio)
        return see(pixels, kept_ratio=kept_ratio, **settings)

    monkeypatch.setattr(model.model, "see", recording)
    kinds = ("vdc_", "vdc_rouge_")
    prompts = {f"{kind}{aspect}": f"The {aspect}." for aspect in PAPER for kind in kinds}
    caption_all(model, clips[:2], prompts)
    assert sorted(ratios) == sorted([*{*PAPER.values()}] * 2)


def test_a_task_without_a_ratio_of_the_paper_ends_the_run_at_once(
    checkpoint: Path, clips: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No caption is written before it turns out that one task has no ratio."""
    model = make(checkpoint, ratio="paper")
    monkeypatch.setattr(model, "caption", None)
    with pytest.raises(SettingsError, match="'capquiz'"):
        caption_all(model, clips, {"vdc_camera": "Look.", "capquiz": "Look."})


def test_the_sizes_weigh_as_released_by_default(checkpoint: Path, clips: list[Path]) -> None:
    """The equation's weights are asked for by name, and give other captions."""
    captions = {
        bias: caption_all(make(checkpoint, token_kept_ratio=0.1, size_bias=bias), clips, PROMPTS)
        for bias in ("released", "equation")
    }
    assert captions["released"] != captions["equation"]
    assert captions["released"] == caption_all(make(checkpoint), clips, PROMPTS)


def test_the_chat_form_gives_the_same(checkpoint: Path, clips: list[Path]) -> None:
    """Simple and chat interface see the same clip and prompt."""
    simple = make(checkpoint, batch_size=4)
    chat = CaptionAuroraCapChat(
        pretrained=str(checkpoint), device="cpu", max_num_frames=4, batch_size=4
    )
    assert caption_all(simple, clips[:2]) == caption_all(chat, clips[:2])


def test_hostile_clips_are_captioned_to_the_end(checkpoint: Path, tmp_path: Path) -> None:
    """Every clip that can be read has a caption, every other one a named reason."""
    readable = write_all(tmp_path)
    model = make(checkpoint, batch_size=6)
    caption_all(model, [tmp_path / name for name in readable])
    failed = {doc_id for _, doc_id in model.outcome.failures}
    assert failed == {i for i, usable in enumerate(readable.values()) if not usable}


def test_the_real_clip(checkpoint: Path, shared_data: Path) -> None:
    """A 720p clip is captioned, the same with and without a neighbour in the batch."""
    clip = shared_data / "media" / "video1.mp4"
    alone = results_of(make(checkpoint, max_num_frames=8), [clip], PROMPTS)
    together = results_of(make(checkpoint, max_num_frames=8, batch_size=2), [clip], PROMPTS)
    assert [result.text for result in alone] == [result.text for result in together]
    assert all(result.text and result.token_counts.output_tokens > 0 for result in alone)


def test_settings_of_the_task_reach_the_model(checkpoint: Path, clips: list[Path]) -> None:
    """Sampling and beams are the task's; the checkpoint's own sampling is not used when greedy."""
    model = make(checkpoint)
    assert model.model.llm.generation_config.temperature == pytest.approx(0.9)
    [greedy] = caption_all(model, clips[1:2])
    assert [greedy] == caption_all(model, clips[1:2])
    drawn = {**GREEDY, "do_sample": True, "temperature": 5.0}
    assert [greedy] != caption_all(model, clips[1:2], settings=drawn)
    [result] = results_of(model, clips[1:2], settings={**GREEDY, "max_new_tokens": 3})
    assert result.token_counts.output_tokens == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"token_kept_ratio": 1.5}, "token_kept_ratio"),
        ({"token_kept_ratio": "half"}, "token_kept_ratio"),
        ({"dtype": "int8"}, "dtype"),
        ({"max_num_frames": 0}, "max_num_frames: expected"),
        ({"token_merge_ratio": 0.4}, "token_kept_ratio"),
        ({"token_kept_ratio": 0.4, "ratio": 0.4}, "by two names"),
        ({"size_bias": "paper"}, "released, equation"),
    ],
)
def test_wrong_arguments_are_named(
    checkpoint: Path, arguments: dict[str, object], message: str
) -> None:
    """What cannot be used is refused by name; an unknown one with those that there are."""
    with pytest.raises(SettingsError, match=message):
        make(checkpoint, **arguments)


@pytest.mark.cli
def test_the_command_line_captions_the_sample(checkpoint: Path, tmp_path: Path) -> None:
    """Plain lmms-eval knows the model, and its captions reach the scores."""
    sample_root(tmp_path / "cache")
    env = environment(tmp_path / "cache", LMMS_CAPTIONS_JUDGE="lexical")
    run = run_lmms_eval(
        tmp_path / "out", "--model", "caption_auroracap", "--tasks", "vdc_score",
        "--batch_size", "3", "--device", "cpu", "--gen_kwargs", "max_new_tokens=12",
        "--model_args", f"pretrained={checkpoint},ratio=paper,slowfast=True",
        env=env,
    )  # fmt: skip
    assert run.returncode == 0, run.log
    for aspect in ASPECTS:
        captions = [json.dumps(row["filtered_resps"]) for row in run.samples(f"vdc_{aspect}")]
        assert len(set(captions)) > 1
    assert "vdc_camera vdc_acc" in run.scores()


def test_pictures_and_conversations_are_captioned_alike_in_any_batch(checkpoint: Path) -> None:
    """COCO's pictures, several at once, texts, and what was said before."""
    shades = [np.full((40 + 8 * n, 64, 3), 60 * n, np.uint8) for n in range(3)]
    shown = [Image.fromarray(shade) for shade in shades]
    one, two, three = ({"type": "image", "url": picture} for picture in shown)
    question = {"type": "text", "text": "Provide a one-sentence caption."}
    talks: dict[str, list[dict[str, Any]]] = {
        "coco": [{"role": "user", "content": [one, question]}],
        "nocaps": [{"role": "user", "content": [two, question]}],
        "both": [{"role": "user", "content": [one, three, question]}],
        "text": [{"role": "user", "content": [question]}],
        "talk": [
            {"role": "user", "content": [three, question]},
            {"role": "assistant", "content": "A dog."},
            {"role": "user", "content": "Which?"},
        ],
    }

    alone = answers(chat(checkpoint, batch_size=1), talks)
    assert all(alone)
    assert len(set(alone)) == len(alone)
    assert answers(chat(checkpoint, batch_size=5), talks) == alone


def test_another_round_shows_another_picture(checkpoint: Path) -> None:
    """A document that shows something else the next time it is asked about is looked at anew."""
    shades = [np.full((40, 64, 3), shade, np.uint8) for shade in (0, 250)]
    question = {"type": "text", "text": "Provide a one-sentence caption."}
    rounds = [
        {
            "role": "user",
            "content": [{"type": "image", "url": Image.fromarray(shade)}, question],
        }
        for shade in shades
    ]
    model = chat(checkpoint)
    captions = [answers(model, {"talk": [turn]}) for turn in rounds]
    assert captions == [answers(chat(checkpoint), {"talk": [turn]}) for turn in rounds]
    assert captions[0] != captions[1]


def chat(checkpoint: Path, **arguments: Any) -> CaptionAuroraCapChat:
    """A captioner in the chat form that keeps nothing."""
    return CaptionAuroraCapChat(
        **{"pretrained": str(checkpoint), "device": "cpu", "reuse": False, **arguments}
    )


def answers(model: CaptionAuroraCapChat, talks: dict[str, list[dict[str, Any]]]) -> list[str]:
    """The answers to conversations, each in a task of its own."""
    model.task_dict = {task: {"test": [{}]} for task in talks}
    requests = [
        Instance(
            "generate_until",
            ("unused", partial(_talk, talk), dict(GREEDY), 0, task, "test"),
            0,
            {"task": task, "doc_id": 0, "repeats": 1},
        )
        for task, talk in talks.items()
    ]
    return [result.text for result in model.generate_until(requests)]


def _talk(talk: list[dict[str, Any]], _doc: object) -> list[dict[str, Any]]:
    return talk
