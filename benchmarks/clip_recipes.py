"""Valid clips of numbered frames over codecs, containers, group structures and odd features."""

from __future__ import annotations

import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from clip_codecs import CODECS, CONTAINERS, mov_options
from numbered_frames import picture

_MOV: Final = ("mp4", "mov", "3gp", "fmp4")
_STREAMS: Final = ("ts", "m2ts", "ps", "vob")
_SOUND: Final = {
    "avi": "libmp3lame", "ps": "mp2", "vob": "mp2", "asf": "wmav2", "ogg": "libvorbis",
    "webm": "libopus", "nut": "mp2", "mxf": "pcm_s16le", "wtv": "mp2",
}  # fmt: skip
_TIMEOUT_S: Final = 60
_MATRICES: Final = (
    (1, 0, 0, 1), (0, 1, -1, 0), (-1, 0, 0, -1), (0, -1, 1, 0),
    (-1, 0, 0, 1), (1, 0, 0, -1), (0, 1, 1, 0), (0, -1, -1, 0),
)  # fmt: skip
"""Quarter turns, then flips: a, b, c, d of the display matrix."""


class RecipeError(Exception):
    """Ffmpeg does not write this combination."""


@dataclass(frozen=True)
class Recipe:
    """Recipe of a clip."""

    codec: str
    container: str
    shape: str

    def __str__(self) -> str:
        return f"{self.codec} in {self.container}, {self.shape}"


def draw(random: Random) -> Recipe:
    """A recipe; common codecs come more often."""
    names = [*CODECS, *("h264",) * 12, *("hevc", "mpeg4", "mpeg2", "vp9") * 3, "av1", "vp8"]
    name = random.choice(names)
    codec = CODECS[name]
    container = random.choice(codec.containers)
    shapes = [shape for shape in codec.shapes if _fits(shape, container)]
    shape = random.choice(shapes) if shapes and random.random() < 0.65 else "plain"
    return Recipe(name, container, shape)


def write(recipe: Recipe, random: Random, path: Path) -> list[float] | None:
    """Write a clip.

    Returns:
        When its frames are to be shown, in seconds, where that is known.

    Raises:
        RecipeError: If ffmpeg cannot write it so.
    """
    codec = CODECS[recipe.codec]
    size = random.choice(codec.sizes)
    options = ["-c:v", codec.encoder, *codec.options(random)]
    options += ["-threads", "1", "-pix_fmt", random.choice(codec.pixels)]
    rate = random.choice(["10", "12", "24", "25", "30", "30000/1001", "50"])
    if recipe.codec in ("mpeg1", "mpeg2"):
        rate = random.choice(["24", "25", "30", "30000/1001", "50"])
    maker = _Maker(recipe, random, path, size, rate, options)
    getattr(maker, f"_{recipe.shape}", maker.plain)()
    if not path.is_file() or not path.stat().st_size:
        raise RecipeError("ffmpeg writes nothing")
    return maker.times_s() if recipe.shape not in ("trim", "jump", "resize") else None


class _Maker:
    """Writes one clip; a method a shape."""

    def __init__(
        self,
        recipe: Recipe,
        random: Random,
        path: Path,
        size: tuple[int, int],
        rate: str,
        options: list[str],
    ) -> None:
        self.recipe, self.random, self.path, self.size = recipe, random, path, size
        self.rate, self.options = rate, options
        self.n_frames = random.randint(5, random.choice([12, 30, 60]))
        self.slower: int | None = None
        muxer, *settings = CONTAINERS[recipe.container]
        if recipe.container in ("mp4", "mov", "3gp"):
            settings += mov_options(random)
        self.target = ["-f", muxer, *settings]

    @property
    def seconds(self) -> float:
        """Length of the clip."""
        top, _, bottom = self.rate.partition("/")
        return self.n_frames * float(bottom or 1) / float(top)

    def times_s(self) -> list[float]:
        """When the frames are shown."""
        step_s = self.seconds / self.n_frames
        late = self.slower or 1 << 30
        return [step_s * (n + n * n // late) for n in range(self.n_frames)]

    def plain(
        self,
        *extra: str,
        inputs: tuple[str, ...] = (),
        before: tuple[str, ...] = (),
        path: Path | None = None,
        first: int = 0,
        size: tuple[int, int] | None = None,
    ) -> None:
        """Encode the numbered frames."""
        width, height = size or self.size
        raw = b"".join(
            picture(first + index, width, height).tobytes() for index in range(self.n_frames)
        )
        source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}"]
        source += ["-r", self.rate, "-i", "pipe:0"]
        options = [*self.options, *extra, *self.target]
        run([*before, *source, *inputs, *options, str(path or self.path)], raw)

    def _late(self) -> None:
        self.plain("-output_ts_offset", str(round(self.random.uniform(0.1, 100), 3)))

    def _wrap(self) -> None:
        self.plain("-output_ts_offset", str(round(95443.7 - 1.4 - self.seconds / 2, 3)))

    def _vfr(self) -> None:
        k = self.random.choice([2, 5, 9])
        self.slower = 4 * k
        self.plain("-vf", f"setpts=(N+floor(N*N/{4 * k}))/FR/TB", "-fps_mode", "passthrough")

    def _aspect(self) -> None:
        self.plain("-aspect", self.random.choice(["16:9", "4:3", "1:2"]))

    def _colour(self) -> None:
        matrix = self.random.choice(["bt709", "bt470bg", "smpte170m", "bt2020nc"])
        spread = self.random.choice(["tv", "pc"])
        scale = f"scale=out_color_matrix={matrix}:out_range={spread}"
        self.plain("-vf", scale, "-colorspace", matrix, "-color_range", spread)

    def _trim(self) -> None:
        whole = self.path.with_name(f"whole_{self.path.name}")
        self.plain(path=whole)
        start = round(self.seconds * self.random.uniform(0.05, 0.6), 3)
        line = ["-ss", str(start)]
        if self.random.random() < 0.3:
            line += ["-t", str(round(self.seconds * 0.35, 3))]
        line += ["-i", str(whole), "-c", "copy"]
        line += self.random.choice(
            [[], [], ["-avoid_negative_ts", "disabled"], ["-avoid_negative_ts", "make_zero"],
             ["-copyts"], ["-copyinkf"]]
        )  # fmt: skip
        try:
            run([*line, *self.target, str(self.path)])
        finally:
            whole.unlink(missing_ok=True)

    def _sound(self) -> None:
        shift = str(round(self.random.uniform(0, 0.7), 3))
        before = self.random.choice([("-itsoffset", shift), ()])
        sine = ("-f", "lavfi", "-i", f"sine=r=48000:d={self.seconds}")
        audio = _SOUND.get(self.recipe.container, "aac")
        maps = self.random.choice([("-map", "0", "-map", "1"), ("-map", "1", "-map", "0")])
        inputs = sine if before else ("-itsoffset", shift, *sine)
        self.plain(*maps, "-c:a", audio, "-strict", "-2", inputs=inputs, before=before)

    def _two(self) -> None:
        larger = self.random.choice([0.5, 2])
        width, height = (int(side * larger) // 8 * 8 for side in self.size)
        graph = f"[0:v]split[a][b0];[b0]negate,scale={width}:{height}[b]"
        self.plain("-filter_complex", graph, "-map", "[a]", "-map", "[b]")

    def _cover(self) -> None:
        still = ("-f", "lavfi", "-i", "color=red:s=320x240:d=0.1")
        order = self.random.choice([("1:v", "0:v"), ("0:v", "1:v")])
        at = order.index("1:v")
        self.plain(
            *("-map", order[0], "-map", order[1], f"-c:v:{at}", "mjpeg", f"-frames:v:{at}", "1"),
            *(f"-pix_fmt:v:{at}", "yuvj420p", f"-disposition:v:{at}", "attached_pic"),
            inputs=still,
        )

    def _turn(self) -> None:
        self.plain("-metadata:s:v:0", f"rotate={self.random.choice([90, 180, 270])}")

    def _flip(self) -> None:
        self.plain()
        raw = bytearray(self.path.read_bytes())
        at = raw.index(b"tkhd") + 4 + 40
        a, b, c, d = (v << 16 for v in self.random.choice(_MATRICES))
        struct.pack_into(">9i", raw, at, a, b, 0, c, d, 0, 0, 0, 1 << 30)
        self.path.write_bytes(raw)

    def _resize(self) -> None:
        width, height = self.size
        self._joined(self.seconds + 1.4, (height // 8 * 8 * 2, width // 8 * 8))

    def _jump(self) -> None:
        self._joined(self.random.choice([0.0, 30.0, 1000.0]), self.size)

    def _joined(self, offset_s: float, size: tuple[int, int]) -> None:
        """Two transport or program streams in one, the second with other stamps or size."""
        target, parts = self.target, []
        if self.recipe.container not in _STREAMS:
            self.target = ["-f", "mpegts"]
        for number, shift in enumerate((0.0, offset_s)):
            part = self.path.with_name(f"part{number}_{self.path.name}")
            parts.append(part)
            self.plain(
                *("-output_ts_offset", str(round(shift, 3))),
                path=part,
                first=number * self.n_frames,
                size=size if number else self.size,
            )
        joined = b"".join(part.read_bytes() for part in parts)
        for part in parts:
            part.unlink()
        self.path.write_bytes(joined)
        if self.recipe.container not in _STREAMS:
            stream = self.path.with_name(f"joined_{self.path.name}")
            self.path.rename(stream)
            try:
                run(["-i", str(stream), "-c", "copy", *target, str(self.path)])
            finally:
                stream.unlink()

    def _nostamps(self) -> None:
        self.plain("-bsf:v", "setts=pts=NOPTS")

    def _twins(self) -> None:
        self.plain("-bf", "0", "-bsf:v", "setts=ts='if(mod(N\\,3)\\,TS\\,PREV_OUTTS)'")


def run(arguments: list[str], stdin: bytes = b"") -> None:
    """Run ffmpeg.

    Raises:
        RecipeError: If it fails, with its last words.
    """
    line = ["ffmpeg", "-nostdin", "-v", "error", "-y", *arguments]
    if stdin:
        line.remove("-nostdin")
    try:
        done = subprocess.run(
            line, input=stdin, capture_output=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise RecipeError("ffmpeg does not end") from error
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise RecipeError(words[-1] if words else f"ffmpeg ends with {done.returncode}")


def _fits(shape: str, container: str) -> bool:
    allowed = {
        "turn": _MOV, "flip": _MOV, "cover": ("mp4", "mov", "mkv"), "wrap": ("ts", "m2ts", "ps"),
        "jump": (*_STREAMS, "mkv"), "resize": ("ts", "mkv", "mp4"),
        "two": (*_MOV, "mkv", "ts", "avi", "nut", "webm"), "nostamps": ("avi", "nut", "mkv"),
        "vfr": (*_MOV, "mkv", "webm", "ts", "flv", "nut", "gif"),
        "late": tuple(CONTAINERS.keys() - {"avi"}),
        "aspect": (*_MOV, "mkv", "webm", "ts", "ps", "vob", "avi"),
        "sound": (*_MOV, *_SOUND, "mkv", "ts", "m2ts", "flv"),
    }  # fmt: skip
    return container in allowed.get(shape, (container,))
