"""One measurement as numbers (DESIGN section 3), stored as JSON beside its requests."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from lab.findings import Param


class Distribution(BaseModel):
    """numpy's linear percentiles; every value None where n is 0."""

    model_config = ConfigDict(frozen=True)

    n: int = 0
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None


class Mark(BaseModel):
    """A reservation on a measurement: a message code with parameters."""

    model_config = ConfigDict(frozen=True)

    code: str
    params: Mapping[str, Param] = Field(default_factory=dict)


class Interference(BaseModel):
    """Long prompts thrown in between steady answers, the two kinds of requests apart.

    `decoder_gap_ms` are the gaps between chunks of the steady answers, those cut off by the end included; of these,
    `disturbed_gap_ms` are the ones during which a long prompt waited for its first token, `quiet_gap_ms` the others.
    """

    model_config = ConfigDict(frozen=True)

    decoders: int
    intruders: int
    intruders_succeeded: int
    decoder_ttft_ms: Distribution
    decoder_tpot_ms: Distribution
    decoder_gap_ms: Distribution
    disturbed_gap_ms: Distribution
    quiet_gap_ms: Distribution
    intruder_ttft_ms: Distribution

    @property
    def longest_stall_ms(self) -> float | None:
        return self.decoder_gap_ms.max


class Summary(BaseModel):
    """Warm-up left out. Rates are None where the window is empty; `failed` maps failure class to count.

    `completed_tokens_per_s` leaves out requests cut off by the end of a time window, `output_tokens_per_s` counts what
    they brought inside it. The fields with a default are None in summaries stored before they were measured.
    """

    model_config = ConfigDict(frozen=True)

    requests: int
    succeeded: int
    incomplete: int
    failed: Mapping[str, int]
    wall_s: float | None
    prompt_tokens: int | None
    output_tokens: int | None
    tokens_estimated: bool
    output_tokens_per_s: float | None
    requests_per_s: float | None
    goodput_per_s: float | None
    ttft_ms: Distribution
    tpot_ms: Distribution
    itl_ms: Distribution
    inter_chunk_ms: Distribution
    e2e_ms: Distribution
    first_answer_ms: Distribution
    decode_tokens_per_s: Distribution
    peak_in_flight: int
    tokens_per_chunk: float | None
    cache_hit_ratio: float | None
    client_cpu_s: float | None
    client_lag_p99_ms: float | None
    marks: tuple[Mark, ...] = ()
    completed_tokens_per_s: float | None = None
    steady_s: float | None = None
    steady_tokens_per_s: float | None = None
    longest_stall_ms: float | None = None
    looping_ratio: float | None = None
    kv_peak_ratio: float | None = None
    energy_j: float | None = None
    joules_per_token: float | None = None
    interference: Interference | None = None
