"""The loader and `vllm bench serve` in turn on a real engine that is already running: do they measure the same?

    python -m bench.real --base-url http://127.0.0.1:8000/v1 --model NAME --tokenizer FOLDER

Both send prompts of the same length that no cache knows, in a closed loop, greedy, without a warm-up.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.peers import PeerError, vllm_bench
from lab.load.supervisor import run_load
from lab.metrics import summarise
from lab.records.plan import Slo
from lab.records.workload import LoadJob, Workload

PROMPT_TOKENS = 100


@dataclass(frozen=True, slots=True)
class Figures:
    tokens_per_s: float
    ttft_mean_ms: float
    ttft_p50_ms: float
    tokens: int


def main() -> int:
    given = _arguments()
    pairs = []
    for number in range(given.pairs):
        measures = [lambda n=number: _ours(given, n), lambda n=number: _theirs(given, n)]
        # A B, B A, …: neither side always meets the engine first
        found = [measure() for measure in (measures if number % 2 == 0 else measures[::-1])]
        pairs.append(tuple(found if number % 2 == 0 else found[::-1]))
        _print_pair(number + 1, *pairs[-1])
    for name in ("tokens_per_s", "ttft_mean_ms", "ttft_p50_ms"):
        ratios = [getattr(ours, name) / getattr(theirs, name) for ours, theirs in pairs]
        print(
            f"{name}: lab / vllm bench, median {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        )
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.real", description=__doc__.splitlines()[0])
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--requests", type=int, default=32)
    parser.add_argument("--output-tokens", type=int, default=64)
    return parser.parse_args()


def _ours(given: argparse.Namespace, number: int) -> Figures:
    workload = Workload(
        kind="closed",
        concurrency=(given.concurrency,),
        requests=given.requests,
        output_tokens=given.output_tokens,
        prompts="exact",
        prompt_tokens=(PROMPT_TOKENS,),
        warmup_requests=0,
    )
    job = LoadJob(
        base_url=given.base_url,
        model=given.model,
        workload=workload,
        request_fields={"temperature": 0},
        tokenizer_dir=str(given.tokenizer),
        seed=number,
        salt=f"pair-{number}-{os.getpid()}",
    )
    with tempfile.TemporaryDirectory() as place:
        result = run_load(job, run_dir=Path(place), variables=dict(os.environ))
    summary = summarise(result, slo=Slo(), workload=workload)
    if summary.output_tokens_per_s is None or summary.ttft_ms.mean is None or summary.ttft_ms.p50 is None:
        raise PeerError(f"the lab measured nothing: {dict(summary.failed)}")
    return Figures(summary.output_tokens_per_s, summary.ttft_ms.mean, summary.ttft_ms.p50, summary.output_tokens or 0)


def _theirs(given: argparse.Namespace, number: int) -> Figures:
    root = given.base_url.removesuffix("/").removesuffix("/v1")
    found = vllm_bench(
        root, given.model, given.tokenizer, given.concurrency, given.requests, PROMPT_TOKENS, given.output_tokens,
        seed=1000 + number + os.getpid(),
    )  # fmt: skip
    return Figures(
        found["output_throughput"], found["mean_ttft_ms"], found["median_ttft_ms"], found["total_output_tokens"]
    )


def _print_pair(number: int, ours: Figures, theirs: Figures) -> None:
    for name, side in (("lab load", ours), ("vllm bench", theirs)):
        print(
            f"pair {number}  {name:<11} {side.tokens_per_s:8.1f} tokens/s  TTFT mean {side.ttft_mean_ms:8.1f} ms  "
            f"P50 {side.ttft_p50_ms:8.1f} ms  {side.tokens} tokens",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
