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
LOADED_MINUTES = 10.0
FIRST_MS, GAP_MS, TOKENS = 200.0, 20.0, 100
POLL_S = 0.5
ROLES = {"lab.load": "loader", "lab.load.decoder": "decoder", "lab": "caller"}


@dataclass
class Held:
    """The most that each kind of process was seen to hold, in MB, and what the caller held before its load began."""

    most: dict[str, float] = field(default_factory=dict)
    caller_before: float = 0.0

    def see(self, root: psutil.Process) -> None:
        for process in [root, *root.children(recursive=True)]:
            with suppress(psutil.Error, OSError):
                role = _role(process.cmdline())
                self.most[role] = max(self.most.get(role, 0.0), _most_mb(process.pid))
        if "loader" not in self.most:
            self.caller_before = self.most.get("caller", 0.0)

    def after(self, minutes: float) -> float:
        """What the caller would hold after ten minutes: all that it holds of the requests grows with their number."""
        caller = self.most.get("caller", 0.0)
        return self.caller_before + (caller - self.caller_before) * max(1.0, LOADED_MINUTES / minutes)


def main() -> int:
    given = _arguments()
    per_slot = TOKENS / (FIRST_MS + (TOKENS - 1) * GAP_MS) * 1000
    slots = max(1, round(given.rate / per_slot))
    held = Held()
    with KnownServer(first_ms=FIRST_MS, gap_ms=GAP_MS, tokens=TOKENS) as server:
        found = _load(server.root, slots, given.minutes * 60, given.processes, held)
        wrote = server.written()
    return _report(found, wrote, held, given.minutes, slots)


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


def _role(command: list[str]) -> str:
    module = command[command.index("-m") + 1] if "-m" in command else ""
    return ROLES.get(module, "other")


def _most_mb(pid: int) -> float:
    """The system's own mark of the most that was resident."""
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def _report(found: Mapping[str, Any], wrote: int, held: Held, minutes: float, slots: int) -> int:
    tokens = int(found["output_tokens"] or 0)
    expected = held.after(minutes)
    print(f"{minutes:g} min, {slots} slots: {tokens:,} tokens, {found['output_tokens_per_s']:,.0f} a second")
    print(f"failed: {found['failed'] or 'none'}; written by the server: {wrote:,}")
    for role, most in sorted(held.most.items()):
        print(f"{role:<8} held at most {most:6.0f} MB")
    print(f"{'caller':<8} before   {held.caller_before:10.0f} MB; after {LOADED_MINUTES:g} min {expected:.0f} MB")
    over = [role for role, most in held.most.items() if most > LIMIT_MB] + ["caller"] * (expected > LIMIT_MB)
    for role in over:
        print(f"the {role} held more than {LIMIT_MB:g} MB")
    return 1 if over or found["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
