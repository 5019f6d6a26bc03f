"""Opening a clip: regular files alone, real video containers alone, and no other file besides."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.video.reading_errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from av.container import InputContainer
    from av.video.stream import VideoStream

MOST_PIXELS: Final = 2**28
"""Larger pictures than, say, 16384 x 16384 are refused unread."""
GIANT: Final = 8192 * 4320
"""Pictures of more pixels than 8K are shrunk as they are converted, and never held whole as RGB."""

_DEFAULT_PIXELS: Final = 5_000_000
"""What a stream marked as the default is preferred by, as ffmpeg does it."""

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
"""What older versions of FFmpeg tell HLS, concat, DASH and SDP by, whatever stands behind it."""
_PROBED_BYTES: Final = 2**21
"""At least so much as FFmpeg looks at to tell what a file is, and a title before it."""

_OPTIONS: Final = {
    "format_whitelist": _FORMATS,
    "protocol_whitelist": "file",  # never the network
    "enable_drefs": "0",  # a QuickTime file's references to other files
}


def check_file(path: Path) -> int:
    """The size in bytes of a regular file, which alone can be opened without waiting for ever.

    Raises:
        DataError: If there is none, or something else: a folder, a pipe, a device, a socket.
    """
    try:
        status = path.stat()
    except (OSError, ValueError) as error:  # ValueError: a zero byte within the name.
        what = "a link to nothing" if path.is_symlink() else "none"
        raise DataError(
            f"expected a video file, found {what} at {str(path)!r} ({_words(error)}); "
            "check the data folder"
        ) from error
    if not stat.S_ISREG(status.st_mode):
        raise DataError(
            f"expected a video file, {path} is {_kind(status.st_mode)}; check the data folder"
        )
    if not status.st_size:
        raise DataError(f"expected a video file, {path} is empty; fetch it again")
    return status.st_size


@contextmanager
def open_clip(path: Path) -> Iterator[InputContainer]:
    """An opened file with a video stream that can be decoded; see :func:`pick_stream`.

    Raises:
        RefusedError: If it is no container of pictures, or its pictures are too large or of a codec
            for which there is no decoder.
    """
    with nameless(path) as name:
        container = _opened(name)
        with container:
            context = pick_stream(container).codec_context
            check_size(context.width, context.height)
            yield container


@contextmanager
def nameless(path: Path) -> Iterator[str]:
    """A name of an opened regular file that says nothing: no URL, pattern or extension.

    Raises:
        RefusedError: If it is no regular file, or cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        raise RefusedError(f"it cannot be opened ({_words(error)})") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise RefusedError("it is no regular file")
        has_names = Path("/dev/fd").is_dir()
        yield f"/dev/fd/{descriptor}" if has_names else os.path.abspath(path)  # noqa: PTH100
    finally:
        os.close(descriptor)


def may_be_list(path: Path) -> bool:
    """Whether an older FFmpeg, which cannot be told what to open, may see a list of files here.

    Newer ones look at the name as well, and may take the same file for a broadcast.
    """
    with path.open("rb") as file:
        head = file.read(_PROBED_BYTES)
    return any(mark in head for mark in _LISTS)


def pick_stream(container: InputContainer) -> VideoStream:
    """The stream that ffmpeg shows where nobody chooses: the largest, and no cover.

    Raises:
        RefusedError: If there is none that can be decoded.
    """
    from av.stream import Disposition

    def rank(stream: VideoStream) -> int:
        context = stream.codec_context
        if context is None or stream.disposition & Disposition.attached_pic:
            return 0 if context else -1
        is_default = bool(stream.disposition & Disposition.default)
        return 1 + context.width * context.height + _DEFAULT_PIXELS * is_default

    if not container.streams.video:
        raise RefusedError("found no video stream")
    stream = max(container.streams.video, key=rank)
    if stream.codec_context is None:
        raise RefusedError("found no decoder for its pictures (an unknown or missing codec)")
    return stream


def _opened(name: str) -> InputContainer:
    import av

    try:
        # Titles in old encodings are no reason to refuse a clip. ``options`` in place of
        # ``container_options`` makes PyAV 15 crash on MPEG-PS and FLV, whose streams come late.
        container: InputContainer = av.open(
            name, container_options=dict(_OPTIONS), metadata_errors="replace"
        )
    except (av.FFmpegError, ValueError) as error:
        if isinstance(error, MemoryError):
            raise
        raise RefusedError(
            f"it is no video container that is read here ({_words(error)}); lists that name other "
            "files, such as HLS, DASH, SDP and concat, are never opened"
        ) from error
    return container


def check_size(width: int, height: int) -> None:
    """Stop at a picture that would fill the memory.

    Raises:
        RefusedError: If it has more than ``MOST_PIXELS``.
    """
    if width * height > MOST_PIXELS:
        raise RefusedError(
            f"its pictures of {width} x {height} are larger than the {MOST_PIXELS:,} pixels "
            "that are read"
        )


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "no regular file")


def _words(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
