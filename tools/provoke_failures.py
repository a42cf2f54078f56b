"""Provokes failures of the real engine on a CPU and keeps what it said: the test data of the diagnosis.

    python tools/provoke_failures.py --model FOLDER --to tests/engine/logs [NAME …]

Run it after an update of vLLM: a message that was worded anew then shows as a failing test. Each case takes 10 to 60 s
and starts one engine at a time. Paths of this machine are replaced by /venv, /python and /models.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import psutil

READY_WITHIN_S = 180.0
ENDS_WITHIN_S = 150.0
KEPT_LINES = 140
HEAD_LINES = 20


@dataclass(frozen=True)
class Case:
    """`model` makes a folder from a copy of the good one; `act` is done to the ready engine."""

    flags: tuple[str, ...] = ()
    model: Callable[[Path], None] | None = None
    name: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    hub: tuple[int, str] | None = None
    port_taken: bool = False
    address_space: int | None = None
    act: Callable[[psutil.Process, str], None] | None = None
    at_line: tuple[str, Callable[[psutil.Process], None]] | None = None


def _without(*names: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return change


def _truncate(folder: Path) -> None:
    path = folder / "model.safetensors"
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def _missing_shard(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    table = {"metadata": {"total_size": 1}, "weight_map": {"lm_head.weight": "model-00001-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(table), "utf-8")


def _config(**changes: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | changes), "utf-8")

    return change


def _broken_config(folder: Path) -> None:
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"', "utf-8")


def _kill(name: str) -> Callable[[psutil.Process, str], None]:
    def act(process: psutil.Process, _url: str) -> None:
        _member(process, name).kill()

    return act


def _member(process: psutil.Process, name: str) -> psutil.Process:
    found = [process, *process.children(recursive=True)]
    return next((each for each in found if name in " ".join(each.cmdline()) or name in each.name()), process)


def _no_more_memory(process: psutil.Process, url: str) -> None:
    """The worker may not grow any further; then a long prompt wants more."""
    worker = _member(process, "Worker")
    resource.prlimit(worker.pid, resource.RLIMIT_AS, (worker.memory_info().vms, worker.memory_info().vms))
    body = {"model": "m", "prompt": "word " * 6000, "max_tokens": 4}
    with suppress(httpx.HTTPError):
        httpx.post(f"{url}/v1/completions", json=body, timeout=60, trust_env=False)


CASES: dict[str, Case] = {
    "port-taken": Case(port_taken=True),
    "weights-missing": Case(model=_without("model.safetensors")),
    "weights-broken": Case(model=_truncate),
    "weights-shard-missing": Case(model=_missing_shard),
    "config-broken": Case(model=_broken_config),
    "config-missing": Case(model=_without("config.json")),
    "tokenizer-missing": Case(model=_without("tokenizer.json", "tokenizer_config.json")),
    "architecture-unknown": Case(model=_config(architectures=["NoSuchForCausalLM"], model_type="nosuch")),
    "architecture-unsupported": Case(model=_config(architectures=["NoSuchForCausalLM"])),
    "weights-of-another-shape": Case(model=_config(hidden_size=768, num_attention_heads=12)),
    "hub-unreachable": Case(name="some-team/some-model", environment={"HF_ENDPOINT": "http://127.0.0.1:9"}),
    "hub-offline": Case(name="some-team/some-model", environment={"HF_HUB_OFFLINE": "1"}),
    "hub-gated": Case(name="some-team/some-model", hub=(403, "GatedRepo")),
    "hub-gated-no-token": Case(name="some-team/some-model", hub=(401, "GatedRepo")),
    "hub-not-found": Case(name="some-team/some-model", hub=(404, "RepoNotFound")),
    "utilization-1.0": Case(flags=("--gpu-memory-utilization", "1.0")),
    "heads-not-divisible": Case(flags=("--tensor-parallel-size", "2")),
    "quantization-mismatch": Case(flags=("--quantization", "awq")),
    "quantization-unknown": Case(flags=("--quantization", "nosuch")),
    "dtype-unknown": Case(flags=("--dtype", "float8")),
    "number-wanted": Case(flags=("--max-num-seqs", "many")),
    "sequences-zero": Case(flags=("--max-num-seqs", "0")),
    "batch-below-sequences": Case(flags=("--max-num-batched-tokens", "64", "--max-num-seqs", "256")),
    "chat-template-missing": Case(flags=("--chat-template", "/nowhere/template.jinja")),
    "speculative-config-broken": Case(flags=("--speculative-config", "{not json")),
    "speculative-model-missing": Case(
        flags=("--speculative-config", '{"model": "/nowhere", "num_speculative_tokens": 2}')
    ),
    "out-of-memory-import": Case(address_space=1 << 30),
    "out-of-memory-load": Case(address_space=5 << 29),
    "out-of-memory-cache": Case(address_space=3 << 30),
    "killed-core": Case(act=_kill("EngineCore")),
    "killed-worker": Case(act=_kill("Worker")),
    "killed-worker-loading": Case(
        at_line=("Starting to load model|Loading safetensors", lambda p: _kill("Worker")(p, ""))
    ),
    "killed-core-loading": Case(
        at_line=("Starting to load model|Loading safetensors", lambda p: _kill("EngineCore")(p, ""))
    ),
    "out-of-memory-under-load": Case(act=_no_more_memory),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, required=True, help="a small model's folder")
    parser.add_argument("--to", type=Path, required=True, help="the folder for the logs")
    parser.add_argument("names", nargs="*", help="these cases only")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.names if name not in CASES]
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the engine of the case is ended all the same
    chosen.to.mkdir(parents=True, exist_ok=True)
    for name in chosen.names or CASES:
        started = time.monotonic()
        status, log = provoke(CASES[name], chosen.model)
        head = f"# provoked on the real engine: {name}; exit status {status}\n"
        (chosen.to / f"real-{name}.log").write_text(head + log, "utf-8")
        print(f"{name}: exit status {status} after {time.monotonic() - started:.0f} s", flush=True)
    return 0


def provoke(case: Case, model: Path) -> tuple[int | None, str]:
    """The exit status (None: it had to be ended) and the log, shortened."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder = _model_folder(case, model, place)
        port, listener = _port()
        if not case.port_taken:
            listener.close()
        stack.callback(listener.close)
        hub = stack.enter_context(_hub(*case.hub)) if case.hub else None
        log = place / "engine.log"
        status = _run(case, case.name or str(folder), port, {"HF_ENDPOINT": hub} if hub else {}, log)
        return status, _shortened(log.read_text("utf-8", "replace"), place, port)


def _model_folder(case: Case, model: Path, place: Path) -> Path:
    folder = place / "models" / "m"
    shutil.copytree(model, folder)
    if case.model is not None:
        case.model(folder)
    return folder


def _port() -> tuple[int, socket.socket]:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    return int(listener.getsockname()[1]), listener


def _run(case: Case, model: str, port: int, more: Mapping[str, str], log: Path) -> int | None:
    command = [
        sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model, "--served-model-name", "m",
        "--host", "127.0.0.1", "--port", str(port), "--enforce-eager", *case.flags,
    ]  # fmt: skip
    if "--gpu-memory-utilization" not in case.flags:
        command += ["--gpu-memory-utilization", "0.15"]
    home = str(log.parent / "hf")
    environment = {**os.environ, "HF_HOME": home, "VLLM_NO_USAGE_STATS": "1", **case.environment, **more}

    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=log.parent, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    try:
        if case.address_space is not None:
            resource.prlimit(process.pid, resource.RLIMIT_AS, (case.address_space, case.address_space))
        if not _interfere(case, process, f"http://127.0.0.1:{port}", log):
            return None  # it serves: nothing was provoked
        return process.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _interfere(case: Case, process: subprocess.Popen[bytes], url: str, log: Path) -> bool:
    """Do to the engine what the case wants, at its moment; False where it came up and nothing was to be done."""
    if case.at_line is not None:
        pattern, act = case.at_line
        if _wait(process, lambda: re.search(pattern, log.read_text("utf-8", "replace")) is not None):
            act(psutil.Process(process.pid))
        return True
    if not _wait(process, lambda: _is_up(url)):
        return True
    if case.act is not None:
        case.act(psutil.Process(process.pid), url)
    return case.act is not None


def _wait(process: subprocess.Popen[bytes], condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + READY_WITHIN_S
    while process.poll() is None and time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.2)
    return False


def _is_up(url: str) -> bool:
    with suppress(httpx.HTTPError):
        return httpx.get(f"{url}/v1/models", timeout=2, trust_env=False).is_success
    return False


@contextmanager
def _hub(status: int, code: str) -> Iterator[str]:
    """A hub on loopback that refuses every file in the hub's own words."""

    class Refusing(BaseHTTPRequestHandler):
        def _refuse(self) -> None:
            self.send_response(status)
            self.send_header("X-Error-Code", code)
            self.send_header("X-Error-Message", f"refused: {code}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD = do_POST = _refuse  # noqa: N815  names of the library

        def log_message(self, *_arguments: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _shortened(text: str, place: Path, port: int) -> str:
    """The log without this machine's paths, its middle cut where it is long."""
    for path, shown in (
        (sysconfig.get_path("purelib"), "/venv/site-packages"),
        (sysconfig.get_path("stdlib"), "/python3.11"),
        (sys.prefix, "/venv"),
        (sys.base_prefix, "/python"),
        (str(place), ""),
        (str(Path.home()), "/home/user"),
    ):
        text = text.replace(path, shown)
    lines = [line.rstrip()[:400] for line in text.replace(str(port), "8000").splitlines()]
    lines = [line for line in lines if not re.search(r"[█▀▄]", line)]
    if len(lines) > KEPT_LINES + HEAD_LINES:
        middle = [line for line in lines[HEAD_LINES:-KEPT_LINES] if " File " not in line and "^^^" not in line]
        lines = [*lines[:HEAD_LINES], *middle[-KEPT_LINES:], *lines[-KEPT_LINES:]]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
