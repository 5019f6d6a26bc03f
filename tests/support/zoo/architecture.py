"""Architecture of the zoo."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from zoo.recipes import chat_about_images

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from transformers import BatchFeature

    from zoo.recipes import Shown


@dataclass(frozen=True, slots=True)
class Architecture:
    """A model of transformers that captions, made tiny, and how its documentation asks it."""

    write: Callable[..., Path]
    """Writes a checkpoint of random weights into a folder, which it returns; keywords change the
    configuration of its language model."""
    model: str
    """Class of transformers that its documentation loads."""
    example: str
    """A real checkpoint, by its name on the hub."""
    recipe: Callable[[Any, Shown, str], BatchFeature]
    """Inputs for what is shown and asked, as the documentation of transformers makes them."""
    picture_recipe: Callable[[Any, Shown, str], BatchFeature] = chat_about_images
    """The same for one picture, of models whose processor takes videos."""
    shown: Literal["video", "images"] = "video"
    repeats_prompt: bool = True
    load: Callable[[Path], Any] | None = None
    """Loads the model where its documentation does more than ``model.from_pretrained``."""
    needs: tuple[str, ...] = ()
    """Packages that its processor or model imports, and transformers does not bring."""
    arguments: Mapping[str, object] = field(default_factory=dict)
    """``--model_args`` of ``caption_hf`` that its real checkpoints need, too."""

    def documented(self, folder: Path) -> Callable[[Shown, str, int], str]:
        """Greedy captions of so many tokens, with no code of ours between frames and text."""
        import torch

        hf: Any = importlib.import_module("transformers")
        processor = hf.AutoProcessor.from_pretrained(folder)
        model = (self.load or getattr(hf, self.model).from_pretrained)(folder)

        def caption(shown: Shown, prompt: str, max_new_tokens: int) -> str:
            is_picture = shown.is_picture and self.shown == "video"
            recipe = self.picture_recipe if is_picture else self.recipe
            inputs = recipe(processor, shown, prompt).to(model.device, dtype=model.dtype)
            with torch.inference_mode():
                written = model.generate(**inputs, max_new_tokens=max_new_tokens, do_sample=False)
            if self.repeats_prompt:
                written = written[:, inputs["input_ids"].shape[1] :]
            return str(processor.batch_decode(written, skip_special_tokens=True)[0])

        return caption
