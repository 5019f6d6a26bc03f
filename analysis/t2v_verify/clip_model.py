"""Similarity of videos, and of videos and captions, by a CLIP model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lmms_eval_captions.judges.errors import SettingsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Embedding = NDArray[np.float64]


class ClipModel:
    """CLIP checkpoint of transformers, which embeds pictures and texts.

    Args:
        name: Folder, or name of a checkpoint on this machine.

    Raises:
        SettingsError: If it cannot be opened as a CLIP model.
    """

    def __init__(self, name: str) -> None:
        import torch
        from transformers import CLIPModel, CLIPProcessor

        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            # Nothing is downloaded.
            model: Any = CLIPModel.from_pretrained(name, local_files_only=True)  # nosec B615
            processor: Any = CLIPProcessor.from_pretrained(name, local_files_only=True)  # nosec B615
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise SettingsError(
                f"--clip {name}: expected a CLIP checkpoint of transformers on this machine, such "
                f"as openai/clip-vit-large-patch14: {error!s:.300}"
            ) from error
        self._processor = processor
        self._model = model.eval().to(self._device)
        self._n_tokens = int(model.config.text_config.max_position_embeddings)
        self.n_cut = 0
        """Captions that were longer than the model reads and were cut."""

    def of_frames(self, frames: NDArray[np.uint8]) -> Embedding:
        """Return the mean embedding, each of length 1, of frames of shape (n, height, width, 3)."""
        inputs = self._processor(images=list(frames), return_tensors="pt")
        rows = self._embedded("get_image_features", inputs)
        return np.asarray(rows.mean(axis=0), dtype=np.float64)

    def of_text(self, text: str) -> Embedding:
        """Return the embedding of a text, of length 1; the text is cut to the model's length."""
        tokens = self._processor.tokenizer(text)["input_ids"]
        self.n_cut += len(tokens) > self._n_tokens
        inputs = self._processor(
            text=[text], return_tensors="pt", truncation=True, max_length=self._n_tokens
        )
        return np.asarray(self._embedded("get_text_features", inputs)[0], dtype=np.float64)

    def _embedded(self, method: str, inputs: Any) -> Embedding:  # noqa: ANN401 - of transformers
        import torch

        with torch.inference_mode():
            made = getattr(self._model, method)(**inputs.to(self._device))
        # From version 5 on transformers returns the embedding with other outputs.
        embedding = made if isinstance(made, torch.Tensor) else made.pooler_output
        rows = embedding.double().cpu().numpy()
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float64)


def cosine(first: Embedding, second: Embedding) -> float:
    """Cosine similarity of two embeddings, in [-1, 1].

    >>> cosine(np.array([1.0, 0.0]), np.array([2.0, 0.0]))
    1.0
    """
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))
