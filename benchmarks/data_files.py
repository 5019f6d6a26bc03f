"""A seeded campaign of mutated files against every reader of files that others wrote.

Files of the five benchmarks, captions in every format, scores, published verdicts, results, prices,
prompts and batch records are written in parts, of which one is damaged: bytes, JSON values, cells,
YAML; or the file as a whole is: cut, packed, in another encoding, a folder, a pipe. Then it checks:

- only errors of the package are raised, and their text names the file;
- whatever is read, parts that were not damaged come out as they were, and none of them is missing;
- what does no harm (gzip, a byte order mark, CRLF, blank lines) changes nothing;
- no file takes more than 3 seconds of processor time or waits for 30 seconds, nor
  does the campaign take 700 MB more memory.

    python benchmarks/data_files.py --files 30000 --seed 0 [--data DATA]
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from loguru import logger

from data_file_kinds import Kind, Parts, Units, kinds
from lmms_eval_captions.judges.errors import CaptionsError
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from time_limit import TooSlowError, time_limit

MOST_S: Final = 3.0
MOST_MB: Final = 700
_GIVE_UP_S: Final = 30.0
_SHOWN: Final = 25
_BYTES: Final = (
    b"\0", b"\r", b"\n", b"\xff", b"\xe9", b'"', b"'", b"\\", b"\\ud800", b"\xe2\x80\xa8", b",",
    b"{", b"}", b"[", b"]", b":", b"\xef\xbb\xbf", b"\t", b"&a ", b"*a",
    b"!!python/object:os.system ",
    b"<<: ", b"#", b"9" * 5000, b"[" * 100_000, b'{"a":' * 100_000, b" " * 200_000, b"x" * 200_000,
)  # fmt: skip
_VALUES: Final = (
    "null", "true", "[]", "{}", '""', '" "', "1.5", "-0", "NaN", "-Infinity", "1e999", "9" * 5000,
    "9" * 400, '["a"]', '{"a": 1}', "[" * 100_000, "[" * 99 + "]" * 99, "[" * 800 + "]" * 800,
    "[" * 100_000 + "]" * 100_000, '{"a":' * 2000 + "1" + "}" * 2000, '"\\ud800"', '"\\u0000"',
    '"' + "long " * 100_000 + '"', '"12345"', "[" + "[]," * 20_000 + "[]]", '"../../etc/passwd"',
)  # fmt: skip
_CELLS: Final = (
    b"", b'"', b'"open', b'"a"b', b"a,b,c,d,e,f", b'"' + b"x" * 200_000 + b'"', b"\0", b"\xff",
    b"nan", b"1e999", b"9" * 5000, b"a\rb", b'"a\nb"', b"=cmd()",
)  # fmt: skip
_YAML: Final = (
    "a: [" * 3000, "[" * 50_000, "? [a]\n: b", "a: !!timestamp x", "a: !!bool x", "a: !!int x",
    "<<: *x", "a: &a [*a]", "a: 0x" + "f" * 50_000, "a: " + "1:" * 50_000 + "1", "a: *nowhere",
    "--- a\n--- b", "a: !!binary x", "a: !!python/name:os.system", "- " * 3000,
    "a: 2026-99-99", "%YAML 9.9\n--- a",
    "a: &a " + "[0,0,0,0,0,0,0,0,0]" + "".join(
        f"\n{name}: &{name} [{','.join([f'*{before}'] * 9)}]"
        for before, name in zip("abcdefghij", "bcdefghijk", strict=True)
    ),
    "a: &a {x: 1}" + "".join(
        f"\n{name}: &{name} {{<<: [{','.join([f'*{before}'] * 9)}]}}"
        for before, name in zip("abcdefghij", "bcdefghijk", strict=True)
    ),
)  # fmt: skip
_HARMLESS: Final = frozenset(
    {"none", "gzip", "gzip, plain name", "members", "mark", "crlf", "blank"}
)


@dataclass
class Tally:
    """What happened to one kind of file."""

    files: int = 0
    read: int = 0
    failures: list[str] = field(default_factory=list)
    slowest_s: float = 0.0


@dataclass(frozen=True)
class _Case:
    """A file to be read."""

    what: str
    data: bytes
    touched: frozenset[str]
    """Names of the parts that were damaged; of all where the whole file was."""
    is_gz: bool = False
    """Whether ``.gz`` stands behind its name."""
    place: str = "file"
    """``file``, ``folder`` or ``pipe``."""


def run_campaign(
    n_files: int, seed: int, *, data: Path | None = None, names: Sequence[str] = ()
) -> dict[str, Tally]:
    """Read so many files, of each kind as many; the same for the same seed and data."""
    logger.disable("lmms_eval_captions")
    before = _peak_mb()
    tallies: dict[str, Tally] = {}
    try:
        with tempfile.TemporaryDirectory(prefix="data-files-") as folder:
            chosen = [
                kind
                for kind in kinds(*filter(None, [data]), sample_root(Path(folder, "cache")))
                if not names or kind.name in names
            ]
            tallies = {kind.name: Tally() for kind in chosen}
            for number in range(n_files):
                kind = chosen[number % len(chosen)]
                rng = random.Random(f"{seed} {number}")
                # Prices and prompts are kept by their path: each file has one of its own.
                root = Path(folder, str(number))
                _run(kind, rng, root, tallies[kind.name], label=f"file {number}")
                shutil.rmtree(root)
    finally:
        logger.enable("lmms_eval_captions")
    if _peak_mb() - before > MOST_MB:
        next(iter(tallies.values())).failures.append(f"memory: {_peak_mb() - before:.0f} MB more")
    return tallies


def _run(kind: Kind, rng: random.Random, root: Path, tally: Tally, *, label: str) -> None:
    parts = kind.make(rng)
    whole = parts.whole()
    expected = _read(kind, _Case("none", whole, frozenset()), root / "before")
    case = _mutate(kind, rng, parts)
    tally.files += 1
    where = f"{label} ({kind.name}, {case.what})"
    start = time.thread_time()
    try:
        with time_limit(_GIVE_UP_S, signal.ITIMER_REAL):
            units = _read(kind, case, root / "after")
    except CaptionsError as error:
        if case.what in _HARMLESS:
            tally.failures.append(f"{where}: refused: {error}")
        if not any(name in str(error) for name in _file_names(kind)):
            tally.failures.append(f"{where}: the error does not name the file: {error}")
        if len(str(error)) > 2000:
            tally.failures.append(f"{where}: an error of {len(str(error))} characters")
    except TooSlowError:
        tally.failures.append(f"{where}: given up after {_GIVE_UP_S} s")
    except Exception as error:  # noqa: BLE001 - whatever a reader raises is looked for
        tally.failures.append(f"{where}: raised {error!r:.300}")
    else:
        tally.read += 1
        tally.failures += [f"{where}: {text}" for text in _differences(kind, case, expected, units)]
    elapsed_s = time.thread_time() - start
    tally.slowest_s = max(tally.slowest_s, elapsed_s)
    if elapsed_s > MOST_S:
        tally.failures.append(f"{where}: took {elapsed_s:.1f} s")


def _file_names(kind: Kind) -> tuple[str, ...]:
    path = Path(kind.path)
    # A table in a zip file is named by itself, a folder of logs without a log by the folder.
    return (path.name, "gpt4o_eval_x.csv", str(path.parent) if path.parent.name else path.name)


def _read(kind: Kind, case: _Case, root: Path) -> Units:
    path = root / (f"{kind.path}.gz" if case.is_gz else kind.path)
    path.parent.mkdir(parents=True)
    if case.place == "folder":
        path.mkdir()
    elif case.place == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(kind.wrap(case.data) if kind.wrap else case.data)
    return kind.read(root)


def _differences(kind: Kind, case: _Case, expected: Units, units: Units) -> list[str]:
    """Parts that were not damaged and did not come out as they were."""
    if case.what in _HARMLESS:
        return [] if units == expected else ["a harmless change changes what is read"]
    if not kind.keeps_units:
        return []
    sound = expected.keys() - case.touched
    lost = sorted(name for name in sound if name not in units)
    altered = sorted(name for name in sound if name in units and units[name] != expected[name])
    return [
        f"{words} without a word: {names[:3]}"
        for words, names in (("lost", lost), ("altered", altered))
        if names
    ]


def _mutate(kind: Kind, rng: random.Random, parts: Parts) -> _Case:
    draw = rng.random()
    if draw < 0.3:
        return _of_file(kind, rng, parts)
    at = rng.randrange(len(parts.units))
    name, text = parts.units[at]
    if draw < 0.65 and kind.is_json:
        what, damaged = "value", _value(rng, text)
    elif draw < 0.65 and kind.keeps_units:
        what, damaged = "cell", _cell(rng, text)
    elif draw < 0.65:
        what, damaged = "yaml", b"\n" + rng.choice(_YAML).encode() + b"\n"
    elif draw < 0.7:
        what, damaged = "twice", text + parts.between + text
    else:
        what, damaged = "bytes", _damage(rng, text)
    units = [*parts.units[:at], (name, damaged), *parts.units[at + 1 :]]
    data = replace(parts, units=units).whole()
    return _Case(what, data, frozenset({name}))


def _damage(rng: random.Random, text: bytes) -> bytes:
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        start = rng.randint(0, len(text))
        end = min(len(text), start + rng.choice((0, 1, 1, 5, len(text))))
        draw = rng.randrange(4)
        if draw == 0 and start < len(text):
            flipped = bytes([text[start] ^ (1 << rng.randrange(8))])
            text = text[:start] + flipped + text[start + 1 :]
        elif draw == 1:
            text = text[:start] + text[end:]
        elif draw == 2:
            text = text[:end] + text[start:end] + text[end:]
        else:
            text = text[:start] + rng.choice(_BYTES) + text[start:]
    return text


def _value(rng: random.Random, text: bytes) -> bytes:
    """JSON, or a member of an object, with one value or key of it replaced or left out."""
    source = text.decode()
    is_member = not source.startswith(("{", "["))
    tree = json.loads(f"{{{source}}}" if is_member else source)
    places: list[tuple[Any, Any]] = []
    _collect(tree, places)
    if not places:
        return text
    holder, key = rng.choice(places[:40])
    draw = rng.random()
    mark = "\ue000mark\ue000"
    if draw < 0.15:
        del holder[key]
    elif draw < 0.3 and isinstance(holder, dict):
        holder[mark] = holder.pop(key)
    else:
        holder[key] = mark
    changed = json.dumps(tree, ensure_ascii=False)
    value = rng.choice(_VALUES)
    if '\ue000": ' in changed:
        value = rng.choice(('"a"', '"' + "k" * 5000 + '"', '""', '"video_id"', '"caption"'))
    changed = changed.replace(json.dumps(mark, ensure_ascii=False), value)
    return (changed[1:-1] if is_member else changed).encode()


def _collect(value: dict[Any, Any] | list[Any], places: list[tuple[Any, Any]]) -> None:
    """Add every member of a tree of JSON, as what holds it and its key or index."""
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        places.append((value, key))
        if isinstance(item, dict | list):
            _collect(item, places)


def _cell(rng: random.Random, text: bytes) -> bytes:
    cells = text.split(b",")
    cells[rng.randrange(len(cells))] = rng.choice(_CELLS)
    return b",".join(cells)


def _of_file(kind: Kind, rng: random.Random, parts: Parts) -> _Case:
    whole = parts.whole()
    name, change = rng.choice(_FILE_CHANGES)
    data = change(rng, whole)
    is_gz = name in {"gzip", "members", "gzip, cut", "gzip, flipped", "plain, named gz", "bomb"}
    if (is_gz and not kind.may_be_gz) or (kind.wrap and name == "gzip, plain name"):
        return _Case("none", whole, frozenset())
    if name == "blank" and not (kind.is_json and parts.between == b"\n"):
        return _Case("none", whole, frozenset())
    place = name if name in {"folder", "pipe"} else "file"
    everything = frozenset(part for part, _ in parts.units)
    return _Case(name, data, everything, is_gz=is_gz, place=place)


def _flip(rng: random.Random, data: bytes) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << rng.randrange(8))]) + data[place + 1 :]


_FILE_CHANGES: Final[tuple[tuple[str, Callable[[random.Random, bytes], bytes]], ...]] = (
    ("gzip", lambda _, data: gzip.compress(data, 1)),
    ("gzip, plain name", lambda _, data: gzip.compress(data, 1)),
    ("members", lambda _, data: b"".join(gzip.compress(p, 1) for p in (data[:99], data[99:]))),
    ("mark", lambda _, data: b"\xef\xbb\xbf" + data),
    ("crlf", lambda _, data: data.replace(b"\n", b"\r\n")),
    ("blank", lambda _, data: data.replace(b"\n", b"\n\n \n")),
    ("plain, named gz", lambda _, data: data),
    ("gzip, cut", lambda rng, data: (g := gzip.compress(data, 1))[: rng.randrange(1, len(g))]),
    ("gzip, flipped", lambda rng, data: _flip(rng, gzip.compress(data, 1))),
    ("bomb", lambda _, _data: gzip.compress(bytes(80 * 2**20), 1)),
    ("cut", lambda rng, data: data[: rng.randrange(len(data))]),
    ("utf-16", lambda _, data: data.decode().encode("utf-16")),
    ("utf-16-le", lambda _, data: data.decode().encode("utf-16-le")),
    ("latin-1", lambda _, data: data.decode().encode("latin-1", "replace") + b"\xe9"),
    ("cr", lambda _, data: data.replace(b"\n", b"\r")),
    ("zeros", lambda rng, data: data + bytes(rng.choice((1, 5000)))),
    ("deep", lambda rng, _data: rng.choice((b"[", b'{"a":', b'[{"a":')) * 100_000),
    ("random", lambda rng, data: rng.randbytes(len(data))),
    ("empty", lambda _, _data: b""),
    ("folder", lambda _, _data: b""),
    ("pipe", lambda _, _data: b""),
)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(tallies: dict[str, Tally]) -> bool:
    """Print a table and the first failures; whether every check held."""
    print(f"{'kind':18}{'files':>8}{'read':>8}{'violations':>12}{'slowest s':>11}")
    for name, tally in tallies.items():
        n_failures = len(tally.failures)
        print(
            f"{name:18}{tally.files:>8,}{tally.read:>8,}{n_failures:>12,}{tally.slowest_s:>11.2f}"
        )
    failures = [failure for tally in tallies.values() for failure in tally.failures]
    for failure in failures[:_SHOWN]:
        print(f"FAILED {failure}")
    return not failures


def main() -> int:
    """Run the campaign; 1 where a check failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--files", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--data", type=Path, help="root of local data; what it lacks is the sample's"
    )
    options = parser.parse_args()
    data = options.data or os.environ.get("LMMS_CAPTIONS_DATA")
    start = time.monotonic()
    fine = report(run_campaign(options.files, options.seed, data=Path(data) if data else None))
    print(f"{options.files:,} files, seed {options.seed}, {time.monotonic() - start:.0f} s")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
