"""Format, lint, types and every test layer. `--static` stops before the tests; other arguments go to pytest."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.chromium import NoChromiumError, find_chromium  # noqa: E402

STATIC = (
    ("format", ["ruff", "format", "--check", "."]),
    ("lint", ["ruff", "check", "."]),
    ("types", ["mypy"]),
)


def main(arguments: list[str]) -> int:
    for name, command in STATIC:
        if _run(name, command, dict(os.environ)) != 0:
            return 1
    if arguments == ["--static"]:
        return 0
    try:
        chromium = find_chromium()
    except NoChromiumError as missing:
        print(f"check: {missing}", file=sys.stderr)
        return 1
    environment = {**os.environ, "LAB_CHROMIUM": str(chromium), "PYTHONDONTWRITEBYTECODE": "1"}
    return _run("tests", ["pytest", "-rs", "--durations=15", *arguments], environment)


def _run(name: str, command: list[str], environment: dict[str, str]) -> int:
    print(f"check: {name}", flush=True)
    started = time.monotonic()
    code = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, env=environment, check=False).returncode
    print(f"check: {name} {'passed' if code == 0 else 'FAILED'} in {time.monotonic() - started:.0f} s", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
