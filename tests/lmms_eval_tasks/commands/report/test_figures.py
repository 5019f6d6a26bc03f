"""The charts that ``report --figures`` writes: their numbers, their names, their files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from label_runs import judged_run
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.commands.report import drawing
from lmms_eval_captions.lmms_eval_tasks.commands.report.report import Options, make_report
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task
from report_pages import TASKS

CAPTIONS = (
    "A red circle on the left moves to the right. The camera does not move.",
    "A blue square in a dark room. It zooms in.",
    "Nothing can be said of this one.",
)
HOSTILE = (
    "$x^2$",
    "</svg><script>",
    "_hidden",
    "a\nb",
    "\u05d0\u05d1",
    "\U0001f600",
    "x" * 400,
    "",
)


@pytest.fixture
def runs(tmp_path: Path, offline: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two captioners on a task of each benchmark."""
    judged_run(tmp_path / "a", dict.fromkeys(TASKS, CAPTIONS))
    judged_run(tmp_path / "b", dict.fromkeys(TASKS, CAPTIONS[::-1]))
    return tmp_path / "a", tmp_path / "b"


def test_every_benchmark_has_its_charts(
    runs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bars of every section hold the breakdown's numbers, and each has a file as SVG and PDF."""
    drawn: dict[tuple[str, tuple[str, ...]], list[Any]] = {}
    bars = drawing.bars

    def seen(metric: str, groups: Any, points: Any, *, lowest: float) -> Any:
        figure = bars(metric, groups, points, lowest=lowest)
        assert figure.axes[0].get_xlim()[0] == lowest
        drawn.setdefault((metric, tuple(groups)), []).append(figure.axes[0])
        return figure

    monkeypatch.setattr("lmms_eval_captions.lmms_eval_tasks.commands.report.figures.bars", seen)
    options = Options(n_frames=0, figures=tmp_path / "first")
    assert "with charts" in make_report(runs, options, data_settings()).notes[-1]
    names = {path.name for path in (tmp_path / "first").iterdir()}
    assert {name.replace(".svg", ".pdf") for name in names if name.endswith(".svg")} == {
        name for name in names if name.endswith(".pdf")
    }
    n_compared = 0
    for task in TASKS:
        breakdowns = [
            json.loads(next(run.rglob(f"*_breakdown_{task}.json")).read_text("utf-8"))
            for run in runs
        ]
        assert any(name.startswith(f"{task}_words_") for name in names)
        for section in benchmark_of_task(task).sections:
            groups = dict.fromkeys(group for each in breakdowns for group in each.get(section, {}))
            for metric in benchmark_of_task(task).metrics:
                if len(groups) < 2 or f"{task}_{section}_{metric}_bars.svg" not in names:
                    continue
                axes = drawn[metric, tuple(groups)][0]
                widths = [bar.get_width() for bars in axes.containers for bar in bars]
                expected = [
                    each[section][group][metric]
                    for each in breakdowns
                    for group in groups
                    if each[section].get(group, {}).get(metric) is not None
                ]
                assert np.allclose(widths, expected)
                n_compared += len(expected)
    assert n_compared > 100


def test_sizes_fit_a_column(runs: tuple[Path, Path], tmp_path: Path) -> None:
    """At most a column wide, letters that can be searched, none below 6 points; twice the same."""
    for folder in ("figures", "again"):
        options = Options(n_frames=0, figures=tmp_path / folder, tasks=("capquiz",))
        make_report(runs, options, data_settings())
    for path in (tmp_path / "figures").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()
    for path in (tmp_path / "figures").glob("*.svg"):
        text = path.read_text("utf-8")
        root = ElementTree.fromstring(text)  # noqa: S314 - written here
        assert float(root.attrib["width"].removesuffix("pt")) <= 3.6 * 72
        sizes = [float(size) for size in re.findall(r"font(?:-size)?:[^;\"]*?([\d.]+)px", text)]
        assert sizes
        assert min(sizes) >= 6
        assert "<date>" not in text
    assert (tmp_path / "figures" / "capquiz_words_capf1.pdf").read_bytes()[:5] == b"%PDF-"


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_names_are_letters_and_nothing_else(name: str, tmp_path: Path) -> None:
    """No formula, no element, no error, and the legend has them."""
    groups = [name, "second", "third"]
    with drawing.style():
        figures = [
            drawing.radar(groups, {name: [1.0, None, 3.0], "other": [2.0, 2.0, 2.0]}, 5.0),
            drawing.bars(name, groups, {name: [(1.0, 0.5, 1.5), None, (3.0, None, None)]}),
            drawing.forest(name, [drawing.Difference(name, (1.0, None, None), is_told=False)]),
            drawing.scatter("words", name, {name: [(1.0, 2.0)], "other": []}),
        ]
        for place, figure in enumerate(figures):
            svg, pdf = drawing.save(figure, tmp_path, f"figure-{place}")
            root = ElementTree.fromstring(svg.read_text("utf-8"))  # noqa: S314 - written here
            texts = "".join(root.itertext())
            shown = " ".join(name.split())
            assert (shown if len(shown) < 20 else f"{shown[:25]}...") in texts
            assert pdf.stat().st_size > 1000


def test_without_a_breakdown_there_are_lengths_alone(
    offline: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is not there is said, and what is there is drawn."""
    results = judged_run(tmp_path / "run", {"capquiz": CAPTIONS})
    next(results.parent.glob("*_breakdown_*")).unlink()
    options = Options(n_frames=0, figures=tmp_path / "figures")
    notes = make_report([tmp_path / "run"], options, data_settings()).notes
    assert "expected the breakdown" in notes[0]
    assert {p.name.rpartition("_")[0] for p in (tmp_path / "figures").iterdir()} == {
        "capquiz_words"
    }
