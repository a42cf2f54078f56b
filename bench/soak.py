"""`python -m bench.soak`: a long load against the server of known timing, and the memory that each process of it held.

    python -m bench.soak --minutes 10 --rate 45000

Runs `lab load` as anyone would; ends with 1 when a process held more than it may, or tokens were lost.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from bench.server import KnownServer
from lab.environment import ROOT

LIMIT_MB = 500.0
ALL_TOKENS = 27_000_000
"""Ten minutes at 45,000 a second: what the memory is bounded for."""
SMALL_S = 3.0
FIRST_MS, GAP_MS, TOKENS = 200.0, 20.0, 100
POLL_S = 0.5
ROLES = {"lab.load": "loader", "lab.load.decoder": "decoder", "lab": "caller"}


@dataclass
class Held:
    """The most that each kind of process was seen to hold, in MB."""

    most: dict[str, float] = field(default_factory=dict)

    def see(self, root: psutil.Process) -> None:
        for process in [root, *root.children(recursive=True)]:
            with suppress(psutil.Error, OSError):
                role = ROLES.get(_module(process.cmdline()))
                if role is None:
                    continue
                self.most[role] = max(self.most.get(role, 0.0), _most_mb(process.pid))


def main() -> int:
    given = _arguments()
    per_slot = TOKENS / (FIRST_MS + (TOKENS - 1) * GAP_MS) * 1000
    slots = max(1, round(given.rate / per_slot))
    small, held = Held(), Held()
    with KnownServer(first_ms=FIRST_MS, gap_ms=GAP_MS, tokens=TOKENS) as server:
        _load(server.root, 1, SMALL_S, 1, small)
        found = _load(server.root, slots, given.minutes * 60, given.processes, held)
    print(f"{given.minutes:g} min, {slots} slots")
    return _report(found, held, small)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--rate", type=float, default=45_000.0, help="tokens per second that the server should write")
    parser.add_argument("--processes", type=int, default=1, help="loader processes")
    return parser.parse_args()


def _load(root: str, slots: int, seconds: float, processes: int, held: Held) -> Mapping[str, Any]:
    command = [
        sys.executable, "-m", "lab", "load", "--base-url", f"{root}/v1", "--model", "m", "--json", "--no-probe",
        "--concurrency", str(slots), "--duration", str(seconds), "--output-tokens", str(TOKENS),
        "--processes", str(processes),
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "said.json"
        with out.open("wb") as said:
            process = subprocess.Popen(command, cwd=ROOT, stdout=said)
            over = threading.Event()
            watcher = threading.Thread(target=_watch, args=(psutil.Process(process.pid), over, held))
            watcher.start()
            status = process.wait()
            over.set()
            watcher.join()
        if status != 0:
            raise SystemExit(f"lab load ended with {status}")
        return dict(json.loads(out.read_bytes()))


def _watch(process: psutil.Process, over: threading.Event, held: Held) -> None:
    while not over.wait(POLL_S if held.most else 0.02):
        with suppress(psutil.Error):
            held.see(process)


def _module(command: list[str]) -> str:
    return command[command.index("-m") + 1] if "-m" in command else ""


def _most_mb(pid: int) -> float:
    """The system's own mark of the most that was resident."""
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def _report(found: Mapping[str, Any], held: Held, small: Held) -> int:
    tokens = int(found["output_tokens"] or 0)
    print(f"{tokens:,} tokens, {found['output_tokens_per_s']:,.0f} a second; failed: {found['failed'] or 'none'}")
    for role, most in sorted(held.most.items()):
        print(f"{role:<8} held at most {most:6.0f} MB")
    before = small.most["caller"]
    expected = before + (held.most["caller"] - before) * max(1.0, ALL_TOKENS / max(1, tokens))
    print(f"caller   of a small load {before:.0f} MB; of {ALL_TOKENS:,} tokens at most {expected:.0f} MB")
    over = [role for role, most in {**held.most, "caller": expected}.items() if most > LIMIT_MB]
    for role in over:
        print(f"the {role} held more than {LIMIT_MB:g} MB")
    return 1 if over or found["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
