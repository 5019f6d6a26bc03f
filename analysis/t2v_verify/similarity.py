"""Similarity of videos: PSNR, SSIM, and a CLIP model's embeddings of videos and captions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.model_wrappers.video.frames import read_frames

Frames = NDArray[np.uint8]
"""Shape (n, height, width, 3), RGB."""
Embedding = NDArray[np.float64]

_LUMA: Final = (0.299, 0.587, 0.114)
"""BT.601's weights of red, green and blue."""
_MOST_DB: Final = 100.0
"""PSNR of frames that are equal, or nearly so; that of equal ones is infinite, without a mean."""
_WINDOW: Final = 11
"""Width of SSIM's window in pixels; frames must not be smaller."""
_SIGMA: Final = 1.5
_C1: Final = (0.01 * 255) ** 2
_C2: Final = (0.03 * 255) ** 2


def frames_of(path: Path, n_frames: int) -> Frames:
    """Return evenly spaced frames of a video, including its first and last.

    Raises:
        DataError: If it cannot be read, or its frames are smaller than SSIM's window.
    """
    frames = read_frames(path, n_frames).frames
    if min(frames.shape[1:3]) < _WINDOW:
        raise DataError(f"{path}: expected frames of at least {_WINDOW} pixels a side")
    return frames


def likeness(generated: Frames, original: Frames) -> dict[str, float]:
    """Return PSNR (over red, green and blue) and SSIM (of brightness) of a video with its original.

    Frames are matched by their relative position: the first with the first, the last with the
    last. Generated frames are resized to the size of the original's. Frames of a video with fewer
    frames than asked for repeat.
    """
    n_frames = max(len(generated), len(original))
    shown = _resized(_spread(generated, n_frames), original.shape[1], original.shape[2])
    originals = _spread(original, n_frames)
    return {"PSNR": psnr(shown, originals), "SSIM": ssim(shown @ _LUMA, originals @ _LUMA)}


def steadiness(frames: Frames) -> dict[str, float]:
    """Return PSNR and SSIM of adjacent frames of a video; nothing for a single frame.

    Source:
        VidCapBench, section 4.4 ("aesthetic quality and structural integrity, evaluated using
        inter-frame PSNR and SSIM"). It does not say which frames: here adjacent sampled ones.
    """
    if len(frames) < 2:
        return {}
    gray = frames @ _LUMA
    return {
        "inter-frame PSNR": psnr(frames[1:], frames[:-1]),
        "inter-frame SSIM": ssim(gray[1:], gray[:-1]),
    }


def psnr(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Return the peak signal-to-noise ratio in dB of frames in [0, 255], at most 100.

    The squared error is averaged over all frames first, so that one nearly equal frame does not
    outweigh the others. VidCapBench, section 4.4, names PSNR without its formula.

    >>> round(psnr(np.zeros((2, 4, 4)), np.full((2, 4, 4), 25.5)), 6)
    20.0
    """
    mean_square = float(np.mean((first.astype(np.float64) - second) ** 2))
    return min(_MOST_DB, float(10 * np.log10(255**2 / mean_square))) if mean_square else _MOST_DB


def ssim(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Return the structural similarity in [-1, 1] of frames, mean over pixels and frames.

    Both have shape (n_frames, height, width), gray levels in [0, 255], sides >= 11.

    Source:
        Wang et al., Image quality assessment: from error visibility to structural similarity
        (2004), equation 13, without windows that reach over the edge. VidCapBench, section 4.4,
        names no parameters. Deviation: frames are not shrunk first, as in the authors' later code.

    >>> frame = np.arange(144.0).reshape(1, 12, 12)
    >>> round(ssim(frame, frame), 9), ssim(frame, frame[:, ::-1]) < 0
    (1.0, True)
    """
    from scipy.ndimage import gaussian_filter

    def blurred(frames: NDArray[Any]) -> NDArray[Any]:
        edge = _WINDOW // 2
        means = gaussian_filter(frames, _SIGMA, radius=edge, axes=(1, 2))
        return np.asarray(means[:, edge:-edge, edge:-edge])

    x, y = first.astype(np.float64), second.astype(np.float64)
    mean_x, mean_y = blurred(x), blurred(y)
    variances = blurred(x * x) - mean_x**2 + blurred(y * y) - mean_y**2
    covariance = blurred(x * y) - mean_x * mean_y
    above = (2 * mean_x * mean_y + _C1) * (2 * covariance + _C2)
    return float((above / ((mean_x**2 + mean_y**2 + _C1) * (variances + _C2))).mean())


def _spread(frames: Frames, n_frames: int) -> Frames:
    indices = np.round(np.linspace(0, len(frames) - 1, n_frames)).astype(int)
    return np.asarray(frames[indices], dtype=np.uint8)


def _resized(frames: Frames, height: int, width: int) -> Frames:
    if frames.shape[1:3] == (height, width):
        return frames
    import cv2

    is_smaller = height * width < frames.shape[1] * frames.shape[2]
    way = cv2.INTER_AREA if is_smaller else cv2.INTER_CUBIC
    return np.stack(
        [np.asarray(cv2.resize(f, (width, height), interpolation=way), np.uint8) for f in frames]
    )


class ClipModel:
    """CLIP checkpoint of transformers on this machine, which embeds pictures and texts."""

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

    def of_frames(self, frames: Frames) -> Embedding:
        """Return the mean of the frames' embeddings, each of length 1."""
        inputs = self._processor(images=list(frames), return_tensors="pt")
        return np.asarray(self._embedded("get_image_features", inputs).mean(axis=0))

    def of_text(self, text: str) -> Embedding:
        """Return the embedding of a text, of length 1; the text is cut to the model's length."""
        tokens = self._processor.tokenizer(text)["input_ids"]
        self.n_cut += len(tokens) > self._n_tokens
        inputs = self._processor(
            text=[text], return_tensors="pt", truncation=True, max_length=self._n_tokens
        )
        return np.asarray(self._embedded("get_text_features", inputs)[0])

    def _embedded(self, method: str, inputs: Any) -> Embedding:  # noqa: ANN401 - of transformers
        import torch

        with torch.inference_mode():
            made = getattr(self._model, method)(**inputs.to(self._device))
        # From version 5 on transformers returns the embedding with other outputs.
        embedding = made if isinstance(made, torch.Tensor) else made.pooler_output
        rows = embedding.double().cpu().numpy()
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float64)


def cosine(first: Embedding, second: Embedding) -> float:
    """Return the cosine similarity of two embeddings, in [-1, 1].

    >>> cosine(np.array([1.0, 0.0]), np.array([2.0, 0.0]))
    1.0
    """
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))
