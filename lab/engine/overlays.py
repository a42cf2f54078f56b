"""Where a kind of host differs: values that are replaced there, always shown, never over what an arm sets itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lab.engine.definition import OverlayRule
from lab.findings import Finding
from lab.host.facts import HostKind
from lab.records.workload import Scalar


@dataclass(frozen=True, slots=True)
class Overlay:
    """A value that this kind of host differs in: asked (None: nothing), used instead, and the code of the reason."""

    knob: str
    asked: Scalar | None
    used: Scalar
    reason_code: str


def apply_overlays(
    rules: list[OverlayRule], knobs: Mapping[str, Scalar], explicit: frozenset[str], host_kind: HostKind
) -> tuple[dict[str, Scalar], tuple[Overlay, ...], tuple[Finding, ...]]:
    """The knobs as this host gets them, what was replaced, and a warning for each explicit value left as it is."""
    used = dict(knobs)
    overlays: list[Overlay] = []
    warnings: list[Finding] = []
    for rule in rules:
        asked = knobs.get(rule.knob)
        if rule.host != host_kind or _fits(rule, asked):
            continue
        if rule.knob in explicit:
            params = {"knob": rule.knob, "value": asked, "used": rule.value, "host": host_kind}
            warnings.append(Finding("overlay-not-applied", "warning", params))
            continue
        used[rule.knob] = rule.value
        overlays.append(Overlay(rule.knob, asked, rule.value, rule.reason))
    return used, tuple(overlays), tuple(warnings)


def _fits(rule: OverlayRule, asked: Scalar | None) -> bool:
    """Whether the value needs no overlay. An unset one is left to the engine, except for a default or a bound."""
    if rule.rule == "default":
        return asked is not None
    if rule.rule == "at-most":
        return _is_number(asked) and float(asked) <= float(rule.value)  # type: ignore[arg-type]
    return asked is None or (isinstance(asked, int) and rule.multiple is not None and asked % rule.multiple == 0)


def _is_number(value: Scalar | None) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
