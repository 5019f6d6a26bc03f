"""Which codecs and containers clips are written in, with options drawn at random."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import Final

Options = Callable[[Random], list[str]]


@dataclass(frozen=True)
class Codec:
    """An encoder of ffmpeg's, and where what it writes is met."""

    encoder: str
    containers: tuple[str, ...]
    options: Options = lambda _random: []
    pixels: tuple[str, ...] = ("yuv420p",)
    sizes: tuple[tuple[int, int], ...] = ((64, 48), (80, 60), (96, 64), (160, 120))
    shapes: tuple[str, ...] = ()
    """Further properties of a file; see ``clip_recipes``."""


def _chance(random: Random, share: float, *options: str) -> list[str]:
    return list(options) if random.random() < share else []


def _h264(random: Random) -> list[str]:
    x264 = [
        f"bframes={random.randint(0, 4)}",
        f"b-pyramid={random.choice(['none', 'strict', 'normal'])}",
        f"b-adapt={random.randint(0, 1)}",
        f"ref={random.randint(1, 4)}",
        f"keyint={random.choice([1, 4, 9, 12, 250, 250])}",
        f"open-gop={random.randint(0, 1)}",
        f"sliced-threads={random.randint(0, 1)}",
        f"scenecut={random.choice([0, 40])}",
    ]
    if random.random() < 0.15:
        x264 += ["intra-refresh=1"]
    if random.random() < 0.15:
        x264 += [random.choice(["tff=1", "bff=1", "fake-interlaced=1"])]
    return ["-crf", "18", "-preset", "ultrafast", "-x264-params", ":".join(x264)]


def _hevc(random: Random) -> list[str]:
    x265 = [
        "log-level=none",
        "pools=none",
        "frame-threads=1",
        "ctu=16",
        f"bframes={random.randint(0, 4)}",
        f"b-pyramid={random.randint(0, 1)}",
        f"keyint={random.choice([1, 4, 9, 12, 250])}",
        f"open-gop={random.randint(0, 1)}",
        f"scenecut={random.choice([0, 40])}",
        f"radl={random.choice([0, 0, 2])}" if random.random() < 0.3 else "radl=0",
    ]
    return ["-crf", "18", "-preset", "ultrafast", "-x265-params", ":".join(x265)]


def _vpx(random: Random) -> list[str]:
    return [
        *("-crf", "10", "-b:v", "1M", "-cpu-used", "8", "-deadline", "realtime"),
        *("-g", random.choice(["1", "5", "12", "128"])),
        *_chance(random, 0.6, "-deadline", "good", "-auto-alt-ref", "1", "-lag-in-frames", "16"),
    ]


def _av1(random: Random) -> list[str]:
    return [
        *("-preset", "12", "-crf", "20", "-svtav1-params", "enable-tf=0"),
        *("-g", random.choice(["1", "8", "16", "60"])),
    ]


def _aom(random: Random) -> list[str]:
    return [
        *("-cpu-used", "8", "-crf", "20", "-lag-in-frames", random.choice(["0", "10"])),
        *("-g", random.choice(["1", "8", "60"])),
        *_chance(random, 0.3, "-aom-params", "enable-fwd-kf=1"),
    ]


def _mpeg(random: Random) -> list[str]:
    n_b = random.randint(0, 4)
    return [
        *("-q:v", "3", "-bf", str(n_b), "-g", random.choice(["1", "5", "12", "40"])),
        *_chance(random, 0.3, "-flags", "+cgop" if n_b else "+mv4"),
    ]


def _mpeg2(random: Random) -> list[str]:
    interlaced = _chance(random, 0.3, "-flags", "+ildct+ilme", "-top", random.choice("01"))
    return [*("-q:v", "3", "-bf", str(random.randint(0, 3))), "-g", "12", *interlaced]


def _mpeg4(random: Random) -> list[str]:
    return [
        *(
            "-q:v",
            "3",
            "-bf",
            str(random.randint(0, 4)),
            "-g",
            random.choice(["1", "5", "12", "60"]),
        ),
        *_chance(random, 0.2, "-flags", "+qpel"),
    ]


def _xvid(random: Random) -> list[str]:
    return ["-q:v", "3", "-bf", str(random.randint(0, 3)), "-g", random.choice(["5", "12", "60"])]


def _plain(random: Random) -> list[str]:
    return ["-q:v", "3", "-g", random.choice(["1", "5", "12"])]


_ODD: Final = ((49, 37), (65, 49), (96, 64))
_H263: Final = ((128, 96), (176, 144))
_COMMON: Final = ("late", "vfr", "trim", "sound", "two", "aspect", "colour")

CODECS: Final[Mapping[str, Codec]] = MappingProxyType(
    {
        "h264": Codec(
            "libx264",
            ("mp4", "mov", "mkv", "avi", "ts", "flv", "3gp", "nut", "es264", "ps", "m2ts", "fmp4"),
            _h264,
            ("yuv420p", "yuv420p", "yuvj420p", "yuv422p", "yuv444p", "yuv420p10le"),
            shapes=(*_COMMON, "turn", "flip", "cover", "resize", "wrap", "jump", "nostamps"),
        ),
        "hevc": Codec(
            "libx265",
            ("mp4", "mov", "mkv", "ts", "es265", "fmp4"),
            _hevc,
            ("yuv420p", "yuv420p10le"),
            shapes=(*_COMMON, "turn", "flip", "cover", "resize", "wrap", "jump"),
        ),
        "vp8": Codec("libvpx", ("webm", "mkv", "avi", "ivf"), _vpx, shapes=_COMMON),
        "vp9": Codec(
            "libvpx-vp9",
            ("webm", "mkv", "mp4", "ivf"),
            _vpx,
            ("yuv420p", "yuv420p", "yuv444p"),
            sizes=_ODD,
            shapes=_COMMON,
        ),
        "av1": Codec("libsvtav1", ("mp4", "mkv", "webm", "ivf", "obu"), _av1, shapes=_COMMON),
        "aom": Codec("libaom-av1", ("mp4", "mkv", "webm"), _aom, shapes=_COMMON),
        "mpeg1": Codec("mpeg1video", ("ps", "ts", "mkv", "avi", "m1v"), _mpeg, shapes=("late",)),
        "mpeg2": Codec(
            "mpeg2video",
            ("vob", "ps", "ts", "mkv", "mov", "avi", "m2v", "mp4", "wtv"),
            _mpeg2,
            ("yuv420p", "yuv422p"),
            shapes=("late", "sound", "two", "trim", "wrap", "jump", "aspect"),
        ),
        "mpeg4": Codec(
            "mpeg4",
            ("mp4", "avi", "mkv", "mov", "3gp", "nut", "ts", "m4v", "fmp4"),
            _mpeg4,
            shapes=(*_COMMON, "turn", "cover", "nostamps"),
        ),
        "xvid": Codec("libxvid", ("avi", "mkv", "mp4"), _xvid, shapes=("sound",)),
        "mjpeg": Codec(
            "mjpeg",
            ("avi", "mov", "mkv", "mp4", "nut"),
            lambda _random: ["-q:v", "3"],
            ("yuvj420p", "yuvj422p", "yuvj444p"),
            sizes=_ODD,
            # Before version 6 ffmpeg shows what an edit list cuts off of it.
            shapes=tuple(shape for shape in _COMMON if shape != "trim"),
        ),
        "prores": Codec("prores_ks", ("mov", "mkv"), pixels=("yuv422p10le",), shapes=_COMMON),
        "theora": Codec("libtheora", ("ogg",), _plain, shapes=("sound", "late", "trim")),
        "wmv2": Codec("wmv2", ("asf", "avi", "mkv"), _plain, shapes=("sound", "late", "trim")),
        "wmv1": Codec("wmv1", ("asf", "avi"), _plain, shapes=("sound",)),
        "msmpeg4": Codec("msmpeg4", ("avi", "asf", "mkv"), _plain, shapes=("sound",)),
        "flv1": Codec("flv", ("flv", "avi"), _plain, shapes=("sound", "late")),
        "h263": Codec("h263", ("3gp", "avi"), _plain, sizes=_H263, shapes=("sound",)),
        "ffv1": Codec(
            "ffv1",
            ("mkv", "avi", "nut", "mov"),
            lambda random: ["-g", random.choice(["1", "12"]), "-level", "3"],
            ("yuv420p", "bgr0", "yuv420p10le", "gray"),
            sizes=_ODD,
            shapes=_COMMON,
        ),
        "gif": Codec("gif", ("gif",), pixels=("rgb8",), sizes=_ODD, shapes=("vfr",)),
        "raw": Codec("rawvideo", ("avi", "nut", "mov", "mkv"), pixels=("yuv420p",)),
        "y4m": Codec("wrapped_avframe", ("y4m",), pixels=("yuv420p", "yuv444p")),
        "huffyuv": Codec("huffyuv", ("avi", "mkv"), pixels=("yuv422p", "rgb24")),
        "png": Codec("png", ("mov", "mkv", "avi"), pixels=("rgb24",), sizes=_ODD, shapes=("vfr",)),
        "apng": Codec("apng", ("apng",), pixels=("rgb24",), sizes=_ODD),
        "dnxhr": Codec(
            "dnxhd",
            ("mov", "mxf", "mkv"),
            lambda _random: ["-profile:v", "dnxhr_sq"],
            ("yuv422p",),
            sizes=((256, 120),),
        ),
        "qtrle": Codec("qtrle", ("mov",), pixels=("rgb24",)),
        "cinepak": Codec("cinepak", ("avi", "mov"), pixels=("rgb24",)),
        "vc2": Codec("vc2", ("mkv", "mov", "ts"), pixels=("yuv420p",)),
        "snow": Codec("snow", ("avi", "mkv"), lambda _random: ["-strict", "-2", "-q:v", "2"]),
    }
)

CONTAINERS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "mp4": ("mp4",),
        "fmp4": ("mp4", "-movflags", "frag_keyframe+empty_moov+default_base_moof"),
        "mov": ("mov",),
        "3gp": ("3gp",),
        "mkv": ("matroska",),
        "webm": ("webm",),
        "avi": ("avi",),
        "ts": ("mpegts",),
        "m2ts": ("mpegts", "-mpegts_m2ts_mode", "1"),
        "ps": ("mpeg",),
        "vob": ("vob",),
        "flv": ("flv",),
        "nut": ("nut",),
        "asf": ("asf",),
        "ogg": ("ogg",),
        "gif": ("gif",),
        "apng": ("apng",),
        "ivf": ("ivf",),
        "obu": ("obu",),
        "es264": ("h264",),
        "es265": ("hevc",),
        "m1v": ("mpeg1video",),
        "m2v": ("mpeg2video",),
        "m4v": ("m4v",),
        "mxf": ("mxf",),
        "wtv": ("wtv",),
        "y4m": ("yuv4mpegpipe",),
    }
)
"""Muxer and its options."""


def mov_options(random: Random) -> list[str]:
    """Return the layouts of an MP4 or MOV."""
    flags = random.choice(
        ["", "", "+faststart", "+negative_cts_offsets", "+frag_keyframe", "+frag_every_frame",
         "+dash", "+rtphint"]
    )  # fmt: skip
    return [
        *(["-movflags", flags] if flags else []),
        *_chance(random, 0.2, "-use_editlist", "0"),
        *_chance(random, 0.3, "-video_track_timescale", random.choice(["600", "90000", "1000"])),
    ]
