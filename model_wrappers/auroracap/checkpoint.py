"""The released layout of AuroraCap: LLM at the root, ``visual_encoder/``, ``projector/``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    CLIPImageProcessor,
    CLIPVisionConfig,
    CLIPVisionModel,
)
from transformers.activations import ACT2FN

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.auroracap.model import AuroraCap

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TOWER: Final = "visual_encoder"
PROJECTOR: Final = "projector"
POSITIONS: Final = "embeddings.position_embedding.weight"


class Projector(nn.Module):  # type: ignore[misc] # torch is not followed.
    """Linear layers with an activation between, from the tower's width to the LLM's."""

    def __init__(
        self,
        visual_hidden_size: int,
        llm_hidden_size: int,
        *,
        depth: int = 2,
        hidden_act: str = "gelu",
        bias: bool = True,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Linear(visual_hidden_size, llm_hidden_size, bias=bias)]
        for _ in range(1, depth):
            layers.append(ACT2FN[hidden_act])
            layers.append(nn.Linear(llm_hidden_size, llm_hidden_size, bias=bias))
        self.model = nn.Sequential(*layers)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Shape (..., visual_hidden_size) to (..., llm_hidden_size)."""
        return self.model(features)

    @classmethod
    def from_pretrained(cls, folder: Path) -> Projector:
        """Load the projector that a folder's ``config.json`` and weights describe."""
        config = _read_json(folder / "config.json")
        keys = ("depth", "hidden_act", "bias")
        projector = cls(
            config["visual_hidden_size"],
            config["llm_hidden_size"],
            **{key: config[key] for key in keys if key in config},
        )
        _fill(projector, _read_weights(folder), folder)
        return projector


def load_auroracap(
    pretrained: str,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | str = "auto",
    attn_implementation: str = "sdpa",
) -> AuroraCap:
    """Load AuroraCap from a folder or a hub repository in its released layout.

    ``dtype`` is that of all three networks, ``auto`` the language model's own;
    ``attn_implementation`` is the language model's, the tower's is SDPA.
    """
    folder = local_folder(pretrained)
    # Auto classes return what their types do not say.
    load_llm: Callable[..., Any] = AutoModelForCausalLM.from_pretrained
    load_tokenizer: Callable[..., Any] = AutoTokenizer.from_pretrained
    llm, report = load_llm(
        folder,
        dtype=dtype,
        attn_implementation=attn_implementation,
        device_map={"": device},
        output_loading_info=True,
    )
    _require_whole(folder, report["missing_keys"])
    return AuroraCap(
        llm,
        _load_tower(folder / TOWER).to(device, llm.dtype),
        projector=Projector.from_pretrained(folder / PROJECTOR).to(device, llm.dtype),
        tokenizer=load_tokenizer(folder),
    )


def load_processor(pretrained: str) -> CLIPImageProcessor:
    """Load the processor that turns frames into the tower's pixels.

    It takes their middle square, as the released inference code does; training kept the complete
    frame, its short side at the tower's size (appendix G).
    """
    folder = local_folder(pretrained) / TOWER
    if (folder / "preprocessor_config.json").is_file():
        processor = CLIPImageProcessor.from_pretrained(folder)  # nosec B615
    else:
        size = _read_json(folder / "config.json")["image_size"]
        processor = CLIPImageProcessor(size={"shortest_edge": size}, crop_size=size)
    processor.do_center_crop = True
    return processor


def local_folder(pretrained: str) -> Path:
    """Return the checkpoint's folder, downloaded if it is a repository."""
    folder = Path(pretrained)
    if not folder.is_dir():
        from huggingface_hub import snapshot_download

        # The user's own choice; weights are read as tensors alone, no code of it is run.
        try:
            downloaded = snapshot_download(pretrained)  # nosec B615
        except (OSError, ValueError) as error:
            raise SettingsError(
                f"caption_auroracap: {pretrained} cannot be downloaded, and is no folder here: "
                f"{str(error).splitlines()[0]}; fetch it elsewhere, and give its folder as "
                "pretrained="
            ) from error
        folder = Path(downloaded)
    parts = [folder / "config.json", *(folder / p / "config.json" for p in (TOWER, PROJECTOR))]
    missing = [str(part.relative_to(folder)) for part in parts if not part.is_file()]
    if missing:
        raise SettingsError(
            f"--model_args: expected pretrained={pretrained} to be an AuroraCap checkpoint "
            f"(xtuner's layout), {', '.join(missing)} is missing; "
            "wchai/AuroraCap-7B-VID-xtuner has that layout"
        )
    return folder


def _load_tower(folder: Path) -> nn.Module:
    config = CLIPVisionConfig.from_pretrained(folder, attn_implementation="sdpa")  # nosec B615
    tower = CLIPVisionModel(config)
    given = {_bare(name): tensor for name, tensor in _read_weights(folder).items()}
    # The authors' tower keeps its positions twice; while it trains on wide pictures the embedding
    # itself holds them stretched, ``pos_emb`` as they were learned.
    if "pos_emb" in given:
        given[POSITIONS] = given["pos_emb"]
    names = {name: _bare(name) for name in tower.state_dict()}
    _fill(tower, {name: given[bare] for name, bare in names.items() if bare in given}, folder)
    return tower


def _bare(name: str) -> str:
    """Return a weight's name as transformers 5 has it."""
    return name.removeprefix("vision_model.")


def _read_weights(folder: Path) -> dict[str, torch.Tensor]:
    """Read all weights of a folder, of any file format and number of files."""
    from safetensors.torch import load_file

    files = sorted(folder.glob("model*.safetensors"))
    if files:
        parts = [load_file(path) for path in files]
    else:
        paths = sorted(folder.glob("pytorch_model*.bin"))
        parts = [torch.load(path, map_location="cpu", weights_only=True) for path in paths]
    return {name: tensor for part in parts for name, tensor in part.items()}


def _fill(network: nn.Module, weights: Mapping[str, torch.Tensor], folder: Path) -> None:
    """Set a network's weights; others are ignored."""
    _require_whole(folder, set(network.state_dict()) - set(weights))
    try:
        network.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        raise SettingsError(
            f"--model_args: the weights in {folder} do not fit its config.json: {error}"
        ) from error


def _require_whole(folder: Path, missing: set[str]) -> None:
    """Refuse what transformers would fill with random numbers."""
    if missing:
        raise SettingsError(
            f"--model_args: expected all weights of a network in {folder}, {len(missing)} are "
            f"missing, such as {min(missing)}; is the download complete?"
        )


def _read_json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content
