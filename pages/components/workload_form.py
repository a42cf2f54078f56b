"""What is asked of a target, as fields: the keys of `[workload]`, only those that its kind uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from lab.configs.knobs import knob_table
from lab.records.workload import Workload
from pages.components.i18n import N_, _
from pages.components.knob_field import as_field, field_kind
from pages.components.readings import read
from pages.components.value_field import UNCHANGED, value_field

KINDS = {
    "burst": N_("All requests at once"),
    "closed": N_("A fixed number of requests at a time"),
    "open": N_("Requests arrive at a rate, however slow the answers are"),
    "gang": N_("In groups: the next group starts when the last one is answered"),
    "ladder": N_("Prompt lengths in steps"),
    "interference": N_("A long prompt joins while short ones are being answered"),
}
_COUNTED = ("burst", "closed", "open", "gang", "interference")
# in the order of the page; the kinds that use a key, empty: all of them
_USED_BY: Mapping[str, tuple[str, ...]] = {
    "concurrency": ("closed", "gang", "ladder"),
    "rate_per_s": ("open",),
    "arrival": ("open",),
    "burstiness": ("open",),
    "ramp_s": ("closed", "open"),
    "requests": _COUNTED,
    "duration_s": ("closed", "open"),
    "output_tokens": (),
    "prompts": _COUNTED,
    "prompt_tokens": (),
    "repeat": ("ladder",),
    "prefix": (),
    "warmup_requests": (),
    "request_timeout_s": (),
    "ignore_eos": (),
}


def workload_form(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Draw the fields for what stands in `[workload]`; gives the changed keys, None for an emptied one."""
    changes: dict[str, Any] = {}
    _draw(["kind"], values, key, changes)
    now = {**values, **changes}
    kind = now.get("kind") or Workload().kind
    st.caption(_(KINDS[kind]) if kind in KINDS else str(kind))
    _draw([name for name in _USED_BY if _is_used(name, kind, now)], values, key, changes)
    return changes


def used_part(values: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that the kind of load uses: two workloads that send the same are the same."""
    kind = str(values.get("kind") or Workload().kind)
    known = {name: value for name, value in values.items() if name == "kind" or name in _USED_BY}
    return {n: v for n, v in known.items() if v is not None and (n == "kind" or _is_used(n, kind, values))}


def _is_used(name: str, kind: str, values: Mapping[str, Any]) -> bool:
    if name == "prompt_tokens":
        return kind == "ladder" or values.get("prompts") == "exact"
    if name == "burstiness":
        return kind == "open" and values.get("arrival") == "gamma"
    return not _USED_BY[name] or kind in _USED_BY[name]


def _draw(names: list[str], values: Mapping[str, Any], key: str, changes: dict[str, Any]) -> None:
    columns = st.columns(2)
    for place, name in enumerate(names):
        knob = knob_table()[f"workload.{name}"]
        field = as_field(knob)
        if name == "prompts":  # text in the file: two words with a meaning, or a file's name
            field = replace(field, kind="choice", choices=("mixed", "exact"))
        with columns[place % 2]:
            value = value_field(field, read(field_kind(knob), values.get(name)), f"{key}:{name}")
        if value is not UNCHANGED:
            changes[name] = list(value) if isinstance(value, tuple) else value


def workload_sentence(workload: Workload) -> str:
    """The workload in one line: how the requests come, how many, how long."""
    parts = [_(KINDS[workload.kind])]
    if workload.kind == "ladder" and workload.prompt_tokens:
        lengths = ", ".join(str(length) for length in workload.prompt_tokens)
        parts.append(_("{repeat} × {lengths} prompt tokens").format(repeat=workload.repeat, lengths=lengths))
    elif workload.duration_s:
        parts.append(_("for {seconds} s").format(seconds=f"{workload.duration_s:g}"))
    elif workload.requests:
        parts.append(_("{n} requests").format(n=workload.requests))
    if workload.kind == "ladder":
        at_once = workload.concurrency[0] if workload.concurrency else 1
        parts.append(_("{n} at a time").format(n=at_once))
    elif workload.concurrency:
        parts.append(_("{n} at a time").format(n=", ".join(map(str, workload.concurrency))))
    if workload.rate_per_s:
        parts.append(_("{rates} per second").format(rates=", ".join(f"{rate:g}" for rate in workload.rate_per_s)))
    parts.append(_("{n} tokens per answer").format(n=workload.output_tokens))
    return " · ".join(parts)
