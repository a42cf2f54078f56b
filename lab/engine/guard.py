"""Ends an engine whose runner is gone, and keeps its log within its limit: `python -m lab.engine.guard LOG [BYTES]`.

Started by `lab.engine.process` before the engine, so that there is no moment at which an engine has no guard. Its
standard input is a pipe: the engine's own first step (`lab.engine.gate`) writes pid and start into it, and its end
comes when the runner closes it or dies, at whatever moment. By then a stopped engine is gone and there is nothing to
do; an engine that still runs is ended as a whole group.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from pathlib import Path

from lab.engine.log_limit import LIMIT_BYTES, keep_within
from lab.engine.orphan import end_orphan
from lab.host.process_identity import ProcessIdentity, identity, identity_from_ticks

# how often the log's size is looked at
LOOK_S = 0.25


def main(arguments: list[str]) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it lives as long as the pipe, and no longer
    log_path = Path(arguments[0])
    limit_bytes = int(arguments[1]) if len(arguments) > 1 else LIMIT_BYTES
    engine = _watch(log_path, limit_bytes)
    if engine is not None:
        end_orphan(engine, engine.pid)
    keep_within(log_path, limit_bytes)
    return 0


def _watch(log_path: Path, limit_bytes: int) -> ProcessIdentity | None:
    """Who the engine is, once the pipe has ended; None where none was started."""
    told = b""
    pipe = sys.stdin.fileno()
    engine: ProcessIdentity | None = None
    while True:
        if select.select([pipe], [], [], LOOK_S)[0]:
            piece = os.read(pipe, 4096)
            if not piece:
                return engine
            told += piece
            if b"\n" in told and engine is None:
                engine = _engine(told)
        keep_within(log_path, limit_bytes)


def _engine(told: bytes) -> ProcessIdentity | None:
    pid, ticks = (int(word) for word in told.split()[:2])
    return identity_from_ticks(pid, ticks) if ticks else identity(pid)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
