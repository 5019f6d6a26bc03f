"""AuroraCap's networks in a row: tokens seen, prompts, batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from lmms_eval_captions.model_wrappers.auroracap.checkpoint import Projector
from lmms_eval_captions.model_wrappers.auroracap.model import SYSTEM, AuroraCap
from lmms_eval_captions.model_wrappers.auroracap.token_merging import TokenMerging
from lmms_eval_captions.model_wrappers.caption_jobs import content_of
from plain_merging import plain_states
from tiny_auroracap import IMAGE_SIZE, N_LAYERS, tiny_llm, tiny_tokenizer, tiny_tower

if TYPE_CHECKING:
    from collections.abc import Iterator

GREEDY = {"max_new_tokens": 24, "do_sample": False}
WHAT = content_of(1, "What?")


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Threads cost tiny matrices more than they save, all the more on busy cores."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


@pytest.fixture(scope="module")
def model() -> AuroraCap:
    """Random weights."""
    torch.manual_seed(0)
    tokenizer = tiny_tokenizer()
    return AuroraCap(
        tiny_llm(len(tokenizer)), tiny_tower(), projector=Projector(32, 48), tokenizer=tokenizer
    )


def clip(n_frames: int = 3, height: int = IMAGE_SIZE, width: int = IMAGE_SIZE) -> torch.Tensor:
    """Noise, another for each length."""
    generator = torch.Generator().manual_seed(n_frames)
    return torch.randn(n_frames, 3, height, width, generator=generator)


def lengths(frames: list[torch.Tensor]) -> list[int]:
    """Tokens of each frame."""
    return [len(tokens) for tokens in frames]


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        # 16 patches, 4 layers of which 3 are read: int(16 * (1 - ratio) / 4) go in each of 3.
        pytest.param(1.0, [16, 16, 16], id="all"),
        pytest.param(0.5, [10, 10, 10], id="half"),
        pytest.param(0.1, [7, 7, 7], id="a tenth"),
    ],
)
def test_tokens_a_frame(model: AuroraCap, ratio: float, expected: list[int]) -> None:
    """Every frame is merged by itself."""
    assert lengths(model.see(clip(), kept_ratio=ratio)) == expected


def test_the_tower_is_cut_but_its_schedule_is_not() -> None:
    torch.manual_seed(0)
    tower = tiny_tower()
    with torch.no_grad(), TokenMerging(tower, 0.3):
        expected = tower(clip(), output_hidden_states=True).hidden_states[-2][:, 1:]
    tokenizer = tiny_tokenizer()
    model = AuroraCap(
        tiny_llm(len(tokenizer)), tower, projector=torch.nn.Identity(), tokenizer=tokenizer
    )
    assert torch.equal(torch.stack(model.see(clip(), kept_ratio=0.3)), expected)
    assert len(tower.encoder.layers) == N_LAYERS - 1


def test_the_sizes_weigh_as_released() -> None:
    """Log s cancels, as in the released network."""
    torch.manual_seed(0)
    tower, tokenizer = tiny_tower(), tiny_tokenizer()
    expected = [plain_states(tower, frame, 0.3)[-2][1:] for frame in clip()]
    model = AuroraCap(
        tiny_llm(len(tokenizer)), tower, projector=torch.nn.Identity(), tokenizer=tokenizer
    )
    torch.testing.assert_close(model.see(clip(), kept_ratio=0.3), expected, atol=1e-5, rtol=1e-4)


def test_the_prompt_is_vicunas(model: AuroraCap) -> None:
    """Frames stand between spaces after the user's name, the prompt on a line of its own."""
    decode = model.tokenizer.decode
    pieces = [decode(ids) for ids in model.pieces((0, "What <image> moves?"), [3])]
    assert pieces == ["<s>USER: ", " ", " ", "\nWhat <image> moves? ASSISTANT:"]
    assert decode(model.pieces(WHAT, [1], system_prompt=True)[0]) == f"<s>{SYSTEM} USER: "


def test_frames_stand_in_their_places(model: AuroraCap) -> None:
    """An input is the pieces' embeddings with the frames between them."""
    frames = model.see(clip(2), kept_ratio=0.1)
    pieces = model.pieces(WHAT, [2])
    given = model.embed(WHAT, [frames])
    start = len(pieces[0])
    assert torch.equal(given[start : start + 7], frames[0])
    assert torch.equal(given[start + 7 + len(pieces[1]) :][:7], frames[1])
    assert len(given) == sum(map(len, pieces)) + 14


def test_batched_is_unbatched_token_for_token(model: AuroraCap) -> None:
    """Greedy captions of clips of different length do not depend on their batch."""
    inputs = [
        model.embed(content_of(1, prompt), [model.see(clip(n), kept_ratio=0.3)])
        for n, prompt in ((1, "Short."), (4, "A far longer prompt than the others."), (2, "Two?"))
    ]
    settings = {**GREEDY, "min_new_tokens": 24}
    together = model.generate(inputs, **settings)
    alone = torch.cat([model.generate([given], **settings) for given in inputs])
    assert together.shape == (3, 24)
    assert torch.equal(together, alone)
    assert len({tuple(ids) for ids in together.tolist()}) == 3, "captions follow clip and prompt"


def test_captions_follow_the_kept_ratio(model: AuroraCap) -> None:
    inputs = [model.embed(WHAT, [model.see(clip(), kept_ratio=ratio)]) for ratio in (1.0, 0.1)]
    first, other = model.generate(inputs, **GREEDY, min_new_tokens=24).tolist()
    assert first != other
