"""Opening a clip: only regular files, only real video containers, and no other file."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from av.container import InputContainer
    from av.video.stream import VideoStream

MOST_PIXELS: Final = 2**28
"""Larger pictures, such as 16384 x 16385, are refused unread."""
GIANT: Final = 8192 * 4320
"""Pictures of more pixels than 8K are shrunk as they are converted, never held complete as RGB."""
_DEFAULT_PIXELS: Final = 5_000_000
"""Bonus of a stream that is marked as the default, as in ffmpeg."""
_FORMATS: Final = (
    "apng,asf,asf_o,av1,avi,avs2,avs3,bmp_pipe,cavsvideo,dirac,dnxhd,dpx_pipe,dv,evc,exr_pipe,flv,"
    "gif,gif_pipe,gxf,h261,h263,h264,hdr_pipe,hevc,ivf,ivr,j2k_pipe,jpeg_pipe,jpegls_pipe,"
    "jpegxl_anim,jpegxl_pipe,kux,live_flv,m4v,matroska,mjpeg,mjpeg_2000,mov,mpeg,mpegts,mpegvideo,"
    "mxf,nut,nuv,obu,ogg,pam_pipe,pbm_pipe,pgm_pipe,pgmyuv_pipe,png_pipe,ppm_pipe,psd_pipe,pva,"
    "qoi_pipe,rm,swf,tiff_pipe,vc1,vc1test,vvc,webm,webp_pipe,wtv,yuv4mpegpipe"
)
"""Containers, as libavformat calls them, that hold their pictures themselves. What names other
files is not among them: concat, hls, dash, sdp, image2, tedcaptions."""
_LISTS: Final = (b"#EXTM3U", b"ffconcat", b"dash:profile", b"c=IN IP")
"""Marks by which older versions of FFmpeg recognise HLS, concat, DASH and SDP."""
_PROBED_BYTES: Final = 2**21
"""At least as much as FFmpeg reads to recognise a file, and a title before it."""
_KINDS: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


class UnreadableError(DataError):
    """One reader cannot read a file; the text says why in a few words."""


class RefusedError(DataError):
    """No reader can read the file, or should; the text says why in a few words."""


def check_file(path: Path) -> int:
    """Return the size in bytes of a regular file; opening a pipe or a device may wait for ever."""
    try:
        status = path.stat()
    except (OSError, ValueError) as error:  # ValueError: a zero byte within the name.
        what = "a link to nothing" if path.is_symlink() else "none"
        raise DataError(
            f"expected a video file, found {what} at {str(path)!r} ({_reason(error)}); "
            "check the data folder"
        ) from error
    if not stat.S_ISREG(status.st_mode):
        kind = next((kind for is_kind, kind in _KINDS if is_kind(status.st_mode)), "no file")
        raise DataError(f"expected a video file, {path} is {kind}; check the data folder")
    if not status.st_size:
        raise DataError(f"expected a video file, {path} is empty; fetch it again")
    return status.st_size


@contextmanager
def open_clip(path: Path) -> Iterator[InputContainer]:
    """Open a file with a video stream that can be decoded, or raise a ``RefusedError``."""
    import av

    options = {
        "format_whitelist": _FORMATS,
        "protocol_whitelist": "file",  # never the network
        "enable_drefs": "0",  # a QuickTime file's references to other files
    }
    with nameless(path) as name:
        try:
            # Titles in old encodings are no reason to refuse a clip. ``options`` in place of
            # ``container_options`` makes PyAV 15 crash on MPEG-PS and FLV, whose streams come late.
            container: InputContainer = av.open(
                name, container_options=options, metadata_errors="replace"
            )
        except (av.FFmpegError, ValueError) as error:
            if isinstance(error, MemoryError):
                raise
            raise RefusedError(
                f"it is no video container that is read here ({_reason(error)}); lists that name "
                "other files, such as HLS, DASH, SDP and concat, are never opened"
            ) from error
        with container:
            context = pick_stream(container).codec_context
            check_size(context.width, context.height)
            yield container


@contextmanager
def nameless(path: Path) -> Iterator[str]:
    """Open a regular file under a neutral name: no URL, pattern or extension."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        raise RefusedError(f"it cannot be opened ({_reason(error)})") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise RefusedError("it is no regular file")
        has_names = Path("/dev/fd").is_dir()
        yield f"/dev/fd/{descriptor}" if has_names else os.path.abspath(path)  # noqa: PTH100
    finally:
        os.close(descriptor)


def may_be_list(path: Path) -> bool:
    """Return if an older FFmpeg, which has no whitelist, may see a list of other files here."""
    with path.open("rb") as file:
        head = file.read(_PROBED_BYTES)
    return any(mark in head for mark in _LISTS)


def pick_stream(container: InputContainer) -> VideoStream:
    """Return the stream that ffmpeg shows by default: the largest one that is no cover."""
    from av.stream import Disposition

    if not container.streams.video:
        raise RefusedError("found no video stream")
    streams = [s for s in container.streams.video if not s.disposition & Disposition.attached_pic]
    if not streams:
        raise RefusedError("its only picture is an attached cover: it is sound, not a video")
    usable = [stream for stream in streams if stream.codec_context is not None]
    if not usable:
        raise RefusedError("found no decoder for its pictures (an unknown or missing codec)")

    def rank(stream: VideoStream) -> int:
        context = stream.codec_context
        is_default = bool(stream.disposition & Disposition.default)
        return context.width * context.height + _DEFAULT_PIXELS * is_default

    return max(usable, key=rank)


def check_size(width: int, height: int) -> None:
    """Raise a ``RefusedError`` for a picture that would fill the memory."""
    if width * height > MOST_PIXELS:
        raise RefusedError(
            f"its pictures of {width} x {height} are larger than the {MOST_PIXELS:,} pixels "
            "that are read"
        )


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
