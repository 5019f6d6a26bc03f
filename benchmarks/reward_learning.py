"""Shows that a policy learns by the reward: a tiny captioner, on the CPU, in about a minute.

TRL's GRPOTrainer trains a causal language model of random weights (2 layers, 64 dimensions, a word
a token) to say what is in a clip that its prompt names. Nobody tells it: it has the reward alone,
VDC's of the offline stand-in judge, whose questions ask for an animal, a colour and a place.

    pip install trl
    HF_HUB_OFFLINE=1 python benchmarks/reward_learning.py --seeds 3
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions import CaptionReward

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

FACTS: Final = {
    "animal": ("dog", "cat", "horse", "cow", "bird", "fish", "sheep", "goat"),
    "colour": ("red", "green", "blue", "white", "black", "yellow", "brown", "grey"),
    "place": ("beach", "forest", "kitchen", "street", "garden", "desert", "river", "stable"),
}
"""Attribute to its possible values."""
_CLIPS: Final = tuple(f"clip{number}" for number in range(8))
_PAD: Final = "<pad>"
_END: Final = "<end>"
_N_WORDS: Final = 4
_N_OF_CLIP: Final = 8
_LAST: Final = 10
"""Steps whose mean reward is the one that was reached."""


@dataclass(frozen=True)
class Learning:
    """Learning curve of a policy."""

    rewards: Sequence[float]
    """Mean reward of each step."""
    missing: float
    """Mean share of completions without a verdict."""
    seconds: float

    @property
    def first(self) -> float:
        """Return the first reward."""
        return self.rewards[0]

    @property
    def last(self) -> float:
        """Return the last reward."""
        return fmean(self.rewards[-_LAST:])


def main() -> None:
    """Train with each seed and print."""
    parser = argparse.ArgumentParser(description="Train tiny captioners by the reward.")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100)
    arguments = parser.parse_args()
    print("| seed | reward of the first step | of the last ten | seconds |\n|---|---|---|---|")
    for seed in range(arguments.seeds):
        learned = learn(seed=seed, n_steps=arguments.steps)
        print(
            f"| {seed} | {learned.first:.2f} | {learned.last:.2f} | {learned.seconds:.0f} |",
            flush=True,
        )


def learn(*, seed: int, n_steps: int) -> Learning:
    """Train a policy of random weights.

    Args:
        seed: Of its weights, of what is true of the clips, and of what it tries.
        n_steps: Steps of the optimiser.
    """
    import torch
    from datasets import Dataset
    from transformers import LlamaConfig, LlamaForCausalLM, set_seed
    from trl import GRPOConfig, GRPOTrainer  # type: ignore[attr-defined]  # imported when used

    set_seed(seed)
    tokenizer = _tokenizer()
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.eos_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    ).to(torch.float32)
    started_s = time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        CaptionReward("vdc", judge="lexical", evaluation=None, cache=folder) as reward,
    ):
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=reward,
            processing_class=tokenizer,
            train_dataset=Dataset.from_list(_rows(seed)),
            args=GRPOConfig(
                output_dir=folder,
                max_steps=n_steps,
                per_device_train_batch_size=len(_CLIPS) * _N_OF_CLIP,
                num_generations=_N_OF_CLIP,
                max_completion_length=_N_WORDS,
                learning_rate=3e-3,
                lr_scheduler_type="constant",
                beta=0.0,
                bf16=False,
                use_cpu=True,
                seed=seed,
                logging_steps=1,
                save_strategy="no",
                disable_tqdm=True,
                report_to="none",
                log_level="error",
            ),
        )
        trainer.remove_callback(_printer())
        trainer.train()
    steps: list[dict[str, Any]] = trainer.state.log_history
    rewards = [float(step["reward"]) for step in steps if "reward" in step]
    missing = fmean(float(step["vdc_acc/missing"]) for step in steps if "reward" in step)
    return Learning(rewards, missing, time.perf_counter() - started_s)


def _rows(seed: int) -> list[dict[str, object]]:
    """A prompt for each clip, and what is asked about it."""
    facts = random.Random(seed)  # nosec B311
    return [
        {
            "prompt": f"{clip} shows",
            "clip_id": clip,
            "questions": [
                {"question": f"Which {kind}?", "answer": facts.choice(values)}
                for kind, values in FACTS.items()
            ],
        }
        for clip in _CLIPS
    ]


def _tokenizer() -> PreTrainedTokenizerFast:
    """A word a token."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = [
        _PAD,
        _END,
        "shows",
        *_CLIPS,
        *(word for kind in FACTS.values() for word in kind),
    ]
    vocabulary = {word: place for place, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=_PAD))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=_PAD, eos_token=_END, padding_side="left"
    )


def _printer() -> type:
    from transformers import PrinterCallback

    return PrinterCallback


if __name__ == "__main__":
    main()
