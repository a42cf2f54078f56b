"""What a launch runs first: tells the guard who the engine is, then becomes the engine.

`python -I -S gate.py GUARD_FD REPORT_FD COMMAND …`, run as a script by `lab.engine.process`. It has the engine's pid,
session, environment and output from its first moment on, and `exec` keeps all of them: so the guard knows every
engine before there is one. Where the guard is gone nothing is started. Both descriptors end with the `exec`; a failed
one is reported by its error number. Standard library only, and little of it: each launch waits for this.
"""

import os
import sys


def main(arguments: list[str]) -> int:
    guard, report = int(arguments[0]), int(arguments[1])
    command = arguments[2:]
    os.set_inheritable(guard, False)
    os.set_inheritable(report, False)
    try:
        os.write(guard, f"{os.getpid()} {_start_ticks()}\n".encode())
        os.execvpe(command[0], command, os.environ)  # noqa: S606  a list, and no shell
    except OSError as problem:
        os.write(report, str(problem.errno).encode())
        return 127


def _start_ticks() -> int:
    """When this process started, in the kernel's own count; 0 on a system that does not tell."""
    try:
        with open("/proc/self/stat", "rb") as file:  # noqa: PTH123  importing pathlib takes as long as all the rest
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
