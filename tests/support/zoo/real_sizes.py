"""Positions of real checkpoints, and sizes of their processors, where tiny ones are small.

Only what is said by a checkpoint's own files or by the documentation of transformers; an
architecture that is not here has no such figures in the table.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class RealSizes:
    """A real checkpoint's, where they differ from those of the tiny one."""

    positions: int
    """Tokens that its language model holds."""
    processor: Mapping[str, object] = field(default_factory=dict)
    """Of its ``processor_config.json``."""

    def write_processor(self, tiny: Path, folder: Path) -> Path:
        """The tiny checkpoint's processor with the real sizes, without a model."""
        folder.mkdir(parents=True)
        for file in tiny.iterdir():
            if file.suffix in {".json", ".jinja"}:
                shutil.copy(file, folder)
        path = folder / "processor_config.json"
        path.write_text(json.dumps(_merged(json.loads(path.read_text()), self.processor)))
        return folder


def _merged(old: dict[str, Any], new: Mapping[str, object]) -> dict[str, Any]:
    """Settings of settings one by one, sizes as a whole."""
    return old | {
        name: _merged(old[name], value)
        if isinstance(value, dict) and name.endswith("_processor")
        else value
        for name, value in new.items()
    }


def _square(side: int) -> dict[str, int]:
    return {"height": side, "width": side}


def _area(shortest: int, longest: int) -> dict[str, int]:
    return {"shortest_edge": shortest, "longest_edge": longest}


def _clip(side: int) -> dict[str, object]:
    return {"size": {"shortest_edge": side}, "crop_size": _square(side)}


_QWEN2: Final = {"size": _area(4 * 28 * 28, 16384 * 28 * 28)}
_QWEN3: Final = {
    "image_processor": {"size": _area(256 * 16 * 16, 65536 * 16 * 16)},
    "video_processor": {"size": _area(4096, 98304 * 16 * 16)},
}
_GLM: Final = {
    "image_processor": {"size": _area(112 * 112, 28 * 28 * 12288)},
    "video_processor": {"size": _area(112 * 112, 28 * 28 * 2 * 30000)},
}
_ANYRES: Final = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]
_LLAVA: Final = {"patch_size": 14, "image_processor": _clip(336)}

REAL_SIZES: Final[Mapping[str, RealSizes]] = {
    "qwen2_vl": RealSizes(32_768, {"image_processor": _QWEN2, "video_processor": _QWEN2}),
    "qwen2_5_vl": RealSizes(128_000, {"image_processor": _QWEN2, "video_processor": _QWEN2}),
    "qwen3_vl": RealSizes(262_144, _QWEN3),
    "qwen3_vl_moe": RealSizes(262_144, _QWEN3),
    "qwen3_5": RealSizes(262_144, _QWEN3),
    "qwen3_5_moe": RealSizes(262_144, _QWEN3),
    "glm4v": RealSizes(65_536, _GLM),
    "glm4v_moe": RealSizes(65_536, _GLM),
    "glm46v": RealSizes(131_072, _GLM),
    "video_llama_3": RealSizes(
        32_768, {"video_processor": {"size": _area(128 * 28 * 28, 16384 * 28 * 28)}}
    ),
    "llava_onevision": RealSizes(
        32_768,
        {
            "num_image_tokens": 729,
            "image_processor": {"size": _square(384)},
            "video_processor": {"size": _square(384)},
        },
    ),
    "internvl": RealSizes(
        32_768,
        {
            "image_seq_length": 256,
            "image_processor": {"size": _square(448)},
            "video_processor": {"size": _square(448)},
        },
    ),
    "llava_next_video": RealSizes(
        4_096,
        {
            **_LLAVA,
            "image_processor": {**_clip(336), "image_grid_pinpoints": _ANYRES},
            "video_processor": _clip(336),
        },
    ),
    "video_llava": RealSizes(
        4_096,
        {"patch_size": 14, "image_processor": _clip(224), "video_processor": _clip(224)},
    ),
    "llava": RealSizes(4_096, _LLAVA),
    "vipllava": RealSizes(4_096, _LLAVA),
    "llava_next": RealSizes(
        4_096,
        {**_LLAVA, "image_processor": {**_clip(336), "image_grid_pinpoints": _ANYRES}},
    ),
    "smolvlm": RealSizes(
        8_192,
        {
            "image_seq_len": 81,
            "image_processor": {
                "size": {"longest_edge": 4 * 384},
                "max_image_size": {"longest_edge": 384},
            },
            "video_processor": {
                "size": {"longest_edge": 384},
                "max_image_size": {"longest_edge": 384},
            },
        },
    ),
    "gemma3": RealSizes(
        131_072, {"image_seq_length": 256, "image_processor": {"size": _square(896)}}
    ),
    "pixtral": RealSizes(
        1_024_000,
        {
            "patch_size": 16,
            "image_processor": {"size": {"longest_edge": 1024}, "patch_size": _square(16)},
        },
    ),
    "mistral3": RealSizes(
        131_072,
        {
            "patch_size": 14,
            "image_processor": {"size": {"longest_edge": 1540}, "patch_size": _square(14)},
        },
    ),
    "mllama": RealSizes(131_072, {"image_processor": {"size": _square(560)}}),
    "aria": RealSizes(65_536, {"size_conversion": {490: 128, 980: 256}}),
}
"""By their name in the zoo."""
