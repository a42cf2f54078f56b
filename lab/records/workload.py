"""What is asked of a target: the `[workload]` table, its stages, and the job of one stage for the loader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from lab.records.states import StageKind

WorkloadKind = Literal["burst", "closed", "open", "gang", "ladder", "interference"]
Arrival = Literal["constant", "poisson", "gamma"]
Prefix = Literal["unique", "shared"]
TooLong = Literal["skip", "shrink"]
Scalar = str | int | float | bool

Positive = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]


class Workload(BaseModel):
    """The keys of `[workload]`; tuples hold one value per stage. Units stand in the names."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: WorkloadKind = "ladder"
    requests: Positive | None = None
    duration_s: Seconds | None = None
    output_tokens: Positive = 64
    prompts: str = "mixed"
    prompt_tokens: tuple[Positive, ...] = ()
    repeat: Positive = 1
    prefix: Prefix = "unique"
    concurrency: tuple[Positive, ...] = ()
    rate_per_s: tuple[Annotated[float, Field(gt=0)], ...] = ()
    arrival: Arrival = "poisson"
    burstiness: Annotated[float, Field(gt=0)] = 1.0
    ramp_s: Seconds | None = None
    warmup_requests: Annotated[int, Field(ge=0)] = 2
    request_timeout_s: Seconds = 600.0
    ignore_eos: bool = True
    too_long: TooLong = "skip"


class Stage(BaseModel):
    """One measurement of a trial; `kind` None means the workload has a single stage without a value."""

    model_config = ConfigDict(frozen=True)

    kind: StageKind | None = None
    value: float | None = None


class LoadJob(BaseModel):
    """All that the loader needs for one stage. Keys are named, never carried: `api_key_env`.

    `processes` None: as many loader processes as the load needs and the cores allow.
    """

    model_config = ConfigDict(frozen=True)

    base_url: str
    model: str
    workload: Workload
    stage: Stage = Stage()
    api_key_env: str | None = None
    include_usage: bool = True
    ignore_eos: bool = True
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    request_fields: Mapping[str, Scalar] = Field(default_factory=dict)
    tokenizer_dir: str | None = None
    seed: int = 0
    salt: str = ""
    use_proxy: bool = False
    processes: Positive | None = None
