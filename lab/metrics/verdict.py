"""What verdicts are made of and what they are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lab.findings import Param
from lab.records.states import Target
from lab.records.summary import Mark, Summary
from lab.records.workload import Stage


@dataclass(frozen=True, slots=True)
class Verdict:
    """A sentence as a code. `said` is False where it tells why nothing can be said."""

    code: str
    params: Mapping[str, Param]
    said: bool = True


def shown(value: float) -> float:
    """Three significant digits: more would claim what repeats cannot show."""
    return float(f"{value:.3g}")


class Comparable(Protocol):
    """A measurement as the store hands it out."""

    @property
    def id(self) -> int: ...
    @property
    def arm_id(self) -> int: ...
    @property
    def arm_name(self) -> str: ...
    @property
    def target(self) -> Target: ...
    @property
    def repeat(self) -> int: ...
    @property
    def stage(self) -> Stage: ...
    @property
    def summary(self) -> Summary: ...
    @property
    def marks(self) -> Sequence[Mark]: ...
