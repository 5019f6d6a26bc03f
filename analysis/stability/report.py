"""Output of ``stability``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pandas as pd

from lmms_eval_captions.analysis.stability.stability import NOISE_RUNS, Document
from lmms_eval_captions.analysis.tables import Part, listed, number, plural, table


def part_of(found: Document) -> Part:
    """Return the report on a task or a group."""
    sentences = [
        f"{found['n_questions']:,} questions about {found['n_videos']:,} videos, judged by "
        f"{listed(found['judges'])} in {found['n_runs']} judge runs. Intervals are 95%, "
        "over videos."
    ]
    title = f"{found['name']}: questions with the same verdict in all judge runs"
    return Part(title, sentences, list(_tables(found)), found["notes"])


def part_of_split(done: Document) -> Part:
    """Return what was written, and how to use it."""
    name, fates = done["benchmark"], Counter[str]()
    for counts in done["files"].values():
        fates.update(counts)
    rows = [
        [f"{name}-{part}", f"LMMS_CAPTIONS_DATA={folder}", done["n_questions"][part]]
        for part, folder in done["folders"].items()
    ]
    return Part(
        f"{name}: {fates.total():,} questions split",
        [f"Questions: {', '.join(f'{n:,} {fate}' for fate, n in fates.items())}."],
        [("", table(["part", "setting", "questions"], rows))],
    )


def _tables(found: Document) -> Iterator[tuple[str, pd.DataFrame]]:
    captioners, (overall, *groups) = found["captioners"], found["same_verdict"]
    has_several = len(captioners) > 1
    shares = dict(overall["captioners"])
    if has_several:
        shares[f"all {len(captioners)} captioners"] = overall["all_captioners"]
    rows = [
        [
            name, number(of["percent"], 1), _ends(of), of["n_known"],
            overall["n_questions"] - of["n_known"],
        ]
        for name, of in shares.items()
    ]  # fmt: skip
    yield "", table(["captioner", "same, %", "interval", "questions", "not known"], rows)
    names = [*captioners, "all"] if has_several else captioners
    for section in dict.fromkeys(row["section"] for row in groups):
        cells = []
        for row in (row for row in groups if row["section"] == section):
            of_row = [*row["captioners"].values(), *([row["all_captioners"]] * has_several)]
            percents = [number(of["percent"], 1) for of in of_row]
            cells.append([row["group"], *percents, _ends(of_row[-1]), row["n_questions"]])
        more, what = found["groups_left_out"].get(section, 0), section.replace("_", " ")
        title = f"By {what}, %{f' ({more:,} more groups)' if more else ''}"
        yield title, table([what, *names, f"interval of {names[-1]}", "questions"], cells)
    times = found["consistent_times"]
    total = sum(of["n_questions"] for of in times)
    if total:
        cells = [[of["captioners"], of["n_questions"], f"{of['proportion']:.0f}%"] for of in times]
        title = "Questions by the number of captioners with a stable verdict (VidCapBench, Table 8)"
        header = ["Consistent Times", "# Samples", "Proportion"]
        yield title, table(header, [*cells, ["Total", total, "100%"]])
    yield from _scores(found)
    if found["noise_floor"]:
        floors = found["noise_floor"].items()
        rows = [[metric, *of["runs"].values(), of["largest_seen"]] for metric, of in floors]
        title = "Noise floor: equally good captioners differ by less on the same videos (95%)"
        names = [plural(n, "run") for n in NOISE_RUNS]
        yield title, table(["metric", *names, "largest seen"], rows)


def _scores(found: Document) -> Iterator[tuple[str, pd.DataFrame]]:
    metrics = list(dict.fromkeys(of["metric"] for of in found["scores"]))
    rows = [
        [name, which, *(of[which] for of in found["scores"] if of["captioner"] == captioner)]
        for captioner in found["captioners"]
        for which, name in (("full", captioner), ("stable", ""))
    ]
    if metrics:
        title = "Scores over all questions and over the stable ones (VidCapBench, Table 2)"
        yield title, table(["captioner", "questions", *metrics], rows)


def _ends(share: Document) -> str:
    low, high = share["low"], share["high"]
    return "-" if low is None or high is None else f"[{low:.1f}, {high:.1f}]"
