"""Similarity by a CLIP model: a tiny one of random weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from lmms_eval_captions.analysis.t2v_verify.similarity import ClipModel, cosine
from lmms_eval_captions.cli.main import main
from lmms_eval_captions.judges.errors import SettingsError
from shots import write_shots


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CLIP checkpoint of a few thousand weights."""
    import torch
    from transformers import (
        CLIPConfig,
        CLIPImageProcessor,
        CLIPModel,
        CLIPProcessor,
        CLIPTokenizer,
    )

    folder = tmp_path_factory.mktemp("clip")
    letters = [chr(code) for code in range(33, 127)]
    words = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({word: at for at, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    tokenizer = CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
    small = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2}
    torch.manual_seed(0)
    config = CLIPConfig(
        text_config={
            **small, "num_hidden_layers": 1, "vocab_size": len(words),
            "max_position_embeddings": 12, "eos_token_id": len(words) - 1,
        },
        vision_config={**small, "num_hidden_layers": 1, "image_size": 32, "patch_size": 8},
        projection_dim=8,
    )  # fmt: skip
    CLIPModel(config).save_pretrained(folder)
    size = {"height": 32, "width": 32}
    images = CLIPImageProcessor(size={"shortest_edge": 32}, crop_size=size)
    CLIPProcessor(images, tokenizer).save_pretrained(folder)
    return folder


def test_embeddings_tell_equal_frames_from_others(checkpoint: Path) -> None:
    """A video is as near to itself as can be, and nearer than to another; texts are cut."""
    model = ClipModel(str(checkpoint))
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 255, (2, 3, 40, 48, 3)).astype(np.uint8)
    # Dark on the left: random noise alone is all alike to any model.
    second[:, :, :24] = 0
    embedding = model.of_frames(first)
    assert cosine(embedding, model.of_frames(first)) == pytest.approx(1)
    assert cosine(embedding, model.of_frames(second)) < 0.9999
    one_by_one = [model.of_frames(first[at : at + 1]) for at in range(3)]
    assert embedding == pytest.approx(np.mean(one_by_one, axis=0), abs=1e-5)
    assert np.linalg.norm(model.of_text("a dog")) == pytest.approx(1)
    assert model.n_cut == 0
    assert -1 <= cosine(embedding, model.of_text("a dog that runs " * 9)) <= 1
    assert model.n_cut == 1


def test_videos_are_compared_with_originals_and_captions(checkpoint: Path, tmp_path: Path) -> None:
    """A copy of the original is as near to it as can be; a video without a caption has none."""
    for captioner, seed in (("copy", 1), ("other", 2)):
        write_shots(tmp_path / "generated" / captioner / "v.mp4", [(1, "moves", seed)])
    write_shots(tmp_path / "original" / "v.mp4", [(1, "moves", 1)])
    captions = tmp_path / "captions.jsonl"
    captions.write_text('{"captioner": "copy", "video": "v.mp4", "caption": "a wall"}\n')
    output = tmp_path / "out.json"
    command = ["t2v-verify", "--generated", str(tmp_path / "generated"), "--original"]
    command += [str(tmp_path / "original"), "--clip", str(checkpoint), "--captions", str(captions)]
    assert main([*command, "-o", str(output)]) == 0
    copy, other = (row["means"] for row in json.loads(output.read_text())["captioners"])
    assert copy["CLIP to original"] == pytest.approx(1)
    assert copy["PSNR"] == 100
    assert other["CLIP to original"] < 0.99999
    assert -1 <= copy["CLIP to caption"] <= 1
    assert "CLIP to caption" not in other


def test_what_clip_cannot_be_asked_for_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Captions without a model, which would be read for nothing; a folder without weights."""
    folder = str(tmp_path)
    command = ["t2v-verify", "--generated", folder, "--original", folder, "--captions", "c.jsonl"]
    assert main(command) == 2
    assert "give --clip, too" in capsys.readouterr().err
    with pytest.raises(SettingsError, match="expected a CLIP checkpoint"):
        ClipModel(folder)
