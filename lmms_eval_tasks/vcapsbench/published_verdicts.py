"""The verdict files of VCapsBench's authors, and what our metrics make of them."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files.bounded_csv import CSV_LINE_ENDS, CsvTable
from lmms_eval_captions.judges.files.bounded_files import bounded, open_bounded, require_file
from lmms_eval_captions.judges.verdict import Agreement
from lmms_eval_captions.lmms_eval_tasks.breakdown import Breakdown, break_down
from lmms_eval_captions.lmms_eval_tasks.data.archives import BROKEN
from lmms_eval_captions.lmms_eval_tasks.records import Names, Values
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.benchmark import VCAPSBENCH, groups_of
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.data import category_name, parse_question

_VERDICTS: Final[Mapping[str, Agreement]] = {
    "1": "positive",
    "0": "negative",
    "2": "unanswerable",
    # What a table program makes of a column of numbers that has gaps.
    "1.0": "positive",
    "0.0": "negative",
    "2.0": "unanswerable",
}
_COLUMNS: Final = ("question", "answer")


@dataclass(frozen=True, slots=True)
class PublishedVerdicts:
    """The verdicts on one captioner."""

    name: str
    """File name, such as ``gpt4o_eval_Qwen2.5-VL-7B.csv``."""
    categories: list[str]
    """Category of each row that names one."""
    verdicts: list[Agreement | None]
    """Verdict of each of these rows, ``None`` where it cannot be read."""
    videos: list[str]
    """Video of each of these rows; empty where the file does not say it, and all are taken for one,
    so that there is no interval."""
    n_malformed: int
    """Rows whose question names no category, or that have more cells than the header; they count in
    nothing."""
    n_contradicted: int
    """Verdicts that the row's own answer and gold answer contradict; they count as they stand."""

    @property
    def n_unreadable(self) -> int:
        """Rows without a verdict or a category."""
        return self.n_malformed + self.verdicts.count(None)

    def breakdown(self) -> Breakdown:
        """``ar``, ``ir`` and ``cr`` in percent: overall, for the 4 groups and the 21 categories."""
        of_videos: dict[str, _OfVideo] = {}
        for row in zip(self.videos, self.categories, self.verdicts, strict=True):
            video, category, verdict = row
            of_video = of_videos.setdefault(video, _OfVideo(video, [], []))
            of_video.categories.append(category)
            of_video.verdicts.append(verdict)
        return break_down(VCAPSBENCH, of_videos.values())


@dataclass(frozen=True, slots=True)
class _OfVideo:
    """The verdicts on the caption of one video, as a breakdown takes them."""

    video_id: str
    categories: list[str]
    verdicts: list[Agreement | None]

    @property
    def values(self) -> Mapping[str, Values]:
        """The verdicts, which every metric reads, as those of one judge run."""
        return {metric: [self.verdicts] for metric in VCAPSBENCH.metrics}

    @property
    def groups(self) -> Mapping[str, Names]:
        """Group and category of each verdict's question."""
        named = list(map(groups_of, self.categories))
        return {
            section: [[names.get(section) for names in named]] for section in VCAPSBENCH.sections
        }


def read_published_verdicts(path: Path) -> Iterator[PublishedVerdicts]:
    """The verdicts of a ``.csv`` file, or of each one in a ``.zip`` file, in its order.

    A file has a row for every question that was judged. Of its columns (``video_id``, ``cos_url``,
    ``caption``, ``question``, ``answer``, ``analysis``), ``question`` is the official string with
    category and gold answer, ``answer`` the verdict: 1 where the judge's answer is the gold one,
    0 where it is the other one, 2 for unanswerable; ``analysis`` is the judge's answer, a comma
    and its reason. A question that the judge never answered has no row.

    Args:
        path: One captioner's file, or the archive of all captioners that one judge judged.

    Raises:
        DataError: If the file is missing, or is not of this layout; the text says where.

    Source:
        anoycode22/VCapsBench@4f6c7ba, a copy of the authors' repository: ``LLM4eval-m.py`` writes
        these files and ``RadarChartPlot.py`` reads them. The published archives
        (``gpt_eval_results.zip``, ``gemini_eval_results.zip`` in somos99/VCapsBench) were not at
        hand when this was written.
    """
    try:
        if path.suffix.lower() == ".zip":
            yield from _read_archive(path)
        else:
            with open_bounded(path, CSV_LINE_ENDS) as stream:
                yield _read_table(stream, path.name)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path} cannot be read ({error}); expected a .csv file of verdicts, or the .zip file "
            "of them, that VCapsBench's authors publish"
        ) from error


def _read_archive(path: Path) -> Iterator[PublishedVerdicts]:
    require_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if _is_table(PurePosixPath(name))]
            if not names:
                raise DataError(f"{path}: expected .csv files of verdicts in it, found none")
            for name in names:
                packed = archive.getinfo(name).compress_size
                with bounded(
                    archive.open(name), packed_bytes=packed, line_ends=CSV_LINE_ENDS
                ) as stream:
                    yield _read_table(stream, name)
    except BROKEN as error:
        raise DataError(f"{path}: the archive is broken ({error}); download it again") from error


def _is_table(name: PurePosixPath) -> bool:
    # Archives made on a Mac hold a second entry for every file, with its attributes.
    return name.suffix.lower() == ".csv" and "__MACOSX" not in name.parts


def _read_table(stream: IO[bytes], name: str) -> PublishedVerdicts:
    try:
        with CsvTable(stream) as rows:
            missing = [column for column in _COLUMNS if column not in rows.columns]
            if missing:
                raise DataError(
                    f"{name}: expected the columns {', '.join(_COLUMNS)}, got "
                    f"{', '.join(rows.columns[:30]) or 'an empty file':.200}"
                )
            return _collect(rows, name)
    except ValueError as error:
        raise DataError(
            f"{name}, {error}; expected comma-separated UTF-8 text: download it again"
        ) from error


def _collect(rows: CsvTable, name: str) -> PublishedVerdicts:
    categories: list[str] = []
    verdicts: list[Agreement | None] = []
    videos: list[str] = []
    n_malformed = n_contradicted = 0
    for row, further in rows:
        question = row["question"] or ""
        head, star, _ = question.partition("*")
        category = category_name(head) if star else ""
        # A comma that is not quoted moves what follows to other columns.
        if not category or any(further):
            n_malformed += 1
            continue
        verdict = _VERDICTS.get((row["answer"] or "").strip())
        expected = _verdict_of_texts(question, row.get("analysis") or "")
        n_contradicted += None not in (verdict, expected) and verdict != expected
        categories.append(category)
        verdicts.append(verdict)
        videos.append(row.get("video_id") or "")
    return PublishedVerdicts(name, categories, verdicts, videos, n_malformed, n_contradicted)


def _verdict_of_texts(question: str, analysis: str) -> Agreement | None:
    """What the judge's answer and the gold one make, ``None`` where either is not on the menu."""
    parsed = parse_question(question)
    answer = analysis.partition(",")[0].strip().lower()
    if parsed is None or answer not in ("yes", "no", "unanswerable"):
        return None
    if answer == "unanswerable":
        return "unanswerable"
    return "positive" if answer == parsed["answer"] else "negative"
