"""Server-sent events decoded byte by byte as the WHATWG specification says.

Works on bytes: line ends are ASCII, so a character that is split between two reads is whole again once its line is.
"""

from __future__ import annotations

import re
from typing import NamedTuple

BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\n|\r")


class SseEvent(NamedTuple):
    """One dispatched event; `name` is empty unless the stream named it."""

    data: bytes
    name: bytes = b""


class SseDecoder:
    """Feed it reads of any size; it gives back the events that each read completed."""

    __slots__ = ("_data", "_name", "_rest", "_skip_line_feed", "_start")

    def __init__(self) -> None:
        self._start: bytes | None = b""  # the first bytes, until it is known whether they are a byte-order mark
        self._rest = bytearray()  # the line that is not yet ended
        self._data: list[bytes] = []
        self._name = b""
        self._skip_line_feed = False

    def feed(self, read: bytes) -> list[SseEvent]:
        if self._start is not None:
            read = self._after_bom(read)
        if self._skip_line_feed and read:
            self._skip_line_feed = False
            if read[:1] == b"\n":
                read = read[1:]
        if not read:
            return []
        if self.is_between_events() and _is_one_plain_event(read):
            return [SseEvent(read[6:-2])]
        return self._by_lines(read)

    def is_between_events(self) -> bool:
        """True when the next byte begins a new event."""
        return not (self._rest or self._data or self._name or self._skip_line_feed) and self._start is None

    def pending(self) -> bytes:
        """The data of the event that the stream's end left open; such an event is never dispatched."""
        if self._rest.startswith(b"data:"):
            return b"\n".join([*self._data, _value(bytes(self._rest[5:]))])
        return b"\n".join(self._data)

    def _after_bom(self, read: bytes) -> bytes:
        start = (self._start or b"") + read
        if len(start) < len(BOM) and BOM.startswith(start):
            self._start = start
            return b""
        self._start = None
        return start.removeprefix(BOM)

    def _by_lines(self, read: bytes) -> list[SseEvent]:
        first, *others = _LINE_END.split(read)
        self._rest += first
        if not others:
            return []
        lines = [bytes(self._rest), *others]
        self._rest = bytearray(lines.pop())
        self._skip_line_feed = read[-1:] == b"\r"
        events: list[SseEvent] = []
        for line in lines:
            self._take_line(line, events)
        return events

    def _take_line(self, line: bytes, events: list[SseEvent]) -> None:
        if not line:
            if self._data:
                events.append(SseEvent(b"\n".join(self._data), self._name))
                self._data = []
            self._name = b""
            return
        field, _, value = line.partition(b":")  # a comment has an empty field name
        if field == b"data":
            self._data.append(_value(value))
        elif field == b"event":
            self._name = _value(value)


def _value(raw: bytes) -> bytes:
    return raw[1:] if raw[:1] == b" " else raw


def _is_one_plain_event(read: bytes) -> bool:
    """True for the form that nearly every read has: one `data: …` line and the blank line after it."""
    return read[:6] == b"data: " and read[-2:] == b"\n\n" and b"\r" not in read and read.find(b"\n") == len(read) - 2
