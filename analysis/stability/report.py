"""Output of ``stability``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lmms_eval_captions.analysis.stability.split import Split
from lmms_eval_captions.analysis.stability.stability import Document
from lmms_eval_captions.analysis.tables import Part, listed, number, table
from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL


def part_of(found: Document) -> Part:
    """Return the report on a task or a group."""
    sentences = [
        f"{found['n_questions']:,} questions about {found['n_videos']:,} videos, judged by "
        f"{listed(found['judges'])} in {found['n_runs']} judge runs. Intervals are 95%, "
        "over videos."
    ]
    title = f"{found['name']}: questions with the same verdict in all judge runs"
    return Part(title, sentences, list(_tables(found)), found["notes"])


def part_of_split(done: Split) -> Part:
    """Return what was written, and how to use it."""
    fates: dict[str, int] = {}
    for of in done.files.values():
        for fate, n in of.items():
            fates[fate] = fates.get(fate, 0) + n
    why = ", ".join(f"{n:,} {fate}" for fate, n in fates.items())
    rows = [
        [f"{done.benchmark}-{part}", f"LMMS_CAPTIONS_DATA={folder}", f"{done.n_of(part):,}"]
        for part, folder in done.folders.items()
    ]
    return Part(
        f"{done.benchmark}: {sum(fates.values()):,} questions split",
        [f"Questions: {why}."],
        [("", table(["part", "setting", "questions"], rows))],
    )


def split_document(done: Split) -> dict[str, Any]:
    """Return a split as JSON."""
    return {
        "benchmark": done.benchmark,
        "folders": {part: str(folder) for part, folder in done.folders.items()},
        "n_questions": {part: done.n_of(part) for part in done.folders},
        "files": {name: dict(of) for name, of in done.files.items()},
    }


def _tables(found: Document) -> Iterator[tuple[str, Any]]:
    captioners = found["captioners"]
    overall = found["same_verdict"][0]
    shares = dict(overall["captioners"])
    if len(captioners) > 1:
        shares[f"all {len(captioners)} captioners"] = overall["all_captioners"]
    rows = [
        [
            name, _percent(of), _ends(of), f"{of['n_known']:,}",
            f"{overall['n_questions'] - of['n_known']:,}",
        ]
        for name, of in shares.items()
    ]  # fmt: skip
    yield "", table(["captioner", "same, %", "interval", "questions", "not known"], rows)
    yield from _sections(found)
    if found["consistent_times"] and any(of["n_questions"] for of in found["consistent_times"]):
        times = [
            [str(of["captioners"]), f"{of['n_questions']:,}", f"{of['proportion']:.0f}%"]
            for of in found["consistent_times"]
        ]
        total = sum(of["n_questions"] for of in found["consistent_times"])
        title = "Questions by the number of captioners with a stable verdict (VidCapBench, Table 8)"
        header = ["Consistent Times", "# Samples", "Proportion"]
        yield title, table(header, [*times, ["Total", f"{total:,}", "100%"]])
    yield from _scores(found)
    if found["noise_floor"]:
        runs = next(iter(found["noise_floor"].values()))["runs"]
        rows = [
            [metric, *(number(x) for x in of["runs"].values()),
             number(of["largest_seen"])]
            for metric, of in found["noise_floor"].items()
        ]  # fmt: skip
        title = "Noise floor: equally good captioners differ by less on the same videos (95%)"
        names = [f"{n} run{'' if n == '1' else 's'}" for n in runs]
        yield title, table(["metric", *names, "largest seen"], rows)


def _sections(found: Document) -> Iterator[tuple[str, Any]]:
    captioners = found["captioners"]
    names = captioners if len(captioners) == 1 else [*captioners, "all"]
    rows = [row for row in found["same_verdict"] if row["section"] != ALL[0]]
    for section in dict.fromkeys(row["section"] for row in rows):
        cells = []
        for row in (row for row in rows if row["section"] == section):
            shares = list(row["captioners"].values())
            if len(captioners) > 1:
                shares.append(row["all_captioners"])
            line = [row["group"], *map(_percent, shares), _ends(shares[-1])]
            cells.append([*line, f"{row['n_questions']:,}"])
        more = found["groups_left_out"].get(section, 0)
        title = f"By {section.replace('_', ' ')}, %{f' ({more:,} more groups)' if more else ''}"
        header = [section.replace("_", " "), *names, f"interval of {names[-1]}", "questions"]
        yield title, table(header, cells)


def _scores(found: Document) -> Iterator[tuple[str, Any]]:
    metrics = list(dict.fromkeys(of["metric"] for of in found["scores"]))
    if not metrics:
        return
    rows = []
    for captioner in found["captioners"]:
        own = [of for of in found["scores"] if of["captioner"] == captioner]
        for place, which in enumerate(("full", "stable")):
            values = [number(of[which]) for of in own]
            rows.append(["" if place else captioner, which, *values])
    title = "Scores over all questions and over the stable ones (VidCapBench, Table 2)"
    yield title, table(["captioner", "questions", *metrics], rows)


def _percent(share: Document) -> str:
    return number(share["percent"], 1)


def _ends(share: Document) -> str:
    low, high = share["low"], share["high"]
    return "-" if low is None or high is None else f"[{low:.1f}, {high:.1f}]"
