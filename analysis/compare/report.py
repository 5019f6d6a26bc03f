"""What ``compare`` prints: tables, and what they say in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from typing import Final

from lmms_eval_captions.analysis.compare.comparison import Compared, Pair
from lmms_eval_captions.analysis.compare.flips import Flips
from lmms_eval_captions.analysis.compare.gate import Decided
from lmms_eval_captions.analysis.compare.lead import Lead
from lmms_eval_captions.analysis.compare.moved import Moved
from lmms_eval_captions.analysis.compare.rows import Contrast, Row
from lmms_eval_captions.lmms_eval_tasks.benchmark import Metric
from lmms_eval_captions.lmms_eval_tasks.table_formats import Part, Table
from lmms_eval_captions.metrics.intervals import Interval
from lmms_eval_captions.metrics.paired import Difference, videos_to_settle

_NONE: Final = "-"
_MOST_NAME: Final = 34
"""Characters of the name of a video or a group in a table."""
_MOST_HEADING: Final = 13
"""Characters of a captioner's name over a column of numbers."""
_TIED: Final = "tied"


def part_of(compared: Compared, names: Sequence[str]) -> Part:
    """What is said of one task or group.

    Args:
        compared: It.
        names: Of the captioners.
    """
    left_out = compared.counts.words()
    counts = compared.counts
    sentences = [
        *(f"WARNING: {warning}" for warning in compared.warnings),
        *summaries(compared, names),
        f"{_judged(compared)}. Compared on {counts.n_questions:,} questions about "
        f"{counts.n_videos:,} videos that all have a verdict on"
        f"{f'; left out: {left_out}' if left_out else ''}.",
    ]
    tables = [
        *([_overall(compared, names)] if compared.overall else []),
        *(
            table
            for section in compared.sections
            for table in _section_tables(compared, section, names)
        ),
        *(table for pair in compared.pairs for table in _pair_tables(compared, pair, names)),
        _lengths(compared, names),
    ]
    title = f"{compared.name}: {_listed(names[1:])} against {names[0]}"
    return Part(title, sentences, tables, list(_remarks(compared, names)))


def _judged(compared: Compared) -> str:
    if compared.benchmark.measure is not None:
        return "Measured without a judge"
    return f"Judged by {compared.judge}"


def summaries(compared: Compared, names: Sequence[str]) -> list[str]:
    """Of three or more which is best; of each but the first whether it is better, and where."""
    headline = compared.benchmark.headline
    row = next((row for row in compared.overall if row.metric == headline), None)
    if row is None:
        return []
    return [
        *([] if compared.lead is None else [_best(compared, compared.lead, names)]),
        *(
            _summary(compared, names[0], names[place], place, contrast)
            for place, contrast in enumerate(row.contrasts, start=1)
        ),
    ]


def overview(compared: Sequence[Compared], names: Sequence[str], left_out: Sequence[str]) -> Part:
    """What all of it says, a sentence for each task or group and captioner."""
    sentences = [sentence for one in compared for sentence in summaries(one, names)]
    return Part(
        f"{_listed(names[1:])} against {names[0]}",
        [*sentences, *(f"Left out: {words}." for words in left_out)],
    )


def gate_part(decided: Sequence[Decided], names: Sequence[str]) -> Part:
    """What the gates say."""
    return Part("Gates", [gate_sentence(one, names) for one in decided])


def gate_sentence(one: Decided, names: Sequence[str]) -> str:
    """What a gate says of a captioner, and how many videos would settle it."""
    found = one.difference
    words = (
        f"{one.decision}: {one.gate.text} on {one.name}, {names[one.other]} less {names[0]}: "
        f"{_difference(found)}"
    )
    if one.left_out:
        words = f"{words} (left out: {one.left_out})"
    if one.why:
        return f"{words}; these numbers decide nothing: {one.why}"
    if one.decision != "INCONCLUSIVE":
        return f"{words}."
    if one.n_videos is None:
        return f"{words}: {found.note or 'that cannot be settled by more videos'}."
    return (
        f"{words}: the interval holds the bound. About {one.n_videos:,} videos like these "
        f"(now {found.n_videos:,}) would settle it, were the difference what it seems now."
    )


def _summary(compared: Compared, first: str, other: str, place: int, contrast: Contrast) -> str:
    metric = compared.benchmark.metrics[compared.benchmark.headline]
    found = contrast.difference
    number = f"{_difference(found, metric)}{_p_words(contrast.p_value)}"
    what = f"on {compared.benchmark.headline} of {compared.name}"
    where = _where(compared, place)
    if contrast.outcome == _TIED:
        n_videos = videos_to_settle(found)
        needed = (
            f" About {n_videos:,} videos like these (now {found.n_videos:,}) would tell a "
            "difference of this size from none."
            if n_videos is not None and n_videos > found.n_videos
            else ""
        )
        return (
            f"{other} and {first} are tied {what}: {number}; which is better cannot be told "
            f"from these videos{where}.{needed}"
        )
    if contrast.outcome == "unknown":
        return f"Nothing can be said of {other} and {first} {what}: {number}; {found.note}."
    return f"{other} is {contrast.outcome} than {first} {what}: {number}{where}."


def _best(compared: Compared, lead: Lead, names: Sequence[str]) -> str:
    """Which of the captioners is best; where that is not sure, which of the others may be."""
    metric = compared.benchmark.metrics[compared.benchmark.headline]
    what = f"on {compared.benchmark.headline} of {compared.name}"
    first, n_all = names[lead.first], len(names)
    unsure = [ahead for ahead in lead.over if not ahead.is_real]
    nearest = (unsure or lead.over)[0]
    number = f"{_difference(nearest.difference, metric)}{_p_words(nearest.p_value)}"
    pairs = f"over all pairs of the {n_all}, as the leader is chosen by its number"
    said = f"{first} less {names[nearest.other]} is {number} (Holm's {pairs})"
    if not unsure:
        return f"Best of the {n_all} is {first} {what}, ahead of each of the others: {said}."
    others = _listed([names[ahead.other] for ahead in unsure])
    return (
        f"Which of the {n_all} is best {what} is not certain: {first} leads, and {others} may be "
        f"as good: {said}."
    )


def _where(compared: Compared, place: int) -> str:
    """In how many groups of the section shown a captioner is better, worse and tied."""
    told = []
    for section, rows in compared.sections.items():
        outcomes = [
            row.contrasts[place - 1].outcome
            for row in rows
            if row.metric == compared.benchmark.headline
        ]
        numbers = [
            f"{word} in {outcomes.count(word)}"
            for word in ("better", "worse", "tied", "unknown")
            if word in outcomes
        ]
        told.append(f"{', '.join(numbers)} of {len(outcomes)} {_plain(section)}")
    return f"; {'; '.join(told)}" if told else ""


def _overall(compared: Compared, names: Sequence[str]) -> Table:
    """A row for each captioner under each metric."""
    header = ["metric", "captioner", "value [95%]", "difference [95%]", "p", "result"]
    rows = []
    for row in compared.overall:
        metric = compared.benchmark.metrics[row.metric]
        for place, value in enumerate(row.values):
            contrast = row.contrasts[place - 1] if place else None
            rows.append(
                [
                    _metric_name(row.metric, metric) if not place else "",
                    names[place],
                    _value(value),
                    _difference(contrast.difference) if contrast else "",
                    _p(contrast.p_value) if contrast else "",
                    contrast.outcome if contrast else "",
                ]
            )
    return Table(header, rows, n_left=2)


def _section_tables(compared: Compared, section: str, names: Sequence[str]) -> Iterator[Table]:
    """The headline in each group, a table for each captioner but the first."""
    headline = compared.benchmark.headline
    rows = [row for row in compared.sections[section] if row.metric == headline]
    n_left_out = compared.n_left_out.get(section, 0)
    beyond = f"; the {len(rows)} largest, {n_left_out:,} more are not shown" if n_left_out else ""
    for place in range(1, len(names)):
        yield Table(
            [
                _plain(section),
                "videos",
                *_headings(names, place),
                "difference [95%]",
                "p (Holm)",
                "result",
            ],
            [
                [
                    _cut(row.group[1] if row.group else ""),
                    f"{row.contrasts[place - 1].difference.n_videos:,}",
                    _number(row.values[0].value),
                    _number(row.values[place].value),
                    _difference(row.contrasts[place - 1].difference),
                    _p(row.contrasts[place - 1].p_value),
                    row.contrasts[place - 1].outcome,
                ]
                for row in rows
            ],
            title=f"{headline} by {_plain(section)}: {names[place]} less {names[0]}{beyond}",
        )


def _pair_tables(compared: Compared, pair: Pair, names: Sequence[str]) -> Iterator[Table]:
    first, other = names[0], names[pair.other]
    if pair.flips is not None:
        yield _flips(pair.flips, first, other)
    for moved, what in ((pair.videos, "video"), (pair.groups, "group of questions")):
        if moved:
            yield _moved(moved, what, first, other, compared.benchmark.headline)


def _flips(flips: Flips, first: str, other: str) -> Table:
    n_all = flips.n_gained + flips.n_lost + flips.n_same
    words = (
        (f"higher for {other}", f"higher for {first}", "the same for both")
        if flips.is_graded
        else (
            f"right for {other}, wrong for {first}",
            f"right for {first}, wrong for {other}",
            "right for both, or for neither",
        )
    )
    numbers = (flips.n_gained, flips.n_lost, flips.n_same)
    return Table(
        ["verdicts", "questions", "share"],
        [
            [word, f"{n:,}", f"{n / n_all:.1%}" if n_all else _NONE]
            for word, n in zip(words, numbers, strict=True)
        ],
        title=f"Verdicts that flip, {other} against {first}",
    )


def _moved(rows: Sequence[Moved], what: str, first: str, other: str, headline: str) -> Table:
    return Table(
        [what, "questions", *_headings((first, other), 1), "moves the score by"],
        [
            [
                _cut(row.name if what == "video" else f"{_plain(row.section)}: {row.name}"),
                f"{row.n_questions:,}",
                _number(row.first),
                _number(row.other),
                f"{row.effect:+.3f}",
            ]
            for row in rows
        ],
        title=f"Where {headline} moved most from {first} to {other}, by {what}",
    )


def _lengths(compared: Compared, names: Sequence[str]) -> Table:
    return Table(
        ["captions of", "captions", "without a word", "words on average", "T5 tokens on average"],
        [
            [
                name,
                f"{length.n_captions:,}",
                f"{length.n_empty:,}",
                _NONE if length.words is None else f"{length.words:.1f}",
                _NONE if length.tokens is None else f"{length.tokens:.1f}",
            ]
            for name, length in zip(names, compared.lengths, strict=True)
        ],
        title="How long the captions are",
    )


def _remarks(compared: Compared, names: Sequence[str]) -> Iterator[str]:
    n_others = len(compared.lengths) - 1
    yield (
        "[95%]: interval over videos; questions of a video count as one cluster, differences are "
        "of the same questions."
    )
    if n_others > 1:
        yield (
            f"p: by Holm's correction over the {n_others} captioners of a metric. Captioners are "
            "compared with the first folder's; name another one first to compare with that."
        )
    for section, rows in compared.sections.items():
        n_groups = len({row.group for row in rows})
        over = f" x {n_others} captioners" if n_others > 1 else ""
        yield (
            f"p (Holm): corrected over the {n_groups} {_plain(section)}{over} of a metric; better, "
            "worse and tied are by it. Of so many intervals, one may leave out 0 by chance."
        )
    yield "tied: the difference may be 0; it does not say that captioners are equally good."
    if any(pair.videos or pair.groups for pair in compared.pairs):
        yield (
            "Videos and groups that moved most are picked for having moved: look at them, do not "
            "quote them as found differences."
        )
    notes = dict.fromkeys(
        f"{_row_name(row)}{f', {names[place]}' if n_others > 1 else ''}: {note}"
        for rows in (compared.overall, *compared.sections.values())
        for row in rows
        if row.metric == compared.benchmark.headline
        for place, note in enumerate((c.difference.note for c in row.contrasts), start=1)
        if note
    )
    yield from notes
    missing = [name for name in compared.benchmark.metrics
               if name not in {row.metric for row in compared.overall}]  # fmt: skip
    if missing:
        yield f"{', '.join(missing)}: cannot be computed for all captioners."
    yield from dict.fromkeys(
        f"T5 tokens: {length.tokens_reason}." for length in compared.lengths if length.tokens_reason
    )


def _row_name(row: Row) -> str:
    return row.metric if row.group is None else f"{row.group[1]}"


def _metric_name(name: str, metric: Metric) -> str:
    return name if metric.higher_is_better else f"{name} (lower is better)"


def _value(found: Interval) -> str:
    if found.low is None or found.high is None:
        return _number(found.value)
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _difference(found: Difference, metric: Metric | None = None) -> str:
    """A difference with its interval, and of a percentage its unit."""
    if isnan(found.difference):
        return _NONE
    unit = " points" if metric is not None and metric.highest == 100 else ""
    ends = "" if found.low is None else f" [{found.low:+.2f}, {found.high:+.2f}]"
    return f"{found.difference:+.2f}{unit}{ends}"


def _p(value: float | None) -> str:
    if value is None:
        return _NONE
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"


def _p_words(value: float | None) -> str:
    if value is None:
        return ""
    text = _p(value)
    return f", p {text}" if text[0] == "<" else f", p = {text}"


def _number(value: float) -> str:
    return _NONE if isnan(value) else f"{value:.2f}"


def _listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> _listed(["a"]), _listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _plain(section: str) -> str:
    return section.replace("_", " ")


def _headings(names: Sequence[str], place: int) -> list[str]:
    """The first and another captioner as narrow headings."""
    short = [_cut(name, _MOST_HEADING) for name in (names[0], names[place])]
    return short if short[0] != short[1] else ["first", "other"]


def _cut(name: str, most: int = _MOST_NAME) -> str:
    if len(name) <= most:
        return name
    half = (most - 3) // 2
    return f"{name[:half]}...{name[-half:]}"
