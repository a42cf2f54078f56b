"""What `make run` does once the environment stands: database, runner, then Streamlit in this process's place."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lab.environment import read_environment  # noqa: E402
from lab.findings import LabError  # noqa: E402
from lab.host.runner_process import ensure_runner  # noqa: E402
from lab.messages import word_finding  # noqa: E402
from lab.store import open_store  # noqa: E402

ADDRESS = "127.0.0.1"


def main() -> int:
    port = _port()
    if port is None:
        print("LAB_PORT must be a number from 1 to 65535", file=sys.stderr)
        return 2
    if _taken(port):
        print(
            f"port {port} is taken (the lab may be open already: http://{ADDRESS}:{port}); "
            f"end what uses it, or choose another: LAB_PORT={port + 1} make run",
            file=sys.stderr,
        )
        return 1
    try:
        environment = read_environment()
        open_store(environment.database_url)
        runner = ensure_runner(environment)
    except LabError as failure:
        for finding in failure.findings:
            print(word_finding(finding), file=sys.stderr)
        return 1
    print(f"runner: pid {runner.pid}{' (started)' if runner.started else ''}; it goes on when this page is closed")
    print(f"lab:    http://{ADDRESS}:{port}")
    print(f"from your laptop: ssh -L {port}:{ADDRESS}:{port} {_login()}, then open the same address", flush=True)
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py"), "--server.port", str(port)]
    command += ["--server.address", ADDRESS, "--server.headless", "true", "--browser.gatherUsageStats", "false"]
    os.chdir(ROOT)
    return os.execv(sys.executable, command)  # noqa: S606


def _port() -> int | None:
    text = os.environ.get("LAB_PORT", "8501")
    return int(text) if text.isdigit() and 0 < int(text) < 65536 else None


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((ADDRESS, port)) == 0


def _login() -> str:
    return f"{os.environ.get('USER') or 'you'}@{socket.gethostname()}"


if __name__ == "__main__":
    sys.exit(main())
