"""One line of the benchmark's table: what a client reported beside what the server really did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.server import Truth

# (P50 ms, P95 ms) that the loader may be off, by concurrency; then the shares and costs that it must keep
ALLOWED_MS = {512: (5.0, 20.0), 1024: (15.0, 40.0)}
LEAST_TOKENS_RATIO = 0.96
MOST_CPU_US = 15.0
HEAD = (
    "client",
    "conc.",
    "TTFT P50",
    "true",
    "TTFT P95",
    "true",
    "tokens/s",
    "of true",
    "CPU µs/tok",
    "RSS MB",
    "lost",
)


@dataclass(frozen=True, slots=True)
class Row:
    """None where a client does not say."""

    client: str
    concurrency: int
    ttft_p50_ms: float | None
    ttft_p95_ms: float | None
    tokens_per_s: float | None
    tokens: int | None
    truth: Truth
    cpu_us_per_token: float | None = None
    rss_mb: float | None = None

    def misses(self) -> list[str]:
        """What a loader that measures the server and not itself would do better."""
        p50, p95 = ALLOWED_MS.get(self.concurrency, ALLOWED_MS[1024])
        checks = {
            "P50": self.ttft_p50_ms is None or abs(self.ttft_p50_ms - self.truth.ttft_p50_ms) > p50,
            "P95": self.ttft_p95_ms is None or abs(self.ttft_p95_ms - self.truth.ttft_p95_ms) > p95,
            "tokens/s": self.tokens_per_s is None or self.tokens_per_s < LEAST_TOKENS_RATIO * self.truth.tokens_per_s,
            "CPU": self.cpu_us_per_token is None or self.cpu_us_per_token > MOST_CPU_US,
            "lost": self.tokens != self.truth.tokens,
        }
        return [name for name, missed in checks.items() if missed]

    def cells(self) -> list[str]:
        ratio = None if self.tokens_per_s is None else self.tokens_per_s / self.truth.tokens_per_s
        lost = None if self.tokens is None else self.truth.tokens - self.tokens
        return [
            self.client,
            str(self.concurrency),
            *(_number(value) for value in (self.ttft_p50_ms, self.truth.ttft_p50_ms)),
            *(_number(value) for value in (self.ttft_p95_ms, self.truth.ttft_p95_ms)),
            _number(self.tokens_per_s, 0),
            "–" if ratio is None else f"{ratio:.1%}",
            _number(self.cpu_us_per_token),
            _number(self.rss_mb, 0),
            _number(lost, 0),
        ]


def table(rows: Sequence[Row]) -> str:
    cells = [list(HEAD), *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD))]
    lines = [
        "  ".join(
            cell.ljust(width) if not at else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in cells
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _number(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"
