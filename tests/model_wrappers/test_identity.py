"""What a captioner is: what moves its captions, and nothing else."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers import identity
from lmms_eval_captions.model_wrappers.captioner import Batch, Captioner
from lmms_eval_captions.model_wrappers.identity import as_json, clip_stamp, files_stamp, stamped
from lmms_eval_captions.model_wrappers.source_code import code_digest, packages_of
from lmms_eval_captions.model_wrappers.video.pictures import is_picture, read_picture
from lmms_eval_captions.model_wrappers.video.sampling import Uniform


class Short(Captioner):
    """Has arguments of its own, one of which moves nothing."""

    without_bearing = frozenset({"n_workers"})

    def __init__(
        self, *, pretrained: str = "", n_frames: int = 2, n_workers: int = 1, **common: object
    ) -> None:
        super().__init__(device="cpu", **common)  # type: ignore[arg-type] # checked by the base
        self.sampling = Uniform(n_frames)
        self.loaded = pretrained, n_workers

    def caption(self, batch: Batch) -> Sequence[str]:
        """Always the same."""
        return ["short"] * len(batch.jobs)


class Frames:
    """A sampling that says nothing of itself."""

    def __init__(self, n: int) -> None:
        self.n = n

    def indices(self, times_s: Sequence[float]) -> list[int]:
        """The first ones."""
        return list(range(min(self.n, len(times_s))))


def same(first: Captioner, second: Captioner) -> bool:
    """Whether two captioners write the same captions, as far as they say."""
    return as_json(first.identity()) == as_json(second.identity())


@pytest.mark.parametrize(
    "arguments",
    [
        {"batch_size": 3},
        {"decode_threads": 2, "decode_timeout_s": 5.0, "decode_memory_gib": 1.0},
        {"n_workers": 7},
        {"n_frames": 2, "max_batch_size": 4},
    ],
)
def test_what_moves_no_caption_is_no_part_of_it(arguments: Mapping[str, object]) -> None:
    """How fast and where captions are written; a default may be given by name."""
    assert same(Short(), Short(**arguments))  # type: ignore[arg-type] # any of them


@pytest.mark.parametrize("arguments", [{"n_frames": 3}, {"max_pixels": 9}, {"pretrained": "a/b"}])
def test_what_moves_a_caption_is_part_of_it(arguments: Mapping[str, object]) -> None:
    """Arguments of the captioner and of its base."""
    assert not same(Short(), Short(**arguments))  # type: ignore[arg-type] # any of them


def test_a_sampling_is_told_by_what_it_holds() -> None:
    """Also one that has no text of its own but its place in memory."""
    first, second, third = Short(), Short(), Short()
    first.sampling, second.sampling, third.sampling = Frames(2), Frames(2), Frames(3)  # type: ignore[assignment] # no hash of its own
    assert same(first, second)
    assert not same(first, third)


def test_a_checkpoint_s_files_are_part_of_it(tmp_path: Path) -> None:
    """Not where it lies; a change of a small file, or a large one of the same size, is seen."""
    for name in ("one", "two"):
        (tmp_path / name / "checkpoint-1").mkdir(parents=True)
        (tmp_path / name / "config.json").write_text("{}")
        (tmp_path / name / "model.safetensors").write_bytes(bytes(3 << 20))
        os.utime(tmp_path / name / "model.safetensors", (5, 5))
    one, two = (Short(pretrained=str(tmp_path / name)) for name in ("one", "two"))
    assert same(one, two)
    (tmp_path / "two" / "checkpoint-1" / "new.bin").write_bytes(b"another training's")
    assert same(one, two)
    os.utime(tmp_path / "two" / "model.safetensors", (6, 6))
    assert not same(one, two)
    os.utime(tmp_path / "two" / "model.safetensors", (5, 5))
    (tmp_path / "two" / "config.json").write_text("[]")
    assert not same(one, two)


@pytest.mark.parametrize("given", ["path", "list", "mapping"])
def test_files_within_an_argument_are_part_of_it(given: str, tmp_path: Path) -> None:
    """As adapters and other parts of a model are named."""
    named = {"path": str(tmp_path), "list": [str(tmp_path)], "mapping": {"model": str(tmp_path)}}
    identities = set()
    for content in ("one", "two", "one"):
        (tmp_path / "adapter.json").write_text(content)
        identities.add(as_json(stamped({"adapters": named[given]})))
    assert len(identities) == 2


def test_an_object_is_told_by_its_slots_too() -> None:
    """It has no other place for what it holds."""

    class Slotted:
        __slots__ = ("n",)

        def __init__(self, n: int) -> None:
            self.n = n

    assert as_json(Slotted(1)) == as_json(Slotted(1)) != as_json(Slotted(2))


@pytest.mark.parametrize("package", ["av", "decord", "pillow", "tokenizers", "torchvision"])
def test_another_version_of_what_makes_the_inputs_is_another_captioner(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of what reads and resizes frames."""
    before = as_json(Short().identity())
    real = metadata.version
    monkeypatch.setattr(identity, "version", lambda name: "0.0" if name == package else real(name))
    assert as_json(Short().identity()) != before


def test_a_broken_link_is_no_content(tmp_path: Path) -> None:
    """A folder with one is told by what can be read."""
    before = files_stamp(tmp_path)
    (tmp_path / "weights").symlink_to(tmp_path / "nowhere")
    assert files_stamp(tmp_path) == before


def test_a_hub_checkpoint_is_told_by_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that lies in the cache under the revision that is loaded."""
    repository = tmp_path / "models--org--name"
    for commit in ("1" * 40, "2" * 40):
        (repository / "snapshots" / commit).mkdir(parents=True)
        (repository / "snapshots" / commit / "config.json").write_text("{}")
    (repository / "refs").mkdir()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    identities = []
    for commit in ("1" * 40, "2" * 40):
        (repository / "refs" / "main").write_text(commit)
        identities.append(as_json(Short(pretrained="org/name").identity()))
        assert commit in identities[-1]
    assert identities[0] != identities[1]


def test_the_user_s_own_modules_are_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The module, what it imports anywhere in it, and what that imports; not what else is there."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "d_helpers").mkdir()
    contents = {
        "d_mine.py": "import json, torch\nfrom d_helpers import prompts\n"
        "def late():\n    import d_helpers.late\n",
        "d_helpers/__init__.py": "",
        "d_helpers/prompts.py": "from .words import WORD\n",
        "d_helpers/words.py": "WORD = 1\n",
        "d_helpers/late.py": "",
        "d_helpers/other.py": "",
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
    importlib.import_module("d_mine")
    before = code_digest(["d_mine"])
    for name, is_part in {
        "d_mine.py": True,
        "d_helpers/words.py": True,
        "d_helpers/late.py": True,
        "d_helpers/other.py": False,
    }.items():
        (tmp_path / name).write_text(contents[name] + "# changed\n")
        assert (code_digest(["d_mine"]) != before) == is_part, name
        (tmp_path / name).write_text(contents[name])
    assert code_digest(["d_mine"]) == before
    assert "d_helpers.late" not in sys.modules


def test_the_code_that_reads_frames_is_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rooms of this package are looked into, the plumbing of all captioners is not."""
    read: list[str] = []
    real = Path.read_bytes

    def note(path: Path) -> bytes:
        read.append(path.as_posix())
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", note)
    Short().identity()
    names = {path.rpartition("model_wrappers/")[2] for path in read}
    assert {"video/frames.py", "video/sampling.py", "video/frame_pictures.py"} <= names
    assert not names & {"captioner.py", "base.py", "ordering.py", "caption_log.py"}
    assert not [path for path in read if "/torch/" in path or "/judges/" in path]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Opening one waits for a writer, for ever: neither a clip nor a checkpoint's file is one."""
    pipe = tmp_path / "clip.png"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="no regular file"):
        clip_stamp(pipe)
    assert files_stamp(tmp_path) == files_stamp(tmp_path)
    assert is_picture(pipe)
    with pytest.raises(DataError, match="there is no such file"):
        read_picture(pipe)


CHECKPOINT_FILES = (
    "config.json",
    "generation_config.json",
    "chat_template.jinja",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "modeling_own.py",
    "vision-lora/adapter_model.safetensors",
)


@pytest.mark.parametrize("name", CHECKPOINT_FILES)
@pytest.mark.parametrize("change", ["edited", "added"])
def test_every_file_of_a_checkpoint_is_part_of_it(name: str, change: str, tmp_path: Path) -> None:
    """Edited in place to the same length, with its time put back, or put there."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    if change == "edited":
        file.write_text('{"a": 1}')
        os.utime(file, (5, 5))
    before = as_json(stamped({"pretrained": str(tmp_path)}))
    file.write_text('{"a": 2}')
    os.utime(file, (5, 5))
    assert as_json(stamped({"pretrained": str(tmp_path)})) != before


def test_an_adapter_s_base_is_part_of_it(tmp_path: Path) -> None:
    """What transformers loads below an adapter lies in a folder of its own."""
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    for folder in (base, adapter):
        folder.mkdir()
    named = json.dumps({"base_model_name_or_path": str(base)})
    (adapter / "adapter_config.json").write_text(named)
    identities = set()
    for content in ("one", "two", "one"):
        (base / "config.json").write_text(content)
        identities.add(as_json(stamped({"pretrained": str(adapter)})))
    assert len(identities) == 2


@pytest.mark.parametrize("revision", [None, "main", "v2", "3" * 40])
@pytest.mark.parametrize("name", ["org/name", "gpt2"])
def test_a_repository_without_a_configuration_is_told_by_its_commit(
    name: str, revision: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AuroraCap's, an adapter's, and those of a name without an owner."""
    repository = tmp_path / f"models--{name.replace('/', '--')}"
    (repository / "snapshots" / ("3" * 40)).mkdir(parents=True)
    (repository / "refs").mkdir()
    for ref in ("main", "v2"):
        (repository / "refs" / ref).write_text("3" * 40)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert stamped({"pretrained": name, "revision": revision})["pretrained"] == [name, "3" * 40]
    words = "Describe/the video " * 40
    assert stamped({"pretrained": "another", "prompt": words}) == {
        "pretrained": "another",
        "prompt": words,
    }


def test_packages_that_a_user_s_modules_import_are_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that a helper imports, and by the name under which they are installed."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "p_mine.py").write_text("import json\nimport p_helper\n")
    (tmp_path / "p_helper.py").write_text(
        "def late():\n    import yaml.nodes\n"
        "from lmms_eval_captions.model_wrappers.captioner import Captioner\n"
    )
    importlib.import_module("p_mine")
    found = packages_of(["p_mine", "lmms_eval_captions.model_wrappers.caption_hf"])
    assert found >= {"yaml"}
    assert not found & {"json", "lmms_eval_captions"}
    assert "PyYAML" in identity.versions(found)
    assert "PyYAML" not in identity.versions()


@pytest.mark.parametrize("package", ["opencv-python-headless", "numpy"])
def test_what_shrinks_frames_is_part_of_it(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames above ``max_pixels`` are OpenCV's."""
    assert package in identity.versions()
    monkeypatch.setattr(identity, "version", lambda _: "0.0")
    assert identity.versions()[package] == "0.0"
