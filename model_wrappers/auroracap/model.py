"""AuroraCap: a CLIP tower that merges tokens, a projector, a language model; no lmms-eval here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch
from torch.nn.utils.rnn import pad_sequence

from lmms_eval_captions.model_wrappers.auroracap.token_merging import TokenMerging

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import nn

    from lmms_eval_captions.model_wrappers.caption_jobs import Content

N_UNREAD_LAYERS: Final = 1
"""Layers at the end of the tower whose output is not read."""
SYSTEM: Final = (
    "A chat between a curious user and an artificial intelligence assistant. The assistant gives "
    "helpful, detailed, and polite answers to the user's questions."
)
"""Vicuna's system sentence. AuroraCap was tuned without it; lmms-eval's wrapper sends it."""


def texts_around_frames(
    content: Content, n_frames: Sequence[int], *, system_prompt: bool = False
) -> list[str]:
    """Return the texts before, between and after the frames: one more than there are frames.

    ``USER: <frame> <frame> ... <frame>``, and on a new line ``prompt ASSISTANT:``. A text between
    pictures is on a line of its own.

    Source:
        xtuner's template ``vicuna``, with which AuroraCap was tuned (SEP is a new line).
    """
    texts: list[str] = []
    text = f"{SYSTEM} USER: " if system_prompt else "USER: "
    was_shown = False
    for place, part in enumerate(content):
        text += "" if not place else " " if was_shown and isinstance(part, int) else "\n"
        was_shown = isinstance(part, int)
        if isinstance(part, str):
            text += part
            continue
        texts += [text, *[" "] * (n_frames[part] - 1)]
        text = ""
    return [*texts, f"{text} ASSISTANT:"]


class AuroraCap:
    """The three networks in a row; the tower's layers that are not read are cut off.

    Source:
        AuroraCap (arXiv 2410.03051), section 2.1 and appendix G.
    """

    def __init__(
        self,
        llm: nn.Module,
        tower: nn.Module,
        *,
        projector: nn.Module,
        tokenizer: Any,  # noqa: ANN401 (tokenizers have no common type)
    ) -> None:
        self.llm = llm.eval()
        self.tower = tower.eval()
        self.projector = projector.eval()
        self.tokenizer = tokenizer
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        # Equation 2 counts all layers, whether their output is read or not.
        self._n_layers = int(tower.config.num_hidden_layers)
        # transformers 4 wraps the part that holds the encoder.
        encoder = getattr(tower, "vision_model", tower).encoder
        encoder.layers = encoder.layers[: self._n_layers - N_UNREAD_LAYERS]

    @property
    def device(self) -> torch.device:
        """Device of the networks."""
        return self.llm.device

    def see(self, pixels: torch.Tensor, *, kept_ratio: float) -> list[torch.Tensor]:
        """Return the language model's input for each frame of a clip.

        Args:
            pixels: Shape (n_frames, 3, height, width), normalised, of one clip. Clips are seen one
                by one, so that a batch changes no bit of them.
            kept_ratio: Share of tokens to keep, in [0, 1].
        """
        pixels = pixels.to(self.tower.device, self.tower.dtype)
        with torch.inference_mode(), TokenMerging(self.tower, kept_ratio, n_layers=self._n_layers):
            # If the size is the tower's own, nothing is interpolated.
            seen = self.tower(pixels, interpolate_pos_encoding=True).last_hidden_state
            return list(self.projector(seen[:, 1:]))

    def embed(
        self,
        content: Content,
        clips: Sequence[Sequence[torch.Tensor]],
        *,
        system_prompt: bool = False,
    ) -> torch.Tensor:
        """Return a complete input of the language model, shape (n_tokens, width).

        ``clips`` are the frames of each clip and picture in the question, of :meth:`see`.
        """
        n_frames = [len(frames) for frames in clips]
        pieces = self.pieces(content, n_frames, system_prompt)
        frames = [frame for part in content if isinstance(part, int) for frame in clips[part]]
        embedding = self.llm.get_input_embeddings()
        with torch.inference_mode():
            texts = [embedding(torch.tensor(ids, device=self.device)) for ids in pieces]
            shown = [part for pair in zip(texts, frames, strict=False) for part in pair]
            return torch.cat([*shown, texts[-1]])

    def pieces(
        self, content: Content, n_frames: Sequence[int], system_prompt: bool = False
    ) -> list[list[int]]:
        """Return token ids before, between and after the frames."""
        texts = texts_around_frames(content, n_frames, system_prompt=system_prompt)
        # Parity: each piece is tokenized alone, as in training, though a tokenizer may put another
        # space in front of each.
        return [
            self.tokenizer.encode(text, add_special_tokens=not place)
            for place, text in enumerate(texts)
        ]

    def generate(self, inputs: Sequence[torch.Tensor], **settings: object) -> torch.Tensor:
        """Return new token ids, shape (n_inputs, n_new), padded on the right.

        Inputs are those of :meth:`embed`; shorter ones are padded on the left.
        """
        masks = [torch.ones(len(given), dtype=torch.long, device=self.device) for given in inputs]
        with torch.inference_mode():
            return self.llm.generate(
                inputs_embeds=pad_sequence(list(inputs), batch_first=True, padding_side="left"),
                attention_mask=pad_sequence(masks, batch_first=True, padding_side="left"),
                **settings,
            )
