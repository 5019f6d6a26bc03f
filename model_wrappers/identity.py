"""Identity of a captioner and of a clip: what a kept caption depends on."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from stat import S_ISREG
from typing import Final

_WITHOUT_EFFECT: Final = frozenset((
    "batch_size", "decode_memory_gib", "decode_threads", "decode_timeout_s", "device",
    "device_map", "max_batch_size", "reuse",
))  # fmt: skip
"""Arguments of captioners that affect how fast, and where, captions are written, not which."""
_SAMPLE_BYTES: Final = 16_384
_LONGEST_NAME: Final = 200
"""Characters of a repository's name on the hub at most, about."""
_HASHED_BYTES: Final = 1 << 20
"""Files up to this size are identified by their content, larger ones by size and time of change."""


def arguments_with_defaults(
    model: type, base: type, positional: tuple[object, ...], named: Mapping[str, object]
) -> dict[str, object]:
    """Return every argument of a class and its bases down to ``base``, as given, or its default."""
    values: dict[str, object] = {}
    classes = [cls for cls in model.__mro__ if issubclass(cls, base) and "__init__" in vars(cls)]
    for cls in reversed(classes):
        for parameter in inspect.signature(vars(cls)["__init__"]).parameters.values():
            if parameter.default is not parameter.empty:
                values[parameter.name] = parameter.default
    if classes and positional:
        names = list(inspect.signature(vars(classes[0])["__init__"]).parameters)[1:]
        values.update(zip(names, positional, strict=False))
        values |= {f"argument {n}": value for n, value in enumerate(positional[len(names) :])}
    return values | dict(named)


def stamped(arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments that affect captions, with the commits or files that they name."""
    revision = arguments.get("revision")
    return {
        name: _stamp(value, revision if isinstance(revision, str) else None)
        for name, value in sorted(arguments.items())
        if name not in _WITHOUT_EFFECT
    }


def clip_stamp(path: Path) -> list[object]:
    """Return a clip's name, size and a digest of samples of it, read at five places."""
    status = path.stat()
    if not S_ISREG(status.st_mode):  # opening a pipe would wait for ever
        raise OSError(f"{path} is no regular file")
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        for quarter in range(5):
            file.seek(max(status.st_size - _SAMPLE_BYTES, 0) * quarter // 4)
            digest.update(file.read(_SAMPLE_BYTES))
    return [path.name, status.st_size, digest.hexdigest()]


def digest_of(*parts: object) -> str:
    """Return a digest of values, equal for equal values in any process."""
    return blake2b(as_json(parts).encode("ascii"), digest_size=16).hexdigest()


def as_json(value: object) -> str:
    """Return a value as text, equal for equal values in any process; also of any object."""
    return json.dumps(value, sort_keys=True, default=_described)


def _described(value: object) -> object:
    if isinstance(value, set | frozenset):
        return sorted(as_json(entry) for entry in value)
    if type(value).__repr__ is not object.__repr__:
        return str(value) if isinstance(value, Path) else repr(value)
    # The text of a plain object has its address in memory, which differs from run to run.
    state = {name: repr(field) for name, field in getattr(value, "__dict__", {}).items()}
    return [type(value).__qualname__, state]


def _stamp(value: object, revision: str | None) -> object:
    if isinstance(value, Mapping):
        return {str(name): _stamp(part, revision) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_stamp(part, revision) for part in value]
    if not isinstance(value, str | Path) or not str(value).strip():
        return value
    try:
        path = Path(value).expanduser()
        if path.exists():
            return ["files", _files_stamp(path), *_base(path)]
    except (OSError, ValueError, RuntimeError):  # no path at all
        return str(value)
    commit = _commit(str(value), revision)
    return str(value) if commit is None else [str(value), commit]


def _files_stamp(path: Path) -> str:
    """Return a digest of a file, or of all files of a folder.

    Hidden folders, and checkpoints that a training has put into the folder, are left out.
    """
    digest = blake2b(digest_size=16)
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        name = file.relative_to(path)
        is_left_out = any(
            part.startswith((".", "checkpoint-")) or part == "__pycache__"
            for part in name.parts[:-1]
        )
        if is_left_out or not file.is_file():
            continue
        try:
            status = file.stat()
            small = file.read_bytes() if status.st_size <= _HASHED_BYTES else b""
        except OSError:  # removed just now
            continue
        kind = status.st_size if small or not status.st_size else status.st_mtime_ns
        text = f"{name.as_posix()}\0{status.st_size}\0{kind}\0"
        digest.update(text.encode("utf-8", "surrogatepass"))
        digest.update(blake2b(small).digest())
    return digest.hexdigest()


def _commit(name: str, revision: str | None) -> str | None:
    """Return the commit at which a repository of the hub lies in the cache, ``None`` for none."""
    if name.count("/") > 1 or name.startswith("/") or len(name) > _LONGEST_NAME:
        return None
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    wanted = revision or "main"
    try:
        folder = Path(constants.HF_HUB_CACHE, repo_folder_name(repo_id=name, repo_type="model"))
        if revision and (folder / "snapshots" / wanted).is_dir():
            return wanted
        return (folder / "refs" / wanted).read_text().strip()
    except (OSError, ValueError):  # not in the cache, or no name of a repository
        return None


def _base(checkpoint: Path) -> list[object]:
    """Return the stamp of the model that an adapter is laid over."""
    try:
        config = json.loads((checkpoint / "adapter_config.json").read_bytes())
        base = config["base_model_name_or_path"]
    except (OSError, ValueError, LookupError, TypeError):  # no adapter, or an incomplete one
        return []
    return [_stamp(base, config.get("revision"))] if base != str(checkpoint) else []
