"""How much of a judge's prompts can be shared, as the papers print them and constant first.

Nothing is asked. For every prompt that a task asks its judge with: the share of its tokens that an
earlier prompt began with, too, about the same caption or, where it is constant, about any. It is
what a server that caches prefixes need not read again if its cache holds a caption until its last
question; what it finds on real hardware is told by ``prefixes.py server``.

    LMMS_CAPTIONS_DATA=DATA python benchmarks/prefixes.py shares --tokenizer t5/tokenizer.json

Questions are those below ``LMMS_CAPTIONS_DATA``; of benchmarks that are not there those of the
built-in sample, which has few questions about each caption, so that less is shared. Captions are
made of the gold answers (VDC, about 170 words) or of filler of a typical length. Pictures follow
the text and are not counted; nor is what the model's chat template puts around it.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from judging import made_caption
from lmms_eval_captions.judges.endpoint.answers.tokens import CHARS_PER_TOKEN
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import (
    PROMPT_ORDERS,
    SAMPLE,
    DataSettings,
    PromptOrder,
    read_data_settings,
    read_judge_settings,
)
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Doc, Task
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.counting import CaptionedDocument
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.prompts_asked import (
    in_order,
    prompts_asked,
)
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.shared_prefix import (
    BLOCK,
    SharedPrefix,
    shared_prefix,
)
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks

_FILLER: Final = "A person in a red coat walks a dog along a quiet road. "
Count = Callable[[Sequence[Sequence[str]]], SharedPrefix]
"""From the prompts about each caption to what they share."""


@dataclass(frozen=True, slots=True)
class Row:
    """One prompt in both orders."""

    is_sample: bool
    n_captions: int
    shares: Mapping[PromptOrder, SharedPrefix]

    def add(self, other: Row) -> Row:
        """The row of both tasks together."""
        shares = {order: self.shares[order] + other.shares[order] for order in PROMPT_ORDERS}
        return Row(self.is_sample, self.n_captions + other.n_captions, shares)

    def text(self, name: str) -> str:
        """A line of the table."""
        paper, first = (self.shares[order] for order in PROMPT_ORDERS)
        data = "sample" if self.is_sample else "real"
        return (
            f"| `{name}` | {data} | {self.n_captions:,} | {paper.n_prompts / self.n_captions:.1f} "
            f"| {paper.n_tokens / paper.n_prompts:,.0f} | {paper.share_constant:.1%} "
            f"| {paper.share:.1%} | {first.share:.1%} "
            f"| {paper.share_in_blocks:.1%} | {first.share_in_blocks:.1%} |"
        )


def main(argv: Sequence[str]) -> int:
    """Count and print a table."""
    parser = argparse.ArgumentParser("prefixes.py shares", description=__doc__.splitlines()[0])
    parser.add_argument("--captions", type=int, default=100, help="of each task, at most")
    parser.add_argument(
        "--tokenizer",
        type=Path,
        help=f"a tokenizer.json; without, {CHARS_PER_TOKEN:g} characters are a token",
    )
    arguments = parser.parse_args(argv)
    count = _counter(arguments.tokenizer)
    print(
        f"tokens: {arguments.tokenizer or f'{CHARS_PER_TOKEN:g} characters each'}; at most "
        f"{arguments.captions} captions of each task; blocks of {BLOCK} tokens\n\n"
        "| prompt | questions | captions | prompts per caption | tokens per prompt | constant "
        "beginning, as printed | shared, as printed | shared, constant first | in blocks, as "
        "printed | in blocks, constant first |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    for name, row in _rows(arguments.captions, count).items():
        print(row.text(name), flush=True)
    return 0


def _rows(n_captions: int, count: Count) -> dict[str, Row]:
    """Name of each prompt to its row, over all tasks of the benchmark that asks it first."""
    rows: dict[str, Row] = {}
    with tempfile.TemporaryDirectory() as folder:
        here = read_data_settings()
        sample = replace(here, data=str(sample_root(Path(folder))))
        for benchmark in all_benchmarks().values():
            if benchmark.measure is not None:
                continue
            of_benchmark: dict[str, Row] = {}
            for task in benchmark.tasks.values():
                for name, row in _task_rows(benchmark, task, here, sample, n_captions, count):
                    known = of_benchmark.get(name)
                    of_benchmark[name] = row if known is None else known.add(row)
            rows = {**of_benchmark, **rows}
    return dict(sorted(rows.items()))


def _task_rows(
    benchmark: Benchmark[Any, Any],
    task: Task,
    here: DataSettings,
    sample: DataSettings,
    n_captions: int,
    count: Count,
) -> Iterator[tuple[str, Row]]:
    docs, is_sample = _documents(benchmark, task, here, sample)
    captioned = [_captioned(benchmark, task, doc) for doc in docs[:n_captions]]
    config = benchmark.judge_config(read_judge_settings())
    asked = {
        order: prompts_asked(captioned, in_order(config, order), task.judge_prompts)
        for order in PROMPT_ORDERS
    }
    for name in asked["paper"]:
        shares = {order: count(asked[order][name]) for order in PROMPT_ORDERS}
        yield name, Row(is_sample, len(captioned), shares)


def _documents(
    benchmark: Benchmark[Any, Any], task: Task, here: DataSettings, sample: DataSettings
) -> tuple[Sequence[Doc], bool]:
    """Documents of a task, and whether they are the sample's."""
    if here.data not in (None, SAMPLE):
        try:
            return benchmark.read(here, task), False
        except DataError:
            pass  # the sample has all of them
    return benchmark.read(sample, task), True


def _captioned(benchmark: Benchmark[Any, Any], task: Task, doc: Doc) -> CaptionedDocument:
    questions = benchmark.questions(doc)
    video = benchmark.video_id(doc)
    if benchmark.name == "vdc" and questions and hasattr(questions[0], "answer"):
        caption = made_caption(str(task.aspect), questions)
    else:
        n_times = task.caption_chars // len(_FILLER) + 1
        caption = f"{video}: {_FILLER * n_times}"[: task.caption_chars]
    unseen = [benchmark.unseen(question) for question in questions]
    return CaptionedDocument(video, caption, unseen, benchmark.ask)


def _counter(path: Path | None) -> Count:
    if path is None:
        return partial(shared_prefix, chars_per_token=CHARS_PER_TOKEN)
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))

    def count(captions: Sequence[Sequence[str]]) -> SharedPrefix:
        encoded = (
            [tuple(each.ids) for each in tokenizer.encode_batch(prompts, add_special_tokens=False)]
            for prompts in captions
        )
        return shared_prefix(encoded)

    return count
