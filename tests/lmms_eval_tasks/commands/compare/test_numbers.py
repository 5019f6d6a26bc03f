"""What ``compare`` prints is what numpy and scipy find of the same verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from planted_pairs import GROUPS, TASKS, Drawn, drawn, plant, records
from planted_runs import write_run

Counts = Callable[[NDArray[np.bool_]], tuple[NDArray[np.float64], NDArray[np.float64]]]

# Place in VERDICTS: numerator and denominator of one such verdict.
RATIOS: Final[Mapping[str, Mapping[str, list[tuple[float, float]]]]] = {
    "vidcapbench_ae": {
        "acc": [(1, 1), (0, 1), (0, 1), (0, 1)],
        "pre": [(1, 1), (1, 1), (0, 0), (0, 1)],
        "cov": [(1, 1), (1, 1), (0, 1), (1, 1)],
    },
    "vcapsbench": {
        "ar": [(1, 1), (0, 1), (0, 1)],
        "ir": [(0, 1), (1, 1), (0, 0)],
        "cr": [(1, 1), (1, 1), (0, 1)],
    },
    "capquiz": {
        "capp": [(1, 1), (0, 1), (0, 0)],
        "capr": [(1, 1), (0, 1), (0, 1)],
        "capf1": [(2, 2), (0, 2), (0, 1)],
    },
}
MEANS: Final[Mapping[str, Mapping[str, list[float]]]] = {
    "vdc_camera": {"vdc_acc": [100, 0], "vdc_score": [4, 1]},
    "msvd_eval_ref_only": {"accuracy": [80, 40], "avg": [80, 40]},
}


def compared(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    """What ``compare --format json`` prints."""
    assert main(["compare", *map(str, arguments), "--format", "json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def _line(document: Mapping[str, Any], metric: str, group: str = "all") -> dict[str, Any]:
    (line,) = (
        row
        for row in document["compared"][0]["rows"]
        if (row["metric"], row["group"], row["captioner"]) == (metric, group, "b")
    )
    return dict(line)


@pytest.mark.parametrize("task", MEANS)
def test_a_mean_over_videos_is_compared_by_the_paired_t_test(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Difference, interval and p-value are scipy's of the videos' means."""
    a, b = drawn(task, 1), drawn(task, 2)
    folders = [plant(tmp_path / name, task, v) for name, v in (("a", a), ("b", b))]
    document = compared(capsys, *folders)
    for metric, numbers in MEANS[task].items():
        x, y = (np.asarray(numbers)[verdicts].mean(axis=(0, 2)) for verdicts in (a, b))
        expected = stats.ttest_rel(y, x)
        low, high = expected.confidence_interval()
        line = _line(document, metric)
        assert line["value"] == pytest.approx(y.mean())
        assert line["difference"] == pytest.approx((y - x).mean())
        assert [line["difference_low"], line["difference_high"]] == pytest.approx([low, high])
        assert line["p"] == line["p_holm"] == pytest.approx(expected.pvalue)


def _ratio(verdicts: Drawn, counts: list[tuple[float, float]]) -> tuple[float, NDArray[np.float64]]:
    """Mean over runs of a ratio of sums in percent, and what leaving out each video changes."""
    parts = np.asarray(counts)[verdicts].sum(axis=2)

    def value(kept: NDArray[np.bool_]) -> float:
        sums = parts[:, kept].sum(axis=1)
        return float((100 * sums[:, 0] / sums[:, 1]).mean())

    n_videos = parts.shape[1]
    everything = np.ones(n_videos, dtype=bool)
    left_out = [value(np.arange(n_videos) != video) for video in range(n_videos)]
    return value(everything), np.asarray(left_out)


@pytest.mark.parametrize("task", RATIOS)
def test_a_ratio_of_questions_is_compared_by_the_clustered_error(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Values are exact; the error is that of leaving out each video in turn, to some percent."""
    a, b = drawn(task, 1, n_videos=120), drawn(task, 2, n_videos=120, good=0.6)
    folders = [plant(tmp_path / name, task, v) for name, v in (("a", a), ("b", b))]
    document = compared(capsys, *folders)
    for metric, counts in RATIOS[task].items():
        (x, x_out), (y, y_out) = (_ratio(verdicts, counts) for verdicts in (a, b))
        changes = y_out - x_out
        n_videos = len(changes)
        error = np.sqrt((n_videos - 1) / n_videos * ((changes - changes.mean()) ** 2).sum())
        line = _line(document, metric)
        assert line["value"] == pytest.approx(y)
        assert line["difference"] == pytest.approx(y - x)
        reach = stats.t.ppf(0.975, n_videos - 1) * error
        assert line["difference_high"] - line["difference"] == pytest.approx(reach, rel=0.05)
        p_value = 2 * stats.t.sf(abs(y - x) / error, n_videos - 1)
        assert line["p"] == pytest.approx(p_value, rel=0.3, abs=0.01)


@pytest.mark.parametrize("task", list(RATIOS))
def test_groups_are_compared_and_corrected_by_holm(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each group's questions alone; the smaller of two p-values is doubled."""
    a, b = drawn(task, 1), drawn(task, 2, good=0.7)
    folders = [plant(tmp_path / name, task, v) for name, v in (("a", a), ("b", b))]
    document = compared(capsys, *folders)
    section, names = next(iter(GROUPS[document["compared"][0]["benchmark"]].items()))
    for metric, counts in RATIOS[task].items():
        lines = [_line(document, metric, name) for name in names]
        for k, line in enumerate(lines):
            assert line["section"] == section
            assert line["value"] == pytest.approx(_ratio(b[:, :, k::2], counts)[0])
        small, large = sorted(line["p"] for line in lines)
        expected = [min(1, 2 * small), max(min(1, 2 * small), large)]
        assert sorted(line["p_holm"] for line in lines) == pytest.approx(expected)


@pytest.mark.parametrize("task", TASKS)
def test_verdicts_that_flip_are_counted_both_ways(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the majority of three judge runs where they say right or wrong, else by mean grades."""
    a, b = drawn(task, 1, n_runs=3), drawn(task, 2, n_runs=3)
    folders = [plant(tmp_path / name, task, v) for name, v in (("a", a), ("b", b))]
    (pair,) = compared(capsys, *folders)["compared"][0]["pairs"]
    is_graded = task.startswith("msvd")
    x, y = ((verdicts == 0).mean(axis=0) for verdicts in (a, b))
    if not is_graded:
        x, y = x > 0.5, y > 0.5
    expected = {
        "n_gained": int((y > x).sum()),
        "n_lost": int((y < x).sum()),
        "n_same": int((y == x).sum()),
        "is_graded": is_graded,
    }
    assert pair["flips"] == expected


@pytest.mark.parametrize("task", TASKS)
def test_the_effects_of_videos_add_up_to_the_difference(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With as many videos as are shown; each stands with its own value."""
    a, b = drawn(task, 1, n_videos=5), drawn(task, 2, n_videos=5)
    a[:, :, 0], b[:, :, 0] = 1, 0
    folders = [plant(tmp_path / name, task, v) for name, v in (("a", a), ("b", b))]
    one = compared(capsys, *folders)["compared"][0]
    line = _line({"compared": [one]}, one["headline"])
    assert sum(moved["effect"] for moved in one["pairs"][0]["videos"]) == pytest.approx(
        line["difference"]
    )
    numbers = {**MEANS.get(task, {})}.get(one["headline"])
    if numbers:
        for moved in one["pairs"][0]["videos"]:
            video = int(moved["name"].removeprefix("video_").removesuffix(".mp4"))
            assert moved["other"] == pytest.approx(np.asarray(numbers)[b[:, video]].mean())


@pytest.mark.parametrize("task", [task for task in TASKS if not task.startswith("msvd")])
def test_groups_that_moved_most_have_the_numbers_of_their_questions(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Groups of all sections but the one that is shown, the ones that moved up first."""
    a, b = drawn(task, 1), drawn(task, 2)
    a[:, :, 0::2], b[:, :, 0::2] = 1, 0
    folders = [plant(tmp_path / name, task, v) for name, v in (("a", a), ("b", b))]
    one = compared(capsys, *folders)["compared"][0]
    moved = one["pairs"][0]["groups"][0]
    section, names = list(GROUPS[one["benchmark"]].items())[-1]
    assert (moved["section"], moved["name"]) == (section, names[0])
    assert (moved["first"], moved["other"], moved["n_questions"]) == (0, 100, 60)
    assert moved["effect"] == pytest.approx(50)


def test_a_group_of_tasks_is_the_mean_of_its_tasks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A video of all tasks is one cluster: scipy's paired t over videos' means of tasks."""
    tasks = ("vdc_camera", "vdc_short")
    seeds = {"a": (1, 2), "b": (3, 4)}
    verdicts = {
        name: [drawn(task, seed) for task, seed in zip(tasks, of, strict=True)]
        for name, of in seeds.items()
    }
    for name, of_tasks in verdicts.items():
        of = {task: records(task, v) for task, v in zip(tasks, of_tasks, strict=True)}
        write_run(tmp_path / name, of, groups={"vdc_score": tasks})
    document = compared(capsys, tmp_path / "a", tmp_path / "b")
    x, y = (
        np.mean([(v == 0).mean(axis=(0, 2)) * 100 for v in verdicts[name]], axis=0) for name in "ab"
    )
    line = _line(document, "vdc_acc")
    assert line["difference"] == pytest.approx((y - x).mean())
    assert line["p"] == pytest.approx(stats.ttest_rel(y, x).pvalue)
    (tasks_shown,) = {row["section"] for row in document["compared"][0]["rows"]} - {"overall"}
    assert tasks_shown == "tasks"
