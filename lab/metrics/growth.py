"""How TTFT grows with the length of the prompt: a straight line and a parabola, and what the data support.

Both are fitted to the single requests by least squares of the relative error (the scatter grows with TTFT). "About
linear" is said where the line stays within 10 % of the mean at every length; otherwise the parabola has to be better by
AICc, which charges it for its third parameter, and bend one way over the whole range. Else nothing is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import numpy as np

from lab.findings import Param
from lab.metrics.percentiles import Values, as_values
from lab.metrics.validity import spoils
from lab.metrics.verdict import Comparable, Verdict, shown

Growth = Literal["linear", "flat", "more", "less"]
LEAST_LENGTHS = 4
"""Three lengths leave the parabola nothing to be wrong about."""
LEAST_REQUESTS = 8
STRAIGHT_RATIO = 0.1
FLAT_RATIO = 0.1
CLEAR_AICC = 4.0
_NO_ERROR = 1e-6
"""Relative errors below this are rounding: they must not decide between two perfect fits."""


@dataclass(frozen=True, slots=True)
class Fit:
    """TTFT in ms = c0 + c1 · tokens (+ c2 · tokens²).

    `residuals_ms` is mean TTFT − fit per length, in the order of the lengths; `worst_ratio` the largest of them against
    its mean. `adjusted_r2` is None where the requests are no more than the coefficients.
    """

    coefficients: tuple[float, ...]
    residuals_ms: tuple[float, ...]
    worst_ratio: float
    adjusted_r2: float | None
    aicc: float

    def at(self, tokens: float) -> float:
        return float(sum(c * tokens**power for power, c in enumerate(self.coefficients)))


@dataclass(frozen=True, slots=True)
class LadderFit:
    """One arm's ladder: mean TTFT at each length, both fits, and how it grows; None where the data cannot tell."""

    arm_name: str
    requests: int
    tokens: tuple[float, ...]
    ttft_ms: tuple[float, ...]
    linear: Fit
    quadratic: Fit
    growth: Growth | None

    @property
    def tokens_ratio(self) -> float:
        return self.tokens[-1] / self.tokens[0]

    @property
    def ttft_ratio(self) -> float:
        return self.ttft_ms[-1] / self.ttft_ms[0]


@dataclass(frozen=True, slots=True)
class Step:
    """The TTFT of all requests of one length; `tokens` as the server counted them, else as asked for."""

    tokens: float
    ttft_ms: Values


Samples = Mapping[int, Sequence[float] | Values]


def fit_ladders(rows: Iterable[Comparable], ttft_ms: Samples) -> tuple[LadderFit, ...]:
    """A fit for each arm that was measured one request at a time at enough lengths; `ttft_ms` by measurement."""
    return tuple(
        fit
        for members in _ladders(rows)
        if _lack(members, ttft_ms) is None and (fit := fit_steps(members[0].arm_name, _steps(members, ttft_ms)))
    )


def judge_ladders(rows: Iterable[Comparable], ttft_ms: Samples) -> tuple[Verdict, ...]:
    """How TTFT grows, a sentence for each arm that climbs a ladder, or why that is not said."""
    return tuple(_judge(members, ttft_ms) for members in _ladders(rows))


def fit_steps(arm_name: str, steps: Sequence[Step]) -> LadderFit:
    """Both fits to steps in the order of their lengths; there must be at least three lengths and four requests."""
    tokens = np.array([step.tokens for step in steps])
    means = np.array([step.ttft_ms.mean() for step in steps])
    x = np.concatenate([np.full(step.ttft_ms.size, step.tokens) for step in steps])
    y = np.concatenate([step.ttft_ms for step in steps])
    weights = np.concatenate([np.full(step.ttft_ms.size, 1 / mean) for step, mean in zip(steps, means, strict=True)])
    linear, quadratic = (_fit(degree, x, y, weights, tokens, means) for degree in (1, 2))
    growth = _growth(linear, quadratic, tokens)
    return LadderFit(arm_name, int(y.size), tuple(tokens), tuple(means), linear, quadratic, growth)


def _fit(degree: int, x: Values, y: Values, weights: Values, tokens: Values, means: Values) -> Fit:
    scale = float(tokens.max())  # lengths near 1 keep the equations well conditioned
    scaled = np.polynomial.polynomial.polyfit(x / scale, y, degree, w=weights)
    coefficients = tuple(float(c) / scale**power for power, c in enumerate(scaled))
    residuals = means - np.polynomial.polynomial.polyval(tokens / scale, scaled)
    errors = (y - np.polynomial.polynomial.polyval(x / scale, scaled)) * weights
    n, parameters = int(y.size), degree + 1
    return Fit(
        coefficients=coefficients,
        residuals_ms=tuple(float(r) for r in residuals),
        worst_ratio=float(np.abs(residuals / means).max()),
        adjusted_r2=_adjusted_r2(y, weights, errors, parameters),
        aicc=_aicc(float(errors @ errors), n, parameters),
    )


def _adjusted_r2(y: Values, weights: Values, errors: Values, parameters: int) -> float | None:
    n = int(y.size)
    centre = np.average(y, weights=weights**2)
    total = float(np.sum(((y - centre) * weights) ** 2))
    if n <= parameters or total <= 0:
        return None
    return 1 - float(errors @ errors) / (n - parameters) / (total / (n - 1))


def _aicc(squares: float, n: int, parameters: int) -> float:
    """Akaike's criterion for normal errors, corrected for few values; the scatter counts as a parameter."""
    k = parameters + 1
    if n <= k + 1:
        return math.inf
    return n * math.log(max(squares / n, _NO_ERROR**2)) + 2 * k + 2 * k * (k + 1) / (n - k - 1)


def _growth(linear: Fit, quadratic: Fit, tokens: Values) -> Growth | None:
    low, high = linear.at(tokens[0]), linear.at(tokens[-1])
    if linear.worst_ratio <= STRAIGHT_RATIO and abs(high - low) <= FLAT_RATIO * low:
        return "flat"
    if linear.worst_ratio <= STRAIGHT_RATIO and high > low:
        return "linear"
    if not linear.aicc - quadratic.aicc >= CLEAR_AICC or not _rises(quadratic, tokens):
        return None
    return "more" if quadratic.coefficients[2] > 0 else "less"


def _rises(fit: Fit, tokens: Values) -> bool:
    """A parabola that turns inside the range describes no growth."""
    _, slope, bend = fit.coefficients
    return all(slope + 2 * bend * at >= 0 for at in (tokens[0], tokens[-1]))


def _ladders(rows: Iterable[Comparable]) -> list[list[Comparable]]:
    climbing = [r for r in rows if r.stage.kind == "prompt_tokens" and r.stage.value is not None]
    ordered = sorted(climbing, key=lambda r: (r.arm_id, r.stage.value or 0.0, r.repeat))
    arms = [list(members) for _, members in groupby(ordered, key=lambda r: r.arm_id)]
    # several at a time wait for each other: TTFT is then not that of one prompt
    return [members for members in arms if max(row.summary.peak_in_flight for row in members) <= 1]


def _steps(rows: Sequence[Comparable], ttft_ms: Samples) -> list[Step]:
    steps: list[Step] = []
    for asked, members in groupby(rows, key=lambda r: r.stage.value or 0.0):
        listed = list(members)
        values = [as_values(ttft_ms.get(row.id, ())) for row in listed]
        together = np.concatenate(values) if values else np.empty(0)
        if together.size:
            steps.append(Step(_mean_prompt_tokens(listed) or asked, together))
    return steps


def _mean_prompt_tokens(rows: Sequence[Comparable]) -> float | None:
    counted = [(s.prompt_tokens, s.succeeded) for row in rows if (s := row.summary).prompt_tokens is not None]
    answers = sum(n for _, n in counted)
    return sum(tokens or 0 for tokens, _ in counted) / answers if answers and len(counted) == len(rows) else None


def _lack(rows: Sequence[Comparable], ttft_ms: Samples) -> Verdict | None:
    arm: Param = rows[0].arm_name
    for row in rows:
        spoiled = next((mark.code for mark in row.marks if spoils(mark, row.summary.ttft_ms.mean)), None)
        if spoiled is not None:
            return Verdict("cannot-tell-ladder-marks", {"arm": arm, "mark": spoiled}, said=False)
    steps = _steps(rows, ttft_ms)
    requests = int(sum(step.ttft_ms.size for step in steps))
    if len(steps) < LEAST_LENGTHS or requests < LEAST_REQUESTS:
        params: dict[str, Param] = {"lengths": len(steps), "requests": requests}
        wanted: dict[str, Param] = {"least_lengths": LEAST_LENGTHS, "least_requests": LEAST_REQUESTS}
        return Verdict("cannot-tell-ladder-few", {"arm": arm, **params, **wanted}, said=False)
    return None


_CODES: Mapping[Growth, str] = {
    "linear": "verdict-ladder-linear",
    "flat": "verdict-ladder-flat",
    "more": "verdict-ladder-more",
    "less": "verdict-ladder-less",
}


def _judge(rows: Sequence[Comparable], ttft_ms: Samples) -> Verdict:
    lack = _lack(rows, ttft_ms)
    if lack is not None:
        return lack
    fit = fit_steps(rows[0].arm_name, _steps(rows, ttft_ms))
    params: dict[str, Param] = {
        "arm": fit.arm_name,
        "low": round(fit.tokens[0]),
        "high": round(fit.tokens[-1]),
        "tokens_ratio": shown(fit.tokens_ratio),
        "ttft_ratio": shown(fit.ttft_ratio),
        "per_thousand_ms": shown(fit.linear.coefficients[1] * 1000),
        "linear_off_percent": shown(fit.linear.worst_ratio * 100),
        "quadratic_off_percent": shown(fit.quadratic.worst_ratio * 100),
        "aicc_gain": shown(fit.linear.aicc - fit.quadratic.aicc),
    }
    if fit.growth is None:
        return Verdict("cannot-tell-ladder-shape", params, said=False)
    return Verdict(_CODES[fit.growth], params)
