"""``report --figures``: what is drawn is what the run's files say, whatever things are called."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from label_runs import judged_run
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.commands.report.drawings import draw_differences
from lmms_eval_captions.lmms_eval_tasks.commands.report.figure_data import ShownDifference
from lmms_eval_captions.lmms_eval_tasks.commands.report.figure_style import (
    INK,
    SOFT,
    paper_style,
    saved,
)
from lmms_eval_captions.lmms_eval_tasks.commands.report.figures import drawings_of, write_figures
from lmms_eval_captions.lmms_eval_tasks.commands.report.report import (
    Options,
    Report,
    make_report,
)
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks
from planted_runs import VERDICTS, PlantedCaption, Question, record_of, write_run

HOSTILE = (
    "$x^2$", "$\\frac{", "</svg><script>", "a_b", "line\nbreak", "\u202e\u05d0\u05d1", "\U0001f600",
    "\u6f22\u5b57", "a" * 300, "\ud83d", "../../x", "&amp;\x00\x0b", "%s {0} \\n",
)  # fmt: skip
PLAIN = tuple(f"group {n}" for n in range(5))
SVG = "{http://www.w3.org/2000/svg}"


def _planted(folder: Path, task: str, groups: Sequence[str], *, better: int = 0) -> Path:
    """A run of eight videos with one question of each group."""
    kinds = VERDICTS[all_benchmarks_of(task)]
    captions = []
    for video in range(8):
        questions = [Question(f"q{n}", {"dimension": g}) for n, g in enumerate(groups)]
        places = ((video * 3 + n * (video + 1)) % (len(kinds) + better) for n in range(len(groups)))
        verdicts = [kinds[max(0, place - better)] for place in places]
        text = "word " * (10 + 7 * video)
        captions.append(PlantedCaption(f"v{video}", questions, [verdicts], text))
    write_run(folder, {task: [record_of(task, caption) for caption in captions]})
    return folder


def all_benchmarks_of(task: str) -> str:
    """The name of a task's benchmark."""
    return next(name for name, one in all_benchmarks().items() if task in one.tasks)


def _report(*folders: Path) -> Report:
    return make_report(list(folders), Options(n_frames=0), data_settings())


def _figures(report: Report) -> dict[str, Any]:
    """The parts of each figure's name to the figure."""
    with paper_style():
        return {
            "|".join(parts): draw()
            for one in report.shown
            for parts, draw in drawings_of(one, report.names)
        }


def _breakdown(folder: Path, task: str) -> dict[str, Any]:
    (path,) = folder.rglob(f"*_breakdown_{task}.json")
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def _bars(figure: Any) -> list[list[float]]:
    return [[bar.get_width() for bar in bars] for bars in figure.axes[0].containers]


def _whiskers(figure: Any) -> list[list[float]]:
    return [list(line.get_xdata()) for line in figure.axes[0].lines if line.get_color() == INK]


TASKS = ("vdc_short", "vidcapbench_ae", "vcapsbench", "capquiz", "msvd_eval_ref_only")


@pytest.mark.parametrize("task", TASKS)
def test_every_benchmark_has_figures_with_the_numbers_of_its_breakdown(
    task: str, tmp_path: Path, offline: pytest.MonkeyPatch
) -> None:
    """Bars, ends of whiskers and spokes, read from the run's file by the test itself."""
    captions = ("A red circle moves to the right.", "", "A blue square. " * 9, "$x^2$ </svg>")
    judged_run(tmp_path, {task: captions})
    breakdown = _breakdown(tmp_path, task)
    figures = _figures(_report(tmp_path))
    n_seen = 0
    for name, figure in figures.items():
        _, kind, section, metric = [*name.split("|"), ""][:4]
        if kind in ("bars", "radar"):
            of_groups = breakdown[section]
            known = [
                group
                for group in of_groups.values()
                if isinstance(group.get(metric), int | float) and isfinite(group[metric])
            ]
            values = [group[metric] for group in known]
            if kind == "bars":
                assert _bars(figure) == [pytest.approx(values)], name
                ends = [
                    [group[f"{metric}_ci_low"], group[f"{metric}_ci_high"]]
                    for group in known
                    if group.get(f"{metric}_ci_low") is not None
                ]
                assert _whiskers(figure) == [pytest.approx(end) for end in ends], name
            else:
                drawn = [v for v in figure.axes[0].lines[0].get_ydata()[:-1] if isfinite(v)]
                assert drawn == pytest.approx(values), name
            n_seen += 1
    assert n_seen
    assert any("|length" in name for name in figures)


def test_a_dot_for_each_caption_and_a_row_for_each_difference(tmp_path: Path) -> None:
    """Two captioners, each with its own dots; the difference is that of the two scores."""
    folders = [
        _planted(tmp_path / n, "vcapsbench", PLAIN, better=b) for n, b in (("a", 0), ("b", 2))
    ]
    figures = _figures(_report(*folders))
    dots = figures["vcapsbench|length|ar"].axes[0].lines
    assert [list(line.get_xdata()) for line in dots] == [[10 + 7 * v for v in range(8)]] * 2
    scores = [_breakdown(folder, "vcapsbench")["overall"]["all"]["ar"] for folder in folders]
    axes = figures["vcapsbench|differences"].axes[0]
    (drawn,) = (line.get_xdata()[0] for line in axes.lines if line.get_markersize() == 4.5)
    assert drawn == pytest.approx(scores[1] - scores[0])


def test_ties_are_grey_and_differences_told_by_their_shape() -> None:
    """Neither needs colours to be seen."""
    rows = [
        ShownDifference(outcome, 1.0, 0.5, 1.5, outcome)
        for outcome in ("better", "worse", "tied", "unknown")
    ]
    with paper_style():
        figure = draw_differences(rows, "label")
    points = [line for line in figure.axes[0].lines if line.get_markersize() == 4.5]
    assert [line.get_marker() for line in points] == ["^", "v", "o", "o"]
    assert [line.get_markeredgecolor() == SOFT for line in points] == [False, False, True, True]
    assert len({line.get_markerfacecolor() for line in points}) == 4


def test_hostile_names_are_drawn_as_they_are_and_nothing_leaves_the_folder(
    tmp_path: Path,
) -> None:
    """No formula, no markup, no warning of a letter that the font has not; safe names of files."""
    for name in ("$x^2$", "\U0001f600 & <"):
        _planted(tmp_path / name, "vcapsbench", HOSTILE)
    report = _report(*(tmp_path / name for name in ("$x^2$", "\U0001f600 & <")))
    out = tmp_path / "out"
    written = write_figures(out, report.shown, report.names)
    assert sorted(written.paths) == sorted(out.iterdir())
    for path in written.paths:
        assert path.stem.replace("_", "").replace("-", "").isalnum()
        if path.suffix == ".svg":
            tree = ElementTree.parse(path)  # noqa: S314 - a file of our own
            assert not list(tree.iter("script")) + list(tree.iter(f"{SVG}script"))
    bars = ElementTree.parse(out / "vcapsbench_bars_dimension_ar.svg")  # noqa: S314
    texts = [text.text or "" for text in bars.iter(f"{SVG}text")]
    for shown in ("$x^2$", "$\\frac{", "</svg><script>", "a_b", "line break", "../../x", "&amp;"):
        assert shown in texts
    assert any(text.startswith("aaaa") and text.endswith("...") for text in texts)


def test_files_are_a_column_wide_and_the_same_bytes_each_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Text stays text; letters in PDF are TrueType; nothing holds a date."""
    run = _planted(tmp_path / "run", "vcapsbench", PLAIN)
    for name in ("one", "two"):
        page = tmp_path / f"{name}.html"
        line = ["report", str(run), "-o", str(page), "--frames", "0"]
        assert main([*line, "--figures", str(tmp_path / name)]) == 0
    files = [sorted((tmp_path / name).iterdir()) for name in ("one", "two")]
    assert [path.name for path in files[0]] == [path.name for path in files[1]]
    assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]
    assert f"{tmp_path / 'two'}: {len(files[1])} files of figures" in capsys.readouterr().out
    for path in files[0]:
        content = path.read_bytes()
        if path.suffix == ".svg":
            assert b'width="234pt"' in content
            assert b"<text" in content
        else:
            assert b"/TrueType" in content or b"/CIDFontType2" in content
            assert b"/Type3" not in content
            assert b"/MediaBox [ 0 0 234 " in content


def test_a_run_without_a_breakdown_has_no_figures_and_it_is_said(tmp_path: Path) -> None:
    """Nothing is written, neither is the folder."""
    run = _planted(tmp_path / "run", "vcapsbench", PLAIN)
    (path,) = run.rglob("*_results.json")
    document = json.loads(path.read_text())
    document["lmms_eval_captions"]["tasks"]["vcapsbench"]["breakdown"] = "it was not written"
    path.write_text(json.dumps(document))
    report = _report(run)
    written = write_figures(tmp_path / "out", report.shown, report.names)
    assert written.paths == []
    assert written.notes == [
        "vcapsbench: no figures, as there is no breakdown (it was not written)"
    ]
    assert not (tmp_path / "out").exists()


def test_the_largest_charts_still_fit_a_page(tmp_path: Path) -> None:
    """40 groups of 10 captioners: no taller than a page, and none without its legend."""
    one = _report(_planted(tmp_path / "run", "vcapsbench", [f"g{n}" for n in range(30)]))
    (shown,) = one.shown
    sections = [replace(section, figures=[*section.figures] * 10) for section in shown.sections]
    wide = replace(shown, sections=sections, pairs=[])
    names = [f"captioner number {n}" for n in range(10)]
    with paper_style():
        for parts, draw in drawings_of(wide, names):
            if parts[2] == "dimension":
                figure = draw()
                assert figure.get_size_inches()[1] < 11
                assert len(figure.legends[0].get_texts()) == 10
                assert saved(figure, "svg")
