"""The articles' way to measure: AsyncOpenAI and `async for chunk`. `python -m bench.sdk_loop` prints JSON."""

from __future__ import annotations

import argparse
import asyncio
import json
import time

from openai import AsyncOpenAI, DefaultAsyncHttpxClient


async def one(client: AsyncOpenAI, slots: asyncio.Semaphore, tokens: int) -> tuple[float, int]:
    async with slots:
        sent = time.perf_counter()
        first = None
        count = 0
        stream = await client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "hello"}],
            max_tokens=tokens,
            stream=True,
            stream_options={"include_usage": True},
        )
        async for chunk in stream:
            if first is None and chunk.choices and chunk.choices[0].delta.content:
                first = time.perf_counter() - sent
            if chunk.usage is not None:
                count = chunk.usage.completion_tokens
        return (first or 0.0) * 1e3, count


async def run(base_url: str, concurrency: int, requests: int, tokens: int) -> dict[str, object]:
    import httpx

    limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    http = DefaultAsyncHttpxClient(limits=limits, trust_env=False)
    async with AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0, timeout=600, http_client=http) as client:
        slots = asyncio.Semaphore(concurrency)
        started, cpu_before = time.perf_counter(), time.process_time()
        found = await asyncio.gather(*(one(client, slots, tokens) for _ in range(requests)))
        cpu_s, wall_s = time.process_time() - cpu_before, time.perf_counter() - started
    return {
        "ttft_ms": [ttft for ttft, _ in found],
        "tokens": sum(n for _, n in found),
        "wall_s": wall_s,
        "cpu_s": cpu_s,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("--tokens", type=int, required=True)
    given = parser.parse_args()
    print(json.dumps(asyncio.run(run(given.base_url, given.concurrency, given.requests, given.tokens))))


if __name__ == "__main__":
    main()
