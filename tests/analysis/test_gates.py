"""Gates are kept, broken or open by the interval of the difference, and say so by exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from lmms_eval_captions.analysis.compare.gate import Gate
from lmms_eval_captions.cli.main import main
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.metrics.paired import Difference, videos_to_settle
from planted_pairs import TASKS, drawn, plant

HEADLINES: Final = dict(zip(TASKS, ("vdc_acc", "acc", "ar", "capf1", "avg"), strict=True))


@pytest.fixture
def folders(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[str, list[str]]:
    """A task, and two captioners of whom the second is better by some points."""
    task = request.param
    a, b = drawn(task, 1, n_videos=60, good=0.4), drawn(task, 2, n_videos=60, good=0.6)
    return task, [str(plant(tmp_path / name, task, v)) for name, v in (("a", a), ("b", b))]


def _difference(capsys: pytest.CaptureFixture[str], folders: list[str], *more: str) -> Any:
    capsys.readouterr()
    main(["compare", *folders, "--format", "json", *more])
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("folders", TASKS, indirect=True)
def test_exit_codes_say_what_a_gate_says(
    folders: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """0 where the whole interval keeps the bound, 1 where all of it breaks it, 3 between."""
    task, names = folders
    metric = HEADLINES[task]
    rows = _difference(capsys, names)["compared"][0]["rows"]
    line = next(row for row in rows if row["captioner"] == "b" and row["metric"] == metric)
    low, high = line["difference_low"], line["difference_high"]
    middle = (line["difference"] + high) / 2
    expected = {low - 0.1: 0, high + 0.1: 1, middle: 3}
    for bound, code in expected.items():
        assert main(["compare", *names, "--gate", f"{metric}>={bound}"]) == code
        assert main(["compare", *names, "--gate", f"{task}:{metric}>={bound}"]) == code
    told = " ".join(capsys.readouterr().out.split())
    for word in ("GO: ", "NO-GO: ", "INCONCLUSIVE: "):
        assert word in told
    document = _difference(capsys, names, "--gate", f"{metric}>={middle}")
    (gate,) = document["gates"]
    error = (high - line["difference"]) / 2.0010  # t quantile at 59 degrees of freedom
    found = Difference(
        difference=line["difference"], low=low, high=high, standard_error=error, p_value=None,
        n_videos=60, method="",
    )  # fmt: skip
    settled = videos_to_settle(found, margin=middle)
    assert gate["n_videos_to_settle"] == pytest.approx(settled, rel=0.01)
    assert f"About {gate['n_videos_to_settle']:,} videos" in gate["words"]
    assert document["exit_code"] == 3


@pytest.mark.parametrize("folders", ["vcapsbench"], indirect=True)
def test_several_gates_must_all_be_kept(folders: tuple[str, list[str]]) -> None:
    """One that is broken outweighs one that is open; a bound may be an upper one."""
    kept, broken, is_open = "ar>=-50", "ar>=60", "ir<=-11"
    assert main(["compare", *folders[1], "--gate", kept, "--gate", "ir<=50"]) == 0
    assert main(["compare", *folders[1], "--gate", kept, "--gate", is_open]) == 3
    assert main(["compare", *folders[1], "--gate", is_open, "--gate", broken]) == 1


def test_identical_captioners_keep_a_bound_below_0(tmp_path: Path) -> None:
    """They differ by nothing on every video, though there is no interval."""
    same = drawn("vcapsbench", 1)
    names = [str(plant(tmp_path / name, "vcapsbench", same)) for name in "ab"]
    assert main(["compare", *names, "--gate", "ar>=-0.5"]) == 0
    assert main(["compare", *names, "--gate", "ar>=0.5"]) == 1


def test_a_run_without_a_score_decides_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If too much is unscored, the rest may be the easier part."""
    a, b = (drawn("vcapsbench", seed, n_runs=1) for seed in (1, 2))
    folders = [plant(tmp_path / name, "vcapsbench", v) for name, v in (("a", a), ("b", b))]
    path = next((folders[1] / "m").glob("*_results.json"))
    document = json.loads(path.read_text())
    document["results"]["vcapsbench"]["ar,none"] = float("nan")
    path.write_text(json.dumps(document))
    assert main(["compare", *map(str, folders), "--gate", "ar>=-90"]) == 3
    told = " ".join(capsys.readouterr().out.split())
    assert "WARNING: b: the run gives no score for vcapsbench (nan)" in told
    assert "these numbers decide nothing" in told


@pytest.mark.parametrize(
    "gate", ["acc", "acc>-1", "acc>=x", "acc>=nan", "acc>=inf", ">=1", "a:b:c>=1", ""]
)
def test_what_is_no_gate_is_a_usage_error(gate: str) -> None:
    """The message shows what one looks like."""
    with pytest.raises(SettingsError, match=r"vdc_acc>=-0\.5"):
        Gate.parse(gate)


@pytest.mark.parametrize("folders", ["vcapsbench"], indirect=True)
@pytest.mark.parametrize(
    ("gate", "n_captioners", "words"),
    [
        ("capf1>=0", 2, "ar, ir, cr"),
        ("vdc_camera:ar>=0", 2, "vcapsbench"),
        ("ar=0", 2, "METRIC>=BOUND"),
        ("ar>=0", 1, "two captioners"),
    ],
)
def test_a_gate_that_cannot_be_looked_at_is_a_usage_error(
    folders: tuple[str, list[str]],
    gate: str,
    n_captioners: int,
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 2, and what there is."""
    assert main(["compare", *folders[1][:n_captioners], "--gate", gate]) == 2
    assert words in capsys.readouterr().err


def test_a_gate_says_what_it_did_not_look_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A captioner that has no caption of a third of the videos may keep a bound on the others."""
    task = "vcapsbench"
    plant(tmp_path / "a", task, drawn(task, 1, n_videos=30, good=0.3))
    plant(tmp_path / "b", task, drawn(task, 2, n_videos=20, good=0.9))
    folders = [str(tmp_path / name) for name in "ab"]
    (gate,) = _difference(capsys, folders, "--gate", "ar>=0")["gates"]
    assert gate["decision"] == "GO"
    assert gate["left_out"] == "10 captions that not all have"
    assert gate["words"].endswith("(left out: 10 captions that not all have).")
