"""Terminals for tests: one that is only a text, and a real pseudo-terminal of a given width."""

from __future__ import annotations

import fcntl
import io
import os
import re
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


class TextTerminal(io.StringIO):
    """A text that says that it is a terminal; its width is not known."""

    def isatty(self) -> bool:
        return True


class Screen:
    def __init__(self) -> None:
        self.rows = [""]
        self._column = 0

    def write(self, text: str, width: int) -> None:
        """Take in what was written, as a terminal does that wraps long rows."""
        for character in re.findall(r"\x1b\[\w|.", text, re.DOTALL):
            if character == "\x1b[K":
                self.rows[-1] = self.rows[-1][: self._column]
            elif character == "\n":
                self.rows.append("")
                self._column = 0
            elif character == "\r":
                self._column = 0
            else:
                self._put(character, width)

    def _put(self, character: str, width: int) -> None:
        if self._column >= width:
            self.rows.append("")
            self._column = 0
        row = self.rows[-1].ljust(self._column)
        self.rows[-1] = row[: self._column] + character + row[self._column + 1 :]
        self._column += 1


class PseudoTerminal:
    """A terminal of the system's, that can be resized; :attr:`stream` is what programs write to."""

    def __init__(self, master: int, slave: int, stream: TextIO) -> None:
        self._master = master
        self._slave = slave
        self._width = 80
        self._bytes = bytearray()
        self.stream = stream
        self.screen = Screen()

    def resize(self, width: int) -> None:
        """Make it so many columns wide; what was written before was written to the old width.

        With 0 it knows neither its width nor its height, and wraps as one of 80 does.
        """
        self.take_in()
        self._width = width or 80
        size = struct.pack("HHHH", 24 if width else 0, width, 0, 0)
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, size)

    def take_in(self) -> Screen:
        self.stream.flush()
        os.set_blocking(self._master, False)
        try:
            while part := os.read(self._master, 65536):
                self._bytes += part
        except BlockingIOError:
            pass
        # A pseudo-terminal turns a line end into both.
        text = self._bytes.decode().replace("\r\n", "\n")
        self._bytes.clear()
        self.screen.write(text, self._width)
        return self.screen


@contextmanager
def pseudo_terminal(width: int) -> Iterator[PseudoTerminal]:
    """A terminal of so many columns."""
    master, slave = os.openpty()
    with os.fdopen(slave, "w", encoding="utf-8", closefd=False) as stream:
        terminal = PseudoTerminal(master, slave, stream)
        terminal.resize(width)
        try:
            yield terminal
        finally:
            stream.flush()
    os.close(slave)
    os.close(master)
