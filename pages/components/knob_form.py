"""The knobs of the config pair as a form made from the knob table, grouped by phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from lab.configs.knobs import Knob, knob_table, lab_keys
from lab.configs.pair import ConfigPair
from lab.engine.definition import EngineDefinition
from pages.components.frame import link_to
from pages.components.i18n import N_, _
from pages.components.knob_field import field_kind, flag_text, knob_field
from pages.components.readings import read
from pages.components.value_field import UNCHANGED
from pages.components.workload_form import workload_form

PHASES = {
    "engine": (N_("Engine"), N_("What is loaded, and where.")),
    "prefill": (N_("Prefill"), N_("Reading the prompt: decides how long the first word takes (TTFT).")),
    "decode": (N_("Decode"), N_("Writing the answer: decides how fluently words come (TPOT, ITL) and the throughput.")),
    "kv_cache": (N_("KV cache"), N_("What the engine remembers of each request: decides how many fit at once.")),
    "request": (N_("Requests"), N_("Fields that each request carries.")),
}
# a key has no field: it comes from the environment only
_HIDDEN = ("gateway.api_key", "request_model", "host")


@dataclass(frozen=True, slots=True)
class Edits:
    """What was changed in the form: knobs by canonical name, keys of `[workload]`; None takes a setting away."""

    knobs: Mapping[str, Any] = field(default_factory=dict)
    workload: Mapping[str, Any] = field(default_factory=dict)

    def applied(self, pair: ConfigPair) -> ConfigPair:
        """The pair with the edits. Raises `LabError` for a value that must not stand in a file."""
        return pair.with_knobs(self.knobs).with_workload(self.workload)


def knob_form(pair: ConfigPair, definition: EngineDefinition | None, key: str) -> Edits:
    """Draw every group; gives what was changed. Raises `LabError` where a file cannot be parsed."""
    changes: dict[str, Any] = {}
    titles = [*(_(title) for title, _about in PHASES.values()), _("Workload"), _("Gateway")]
    tabs = st.tabs(titles)
    for tab, (phase, (_title, about)) in zip(tabs, PHASES.items(), strict=False):
        with tab:
            st.caption(_(about))
            _fields(_knobs_of(phase), pair, definition, key, changes)
            if phase == "engine":
                st.caption(
                    _(
                        "To choose among the models of this host, to see what they are and to download one, "
                        "go to the page Engine."
                    )
                )
                link_to("engine")
    with tabs[-2]:
        st.caption(_("What an experiment sends where its file has no workload of its own."))
        workload = workload_form(_table(pair), f"{key}:workload")
    with tabs[-1]:
        gateway_lines(pair)
        _fields(_gateway_keys(pair), pair, definition, key, changes)
    return Edits(changes, workload)


def gateway_lines(pair: ConfigPair) -> None:
    """Where the baseline is measured, and what is missing for it. The key itself is never shown."""
    gateway = pair.gateway()
    st.caption(_("The TaoToken gateway is measured with the same requests, as the baseline."))
    lines = [
        _("Address: {address}").format(address=f"`{gateway.base_url}`" if gateway.base_url else _("not set")),
        _("Model: {model}").format(model=f"`{gateway.model}`" if gateway.model else _("not set")),
        _("Key: the variable {name} is set.").format(name=f"`{gateway.api_key_env}`")
        if gateway.has_key
        else _("Key: the variable {name} is not set.").format(name=f"`{gateway.api_key_env}`"),
    ]
    st.markdown("\n".join(f"- {line}" for line in lines))


def _knobs_of(phase: str) -> list[Knob]:
    return [knob for knob in knob_table().values() if knob.phase == phase and knob.name not in _HIDDEN]


def _gateway_keys(pair: ConfigPair) -> list[Knob]:
    keys = [knob_table()["request_model"], *lab_keys().values()]
    return [knob for knob in keys if knob.name not in _HIDDEN[:1] and knob.places_in(pair.dialect)]


def _fields(
    knobs: Sequence[Knob],
    pair: ConfigPair,
    definition: EngineDefinition | None,
    key: str,
    changes: dict[str, Any],
) -> None:
    for start in range(0, len(knobs), 2):
        for column, knob in zip(st.columns(2, gap="medium"), knobs[start : start + 2], strict=False):
            reading = read(field_kind(knob), _raw(pair, knob.name))
            with column:
                value = knob_field(knob, reading, f"{key}:{knob.name}", _becomes(knob, definition))
            if value is not UNCHANGED:
                changes[knob.name] = value


def _raw(pair: ConfigPair, name: str) -> Any:
    """The value as it stands; a switch of article 3 that sets the knob counts where nothing else does."""
    found = pair.raw_value(name)
    return pair.knobs().get(name) if found is None else found.value


def _becomes(knob: Knob, definition: EngineDefinition | None) -> str | None:
    """What the engine calls it; None for the lab's own keys."""
    if knob.name == "model":
        return "--model"
    if knob.name == "devices":
        return definition.devices_variable if definition else None
    if definition is None:
        return None
    if knob.phase == "request":
        return definition.request.fields.get(knob.name, knob.name)
    return flag_text(definition.flags, knob.name)


def _table(pair: ConfigPair) -> Mapping[str, Any]:
    table = pair.config.get(("workload",))
    return table if isinstance(table, dict) else {}
