"""A seeded campaign of random archives, cut, damaged and hostile, against ``archives.unpack``.

Each archive is a tar, plain or compressed, or a zip file: as benchmarks have them; cut at any place
or at a seam; with flipped bits or a hole of zeros; or made to attack (names, links, sizes, numbers,
bombs). Then it checks:

- only :class:`DataError` is raised, and its text names the archive;
- nothing is written outside the folder, no link and no device is made, nothing half is left;
- every file in the folder is byte for byte a member of the archive, and all of them are there: what
  was cut is never taken for whole. In a plain tar no checksum covers content and long names: there
  a flipped bit or a hole cannot be seen, and neither can a hole behind which all is zeros;
- attacks are refused; whole archives are not;
- no archive takes more than 5 seconds of processor time, nor the campaign 500 MB more memory.

    python benchmarks/archives.py --archives 10000 --seed 0
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import stat
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from unittest.mock import patch

from archive_makers import TARS, ZIPS, Archive, honest, hostile
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.data import archive_members, archives
from lmms_eval_captions.lmms_eval_tasks.data.archives import MARKER, unpack

MOST_S: Final = 5.0
MOST_MB: Final = 500
_SHOWN: Final = 20
_ORIGIN: Final = {"archive": "campaign"}
_ATTACKS: Final = (
    ("none", 15),
    ("cut", 25),
    ("flip", 20),
    ("hole", 8),
    ("tail", 4),
    ("hostile", 28),
)


@dataclass
class Tally:
    """What happened."""

    archives: Counter[str] = field(default_factory=Counter)
    unpacked: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    grown_mb: float = 0.0


@dataclass(frozen=True)
class _Case:
    """One archive on its way to be unpacked."""

    archive: Archive
    attack: str
    data: bytes
    touched: tuple[int, int] = (0, 0)
    """Part of the data that was changed."""

    @property
    def is_emptied(self) -> bool:
        """Whether the end of a plain tar is zeros from a hole on, as the end of a whole one is."""
        start, end = self.touched
        return self.archive.kind == "tar" and start < end and not self.data[start:].strip(b"\0")

    def touches(self, parts: Sequence[tuple[int, int]]) -> bool:
        """Whether a part was changed."""
        start, end = self.touched
        return any(start < part_end and end > part_start for part_start, part_end in parts)


def run_campaign(n_archives: int, seed: int) -> Tally:
    """Unpack so many archives; the same for the same seed."""
    tally = Tally()
    before = _peak_mb()
    with tempfile.TemporaryDirectory(prefix="archives-") as folder, _small_bounds():
        for number in range(n_archives):
            rng = random.Random(f"{seed} {number}")
            root = Path(folder, str(number))
            _run(_case(rng, root), root, tally, label=f"archive {number}")
            shutil.rmtree(root)
    tally.grown_mb = _peak_mb() - before
    if tally.grown_mb > MOST_MB:
        tally.failures.append(f"memory: {tally.grown_mb:.0f} MB more than before")
    return tally


@contextmanager
def _small_bounds() -> Iterator[None]:
    """Bounds that a small archive passes, as the real ones would take seconds each; and no bars."""
    with (
        patch.object(archive_members, "_ALWAYS_BYTES", 4 * 2**20),
        patch.object(archive_members, "MOST_FILES", 500),
        patch.object(archives, "tqdm", lambda members, **_: members),
    ):
        yield


def _case(rng: random.Random, root: Path) -> _Case:
    (attack,) = rng.choices(*zip(*_ATTACKS, strict=True))
    if attack == "hostile":
        archive = hostile(rng, str(root / "elsewhere"))
        return _Case(archive, attack, archive.data)
    archive = honest(rng, rng.choice((*TARS, "tar", *ZIPS, *ZIPS)))
    data = archive.data
    if attack == "cut":
        places = [rng.randrange(len(data)), *archive.seams, len(data) - rng.randint(1, 40)]
        place = min(max(0, rng.choice(places)), len(data) - 1)
        return _Case(archive, attack, data[:place])
    if attack == "flip":
        changed, place = bytearray(data), 0
        # The checksum of a tar header may miss two flips.
        for _ in range(1 if archive.kind == "tar" else rng.choice((1, 1, 2, 8))):
            place = rng.randrange(len(data))
            changed[place] ^= 1 << rng.randrange(8)
        return _Case(archive, attack, bytes(changed), (place, place + 1))
    if attack == "hole":
        start = rng.choice((rng.randrange(len(data)), rng.randrange(len(data)) // 512 * 512))
        end = min(len(data), start + rng.choice((512, 1024, 4096)))
        return _Case(archive, attack, data[:start] + bytes(end - start) + data[end:], (start, end))
    if attack == "tail":
        return _Case(archive, attack, data + rng.choice((rng.randbytes(700), data, bytes(600))))
    return _Case(archive, attack, data)


def _run(case: _Case, root: Path, tally: Tally, *, label: str) -> None:
    elsewhere, home = root / "elsewhere", root / "home"
    elsewhere.mkdir(parents=True)
    home.mkdir()
    path = home / f"videos.{case.archive.kind}"
    path.write_bytes(case.data)
    tally.archives[case.attack] += 1
    start = time.thread_time()
    failures = list(_unpack(case, path, tally))
    elapsed_s = time.thread_time() - start
    tally.slowest_s = max(tally.slowest_s, elapsed_s)
    if elapsed_s > MOST_S:
        failures.append(f"took {elapsed_s:.1f} s")
    if list(elsewhere.iterdir()) or sorted(p.name for p in root.iterdir()) != ["elsewhere", "home"]:
        failures.append("something was written outside the folder")
    where = f"{label} ({case.archive.kind}, {case.archive.hostile or case.attack})"
    tally.failures += [f"{where}: {text}" for text in failures]


def _unpack(case: _Case, path: Path, tally: Tally) -> Iterator[str]:
    """What is wrong with how an archive was unpacked or refused."""
    out, left = path.with_name("out"), [path.name]
    try:
        unpack(path, out, _ORIGIN)
    except DataError as error:
        if path.name not in str(error):
            yield f"the error does not name the archive: {error}"
        if case.attack == "none" or case.archive.hostile == "odd name":
            yield f"a whole archive is refused: {error}"
    except Exception as error:  # noqa: BLE001 - whatever unpacking raises is looked for
        yield f"raised {error!r:.300}"
    else:
        left = ["out", path.name]
        tally.unpacked[case.attack] += 1
        if case.archive.refused:
            yield "an attack is not refused"
        unpacked: dict[str, bytes] = {}
        yield from _read(out, unpacked)
        yield from _differences(case, unpacked)
    if sorted(entry.name for entry in path.parent.iterdir()) != left:
        yield "something is left behind"


def _read(folder: Path, unpacked: dict[str, bytes]) -> Iterator[str]:
    """Take up every file of a folder; what is none, or has odd rights, is told."""
    for parent, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(parent, name)
            mode = path.lstat().st_mode
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)) or mode & 0o7000:
                yield f"{path.name!r} is no plain file: mode {mode:o}"
            elif stat.S_ISREG(mode) and name != MARKER:
                unpacked[path.relative_to(folder).as_posix()] = path.read_bytes()


def _differences(case: _Case, unpacked: dict[str, bytes]) -> Iterator[str]:
    """What is not as it was in the archive."""
    members = case.archive.members
    if case.archive.hostile in {"vast header", "lies of a zip"}:
        # What it says, lies apart, is not known: content must be some member's.
        if not {*unpacked.values()} <= {*members.values(), b"", b"1"}:
            yield "content that no member has"
    elif case.touches(case.archive.long_names):
        return
    elif case.is_emptied:
        if not unpacked.keys() <= members.keys():
            yield "a file that is no member"
    elif case.touches(case.archive.contents):
        if unpacked.keys() != members.keys():
            yield f"{len(unpacked)} files, expected {len(members)}"
    elif unpacked != members:
        different = sorted(k for k in {*unpacked, *members} if unpacked.get(k) != members.get(k))
        yield f"{len(unpacked)} files of {len(members)}; not as they were: {different[:3]!r:.200}"


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(tally: Tally) -> bool:
    """Print the figures; whether every check held."""
    for attack, n in sorted(tally.archives.items()):
        print(f"{attack:10}{n:>8,} archives, {tally.unpacked[attack]:>6,} taken for whole")
    print(f"slowest {tally.slowest_s:.2f} s, {tally.grown_mb:.0f} MB more memory")
    for failure in tally.failures[:_SHOWN]:
        print(f"FAILED {failure}")
    print(f"{len(tally.failures):,} violations")
    return not tally.failures


def main() -> int:
    """Run the campaign; 1 where a check failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--archives", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.monotonic()
    fine = report(run_campaign(options.archives, options.seed))
    elapsed_s = time.monotonic() - start
    print(f"{options.archives:,} archives, seed {options.seed}, {elapsed_s:.0f} s")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
