"""T5 token counts equal those of the reference tokenizer."""

from __future__ import annotations

import gzip
import json
from itertools import islice
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.t5_tokens import token_counter


def _real_texts(data: Path) -> list[str]:
    """Some 6,000 questions, answers and captions that people and models wrote."""
    texts: list[str] = []
    for path in sorted((data / "vdc_qa").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            for line in islice(stream, 20):
                for pairs in json.loads(line).values():
                    texts += [text for pair in pairs for text in (pair["question"], pair["answer"])]
    msvd = json.loads((data / "msvd_eval" / "MSVD-Eval.json").read_text(encoding="utf-8"))
    return texts + [reference for video in msvd.values() for reference in video["ref"]]


def test_real_texts_count_as_in_the_reference_tokenizer(shared_data: Path) -> None:
    """Questions, answers and captions, alone and joined into paragraphs, agree one by one."""
    count = token_counter(shared_data / "t5" / "spiece.model")
    reference = Tokenizer.from_file(str(shared_data / "t5" / "tokenizer.json"))
    texts = _real_texts(shared_data)
    assert len(texts) > 5_000
    texts += [" \n\n".join(texts[n : n + 30]) for n in range(0, len(texts), 30)]
    assert [count(text) for text in texts] == [len(reference.encode(text).ids) for text in texts]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", 1, id="empty"),
        pytest.param("\n", 1, id="newline"),
        pytest.param("   ", 1, id="spaces"),
        pytest.param("a\n\nb  c\t d ", None, id="white-space"),
        pytest.param("👩\u200d👩\u200d👧 🎉⚽", None, id="emoji"),
        pytest.param("一个红色的球。赤いボール", None, id="cjk"),
        pytest.param("كرة حمراء", None, id="arabic"),
        pytest.param("\ufb01ne ½ ＡＢ e\u0301", None, id="normalised"),
        pytest.param("\u200b x\u00a0y\x00z", None, id="invisible"),
        pytest.param("word " * 5_000, 5_001, id="long"),
        pytest.param("</s> A dog </s></s>", 6, id="special"),
        pytest.param("<pad><extra_id_0> dog <unk> </s", None, id="more special"),
    ],
)
def test_odd_texts_count_as_in_the_reference_tokenizer(
    text: str, expected: int | None, shared_data: Path
) -> None:
    """White space, emoji, other scripts and nothing at all agree, too."""
    count = token_counter(shared_data / "t5" / "spiece.model")
    fast = token_counter(shared_data / "t5" / "tokenizer.json")
    reference = Tokenizer.from_file(str(shared_data / "t5" / "tokenizer.json"))
    assert count(text) == fast(text) == len(reference.encode(text).ids)
    assert expected is None or count(text) == expected


@pytest.mark.parametrize("name", ["spiece.model", "tokenizer.json", "nothing"])
def test_what_is_no_tokenizer_is_told(name: str, tmp_path: Path) -> None:
    """A missing or broken file is an error with the path and what to do."""
    if name != "nothing":
        (tmp_path / name).write_text("{}")
    with pytest.raises(DataError, match="set LMMS_CAPTIONS_T5") as caught:
        token_counter(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


def test_without_a_path_the_hub_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """flan-t5-base comes from the hub; where that cannot be reached, the error says so."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(DataError, match=r"google/flan-t5-base cannot be had"):
        token_counter(None)
