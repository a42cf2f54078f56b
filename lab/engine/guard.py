"""Ends an engine whose runner is gone: `python -m lab.engine.guard PID START_TIME`, started by `lab.engine.process`.

It waits for the end of its standard input, which comes when the runner closes it or dies. By then a stopped engine is
gone and there is nothing to do; an engine that still runs is ended as a whole group.
"""

from __future__ import annotations

import signal
import sys

from lab.engine.orphan import end_orphan
from lab.host.process_identity import ProcessIdentity


def main(arguments: list[str]) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it lives as long as the pipe, and no longer
    pid, start_time = int(arguments[0]), float(arguments[1])
    while sys.stdin.buffer.read(4096):
        pass
    end_orphan(ProcessIdentity(pid, start_time), pid)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
