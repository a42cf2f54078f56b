"""An experiment as it is stored and run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from lab.records.states import Target
from lab.records.workload import Scalar, Workload

Order = Literal["balanced", "random", "listed"]
DEFAULT_ENGINE = "vllm"


class Slo(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    ttft_p95_ms: Annotated[float, Field(gt=0)] | None = None
    tpot_p95_ms: Annotated[float, Field(gt=0)] | None = None
    e2e_p95_ms: Annotated[float, Field(gt=0)] | None = None


class Limits(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    max_trials: Annotated[int, Field(ge=1)] = 50
    max_minutes: Annotated[float, Field(gt=0)] = 120.0


class Arm(BaseModel):
    """A named variant. `set` holds canonical knob names only (aliases are resolved when the file is read).

    `engine` is None unless the target is `engine`; `base_url` is set for `attach` only, and so is `api_key_env`, the
    NAME of the variable that holds the server's key (None: it wants none).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    target: Target = "engine"
    engine: str | None = DEFAULT_ENGINE
    base_url: str | None = None
    api_key_env: str | None = None
    set: Mapping[str, Scalar] = Field(default_factory=dict)


class Experiment(BaseModel):
    """A checked experiment: arms listed and swept, the workload resolved, the config pair as text.

    `settings_text` and `config_text` are the live pair when it was queued; `workload` is never None here: where the
    file had none it is the pair's own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    question: str = ""
    repeats: Annotated[int, Field(ge=1, le=100)] = 1
    order: Order = "balanced"
    seed: int = 0
    workload: Workload
    slo: Slo = Slo()
    limits: Limits = Limits()
    arms: tuple[Arm, ...]
    settings_text: str
    config_text: str


class PlannedTrial(BaseModel):
    """`block` is the repeat (from 1), `position` the place in the whole order (from 0)."""

    model_config = ConfigDict(frozen=True)

    arm: int
    block: int
    position: int
