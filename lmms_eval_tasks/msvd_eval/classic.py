"""BLEU, ROUGE-L, METEOR and CIDEr of candidate captions, as pycocoevalcap computes them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pycocoevalcap.meteor.meteor import Meteor

    from lmms_eval_captions.lmms_eval_tasks.msvd_eval.data import Item

CLASSIC: Final = ("BLEU-1", "BLEU-4", "ROUGE-L", "METEOR", "CIDEr")
"""What is computed, in the order of the paper's Table 4."""


def classic_scores(items: Sequence[Item]) -> dict[str, list[float]]:
    """Score of every item's candidate against its references, by metric.

    Texts are split into words by the PTB tokenizer; CIDEr weighs words by the items given.

    Returns:
        Metric of ``CLASSIC`` to shape (n_items,): in [0, 1], CIDEr in [0, 10].

    Raises:
        DataError: If there is no Java, or a Java program of pycocoevalcap fails.
    """
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    if shutil.which("java") is None:
        raise DataError(
            "BLEU, ROUGE-L, METEOR and CIDEr need Java for the PTB tokenizer and METEOR, and there "
            "is no `java` on the path; install a Java runtime, for example with "
            "`apt install default-jre-headless`"
        )
    try:
        tokenizer = PTBTokenizer()
        references = tokenizer.tokenize(
            {item.video_id: [{"caption": text} for text in item.references] for item in items}
        )
        candidates = tokenizer.tokenize(
            {item.video_id: [{"caption": item.candidate}] for item in items}
        )
        bleu = Bleu(4).compute_score(references, candidates, verbose=0)[1]
        with _meteor() as meteor:
            meteors = meteor.compute_score(references, candidates)[1]
        scores = {
            "BLEU-1": bleu[0],
            "BLEU-4": bleu[3],
            "ROUGE-L": Rouge().compute_score(references, candidates)[1],
            "METEOR": meteors,
            "CIDEr": Cider().compute_score(references, candidates)[1],
        }
    except (OSError, ValueError, AssertionError, subprocess.SubprocessError) as error:
        raise DataError(
            f"a Java program of pycocoevalcap failed: {error!r}; check that `java -version` works, "
            "that 2 GiB of memory are free, and that its package folder can be written"
        ) from error
    return {metric: [float(value) for value in scores[metric]] for metric in CLASSIC}


@contextmanager
def _meteor() -> Iterator[Meteor]:
    """METEOR's Java process, ended with all its pipes."""
    from pycocoevalcap.meteor.meteor import Meteor

    meteor = Meteor()
    try:
        yield meteor
    finally:
        for pipe in (meteor.meteor_p.stdout, meteor.meteor_p.stderr):
            pipe.close()
        meteor.meteor_p.kill()
        meteor.meteor_p.wait()
