"""Runs ``examples/quickstart.ipynb`` without Jupyter, to compare or rewrite what it shows.

Cells hold Python, lines of ``!`` for the shell and of ``%env``, and print what they show.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from snippets import same_in_every_run, snippet_environment

NOTEBOOK: Final = Path(__file__).resolve().parents[2] / "examples" / "quickstart.ipynb"
CHART: Final = "chart.png"
_MARK: Final = "--- end of cell"
_HEAD: Final = f"""
import os, subprocess, sys
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
plt.show = lambda: plt.savefig({CHART!r}, dpi=80, bbox_inches="tight")
def _shell(line):
    sys.stdout.flush()
    subprocess.run(["bash", "-c", line], stderr=subprocess.STDOUT)
"""


def _cells(path: Path) -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def outputs_of(path: Path) -> list[str]:
    """Return the text that each code cell shows."""
    return [
        "".join("".join(output.get("text", "")) for output in cell["outputs"])
        for cell in _cells(path)
    ]


def run_notebook(folder: Path) -> list[str]:
    """Run the code cells in a folder's ``try``; return their outputs, made the same in every run.

    A chart is left there as ``chart.png``.
    """
    work = folder / "try"
    work.mkdir()
    code = _HEAD
    for cell in _cells(NOTEBOOK):
        source = "".join(cell["source"])
        source = re.sub(r"^!(.*)$", r'_shell(r"""\1""")', source, flags=re.MULTILINE)
        source = re.sub(r"^%env (\w+)=(.*)$", r'os.environ["\1"] = "\2"', source, flags=re.M)
        code += f"{source}\nprint({_MARK!r}, flush=True)\n"
    done = subprocess.run(
        (sys.executable, "-c", code),
        cwd=work,
        env=snippet_environment(folder / "cache"),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return same_in_every_run(done.stdout, folder).split(f"{_MARK}\n")[:-1]


def rewrite_notebook(folder: Path) -> None:
    """Run the notebook and write its outputs into it."""
    printed = run_notebook(folder)
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, text) in enumerate(zip(cells, printed, strict=True), start=1):
        lines = text.splitlines(keepends=True)
        stream = {"name": "stdout", "output_type": "stream", "text": lines}
        cell.update(execution_count=number, outputs=[stream] if lines else [])
        if "plt.show()" in "".join(cell["source"]):
            image = base64.b64encode((folder / "try" / CHART).read_bytes()).decode()
            data = {"image/png": image, "text/plain": ["<Figure>"]}
            chart = {"data": data, "metadata": {}, "output_type": "display_data"}
            cell["outputs"].append(chart)
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
