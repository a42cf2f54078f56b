"""What the hot path keeps of one call beside its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lab.records.states import RequestFailure

End = Literal[
    "complete",  # the answer's own framing says that it is whole
    "closed",  # the server closed, and closing is how this answer ends
    "finished",  # ended here: the answer was over but the server held the socket open
    "lost",  # reset, or closed in the middle
    "timeout",
    "cancelled",
    "window",  # the duration was over
    "failed",  # no connection: `failure` says which kind
]


@dataclass(frozen=True, slots=True)
class Call:
    """Moments are nanoseconds of the monotonic clock; None where there was none.

    `t0_ns` is the scheduled moment in an open loop, otherwise equal to `sent_ns`; where nothing could be sent it is
    the moment the sending was due. `free_ns` is when the client could have sent it; `connect_ns` is how long a
    connection took that had to be opened meanwhile.
    """

    index: int
    warmup: bool
    t0_ns: int
    ended_ns: int
    end: End
    sent_ns: int | None = None
    scheduled_ns: int | None = None
    free_ns: int | None = None
    connect_ns: int | None = None
    status: int | None = None
    encoding: str | None = None
    location: str | None = None
    failure: RequestFailure | None = None
    error: str | None = None
    marks: tuple[str, ...] = ()
