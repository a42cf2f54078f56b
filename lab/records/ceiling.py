"""What the load generator of a host keeps up with."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict


class ClientCeiling(BaseModel):
    """The most that the loader kept up with against a server of known timing on the same host.

    `tokens_per_s` and `in_flight` belong to the largest step that was kept; `reached` is False where the loader
    lost no step (the largest one was kept, or the server itself fell behind): the ceiling lies higher.
    """

    model_config = ConfigDict(frozen=True)

    tokens_per_s: float
    in_flight: int
    reached: bool
    cores: int
    measured_at: datetime
