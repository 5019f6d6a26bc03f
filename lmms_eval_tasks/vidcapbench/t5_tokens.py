"""Number of T5 tokens of a text, with its end of sequence."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.data.hub import hub_errors

TokenCounter = Callable[[str], int]

_SPECIAL: Final = re.compile(r"</s>|<pad>|<unk>|<extra_id_\d{1,2}>")
"""One token each, as in transformers; models write them into captions."""

HUB_REPO: Final = "google/flan-t5-base"
_MODEL: Final = "spiece.model"
_FAST: Final = "tokenizer.json"
_ADVICE: Final = (
    f"set LMMS_CAPTIONS_T5 to a T5 {_MODEL} or a tokenizer folder, such as one made by "
    f"`hf download {HUB_REPO} {_MODEL}`"
)


def token_counter(path: Path | None) -> TokenCounter:
    """Return a function from a text to its number of T5 tokens, >= 1.

    ``path`` is T5's SentencePiece model, its ``tokenizer.json``, or a folder of either; ``None``
    stands for flan-t5-base from the hub.

    Raises:
        DataError: If there is no tokenizer, or it cannot be read; the message says what to do.
    """
    file = _from_hub() if path is None else _file_of(path)
    try:
        return _fast(file) if file.suffix == ".json" else _sentencepiece(file)
    # The tokenizers library raises bare exceptions.
    except Exception as error:
        raise DataError(f"{file} is no T5 tokenizer ({error}); {_ADVICE}") from error


def _file_of(path: Path) -> Path:
    for file in (path, path / _MODEL, path / _FAST):
        if file.is_file():
            return file
    raise DataError(f"LMMS_CAPTIONS_T5: no {_MODEL} or {_FAST} at {path}; {_ADVICE}")


def _from_hub() -> Path:
    from huggingface_hub import hf_hub_download

    try:
        # A word list, which runs nothing, so that no revision is pinned.
        return Path(hf_hub_download(HUB_REPO, _MODEL))  # nosec B615
    except hub_errors() as error:
        message = " ".join(str(error).split())[:200]
        raise DataError(f"{HUB_REPO} cannot be had from the hub: {message}; {_ADVICE}") from error


def _sentencepiece(file: Path) -> TokenCounter:
    # Not transformers' T5Tokenizer(vocab_file=...): version 5 loads a bare model silently wrong.
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_file=str(file))

    def count(text: str) -> int:
        # A special token, or the end, follows each piece.
        pieces = _SPECIAL.split(_encodable(text))
        return sum(len(processor.encode(piece)) + 1 for piece in pieces)

    return count


def _fast(file: Path) -> TokenCounter:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    return lambda text: len(tokenizer.encode(_encodable(text)).ids)


def _encodable(text: str) -> str:
    """Replace lone surrogates, which neither library takes."""
    return text.encode("utf-8", "replace").decode("utf-8")
