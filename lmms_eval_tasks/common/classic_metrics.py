"""CIDEr, BLEU, METEOR and ROUGE-L of captions and reference captions, by pycocoevalcap."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.metrics.captioning import N_STATISTICS, ORDERS, meteor, summed

if TYPE_CHECKING:
    from pycocoevalcap.meteor.meteor import Meteor

CLASSIC: Final = ("BLEU-1", "BLEU-4", "ROUGE-L", "METEOR", "CIDEr")
"""Metrics in the order of G-VEval's Table 4."""
_FAILURES: Final = (OSError, ValueError, AssertionError, subprocess.SubprocessError)
"""Errors of pycocoevalcap's Java programs."""
_ADVICE: Final = (
    "check that `java -version` works, that 2 GiB of memory are free, and that its package folder "
    "can be written"
)
_METEOR_LOCK: Final = threading.Lock()
_MOST_S: Final = 120.0
"""Seconds that METEOR may take for one caption. It takes a few for 3,000 words, and never ends for
a long caption that repeats itself."""
_START_S: Final = 900.0
"""Seconds that its Java program may take to start on a busy machine."""


def require_java() -> None:
    """Raise :class:`DataError` if there is no Java runtime on the path."""
    if shutil.which("java") is None:
        raise DataError(
            "BLEU, ROUGE-L, METEOR and CIDEr need Java for the PTB tokenizer and METEOR, and there "
            "is no `java` on the path; install a Java runtime, for example with "
            "`apt install default-jre-headless`"
        )


def ptb_words(texts: Sequence[str]) -> list[str]:
    """Return each text's words in lower case between single spaces, by the PTB tokenizer.

    Raises:
        DataError: If there is no Java, or it fails.
    """
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    require_java()
    # The tokenizer takes one text a line: another line break would shift all that follow.
    lines = {
        str(index): [{"caption": " ".join(whole(text).split())}] for index, text in enumerate(texts)
    }
    if not lines:
        return []
    try:
        words = PTBTokenizer().tokenize(lines)
        return [words[index][0] for index in lines]
    except (*_FAILURES, KeyError) as error:
        raise DataError(
            f"the PTB tokenizer of pycocoevalcap failed: {error!r}; {_ADVICE}"
        ) from error


def bleu_counts(candidate: str, references: Sequence[str]) -> tuple[int, ...]:
    """Return the counts that :func:`metrics.captioning.bleu` sums: lengths, n-grams, matches.

    All texts are words between single spaces; the reference nearest in length gives the length.
    """
    from pycocoevalcap.bleu.bleu_scorer import cook_refs, cook_test

    cooked = cook_test(candidate, cook_refs(list(references), n=ORDERS), eff="closest", n=ORDERS)
    return (cooked["testlen"], cooked["reflen"], *cooked["guess"], *cooked["correct"])


def rouge_of_words(candidate: str, references: Sequence[str]) -> float:
    """Return ROUGE-L (beta 1.2) in [0, 1] of words between single spaces; 0 without words."""
    from pycocoevalcap.rouge.rouge import Rouge

    if not candidate or not any(references):
        return 0.0
    return float(Rouge().calc_score([candidate], list(references)))


def cider_of_words(
    candidates: Mapping[str, str], references: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """Return the CIDEr of some candidates, in [0, 10], by item.

    All texts are words between single spaces. The frequency of an n-gram is counted over the
    references of all items, whatever is scored.
    """
    from pycocoevalcap.cider.cider_scorer import CiderScorer

    scorer = CiderScorer(n=4, sigma=6.0)
    others = [item for item in references if item not in candidates]
    # It counts the items with references, and scores as many as there are candidates.
    for item in (*candidates, *others):
        scorer.cook_append(candidates.get(item, ""), list(references[item]))
    scorer.compute_doc_freq()
    scorer.ctest = scorer.ctest[: len(candidates)]
    return dict(zip(candidates, map(float, scorer.compute_cider()), strict=True))


def meteor_statistics(
    candidates: Sequence[str], references: Sequence[Sequence[str]]
) -> list[tuple[float, ...]]:
    """Return the statistics that :func:`metrics.captioning.meteor` sums.

    Texts are words between single spaces.

    Raises:
        DataError: If there is no Java, or it fails.
    """
    require_java()
    with _METEOR_LOCK:
        try:
            return [
                _statistics(_meteor(os.getpid()), candidate, of_item)
                for candidate, of_item in zip(candidates, references, strict=True)
            ]
        except _FAILURES as error:
            _meteor.cache_clear()
            raise DataError(f"METEOR of pycocoevalcap failed: {error!r}; {_ADVICE}") from error


def classic_scores(
    candidates: Sequence[str], references: Sequence[Sequence[str]]
) -> dict[str, list[float]]:
    """Return the score of every candidate against its references, at least one, by metric.

    Texts are split into words by the PTB tokenizer; CIDEr weighs words by the items given.

    Returns:
        Metric of ``CLASSIC`` to shape (n_items,): in [0, 1], CIDEr in [0, 10].

    Raises:
        DataError: If there is no Java, or a Java program of pycocoevalcap fails.
    """
    from pycocoevalcap.bleu.bleu import Bleu

    words = ptb_words([*candidates, *(text for of_item in references for text in of_item)])
    own, rest = words[: len(candidates)], iter(words[len(candidates) :])
    others = [[next(rest) for _ in of_item] for of_item in references]
    by_name = {str(index): of_item for index, of_item in enumerate(others)}
    listed = {name: [text] for name, text in zip(by_name, own, strict=True)}
    ciders = cider_of_words(dict(zip(by_name, own, strict=True)), by_name)
    bleus = Bleu(4).compute_score(by_name, listed, verbose=0)[1] if listed else [[]] * 4
    return {
        "BLEU-1": [float(value) for value in bleus[0]],
        "BLEU-4": [float(value) for value in bleus[3]],
        "ROUGE-L": [rouge_of_words(text, of) for text, of in zip(own, others, strict=True)],
        "METEOR": [meteor(counts) for counts in meteor_statistics(own, others)],
        "CIDEr": list(ciders.values()),
    }


@cache
def _meteor(_pid: int) -> Meteor:
    """Return METEOR's Java process; a forked child gets its own."""
    from pycocoevalcap.meteor.meteor import Meteor

    meteor_process = Meteor()
    atexit.register(_end, meteor_process)
    _within(_START_S, meteor_process, "a", ["a"])
    return meteor_process


def _statistics(process: Meteor, candidate: str, references: Sequence[str]) -> tuple[float, ...]:
    # Three bars separate the texts of a request; pycocoevalcap takes only these out.
    texts = [" ".join(text.replace("|||", "").split()) for text in (candidate, *references)]
    line = _within(_MOST_S, process, texts[0], texts[1:])
    numbers = tuple(map(float, line.split()))
    if len(numbers) != N_STATISTICS:
        raise ValueError(f"expected {N_STATISTICS} numbers for a caption, got {line!r:.80}")
    return summed(numbers)


def _within(most_s: float, process: Meteor, candidate: str, references: Sequence[str]) -> str:
    """Return METEOR's answer about a caption; kill it if that takes too long."""
    watchdog = threading.Timer(most_s, process.meteor_p.kill)
    watchdog.start()
    try:
        line = str(process._stat(candidate, list(references)))
    finally:
        is_in_time = watchdog.is_alive()
        watchdog.cancel()
    if not line and not is_in_time:
        raise ValueError(
            f"it took more than {most_s:g} s for a caption of {len(candidate.split()):,} words, "
            f"{candidate!r:.60}..."
        )
    return line


def _end(process: Meteor) -> None:
    for pipe in (process.meteor_p.stdin, process.meteor_p.stdout, process.meteor_p.stderr):
        pipe.close()
    process.meteor_p.kill()
    process.meteor_p.wait()
