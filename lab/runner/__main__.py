"""`python -m lab.runner`: the runner of this host in the foreground."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from types import FrameType

from lab.environment import Environment, read_environment
from lab.findings import LabError
from lab.host.lock import hold_lock
from lab.host.run_folder import ready_run_folder
from lab.messages import word_finding


def main() -> int:
    """Hold the host's lock and work until asked to end.

    Exit status: 0 ended in order, 1 failed (the traceback stands on stderr), 2 where the lock is taken, or the
    database or the folder for its logs cannot be used.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in ("httpx", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    shutdown = threading.Event()

    def ask_to_end(_number: int, _frame: FrameType | None) -> None:
        shutdown.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ask_to_end)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # under nohup a closed terminal changes nothing
        signal.signal(signal.SIGHUP, ask_to_end)
    try:
        _run(read_environment(), shutdown)
    except LabError as problem:
        for finding in problem.findings:
            print(" ".join(word_finding(finding).split()), file=sys.stderr)  # noqa: T201
        return 2
    except Exception:  # the edge of the process: whoever reads runner.log needs the traceback
        logging.getLogger("lab.runner").exception("the runner failed")
        return 1
    return 0


def _run(env: Environment, shutdown: threading.Event) -> None:
    ready_run_folder(env.run_dir)
    with hold_lock(env.lock_file, env.database_url):
        # imported under the lock: who waits for the runner sees at once that it is there
        from lab.runner.loop import run_until

        run_until(env, shutdown)


if __name__ == "__main__":
    sys.exit(main())
