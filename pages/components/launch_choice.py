"""Choosing what the next launch loads and where: model and GPUs, saved into the config pair after a look."""

from __future__ import annotations

import streamlit as st

from lab.configs.pair import ConfigPair, diff_pair
from lab.engine.model_facts import ModelFacts
from lab.findings import LabError
from lab.records.workload import Scalar
from lab.store import save_pair
from pages.components.context import environment, get_store, host_name, person, show_findings
from pages.components.gpu_choice import gpu_choice
from pages.components.i18n import _
from pages.components.memory_forecast import memory_forecast_panel
from pages.components.model_choice import model_choice, told_by_the_hub
from pages.components.outlook import host_for_a_launch, outlook
from pages.components.pair_panel import short_names

_KEY = "launch-choice"
_ROUND = f"{_KEY}:round"


def launch_choice(pair: ConfigPair, kind: str) -> None:
    """Model, GPUs, and what a change of them would do; nothing is written before Save."""
    key = f"{_KEY}:{st.session_state.get(_ROUND, 0)}"
    with st.expander(_("Model and GPUs of the next launch"), icon=":material/tune:"):
        current = str(pair.engine_knobs().get("model", ""))
        name = model_choice(current, f"{key}:model")
        changes: dict[str, Scalar | None] = dict(gpu_choice(pair, host_for_a_launch(), f"{key}:gpus"))
        if name and name != current:
            changes["model"] = name
        if changes:
            _consequences(pair, pair.with_knobs(changes), kind, told_by_the_hub(name))


def _consequences(pair: ConfigPair, changed: ConfigPair, kind: str, told: ModelFacts | None) -> None:
    """The change of the files, what speaks against it, the memory it would take, and Save."""
    st.code(diff_pair(short_names(pair), short_names(changed)), language="diff", wrap_lines=True)
    show_findings(outlook(changed, kind, told).findings)
    memory_forecast_panel(changed, kind, told)
    with st.container(horizontal=True):
        if st.button(_("Save to the config pair"), type="primary", icon=":material/save:", key=f"{_KEY}:save"):
            _save(pair, changed)
        if st.button(_("Discard"), icon=":material/undo:", key=f"{_KEY}:discard"):
            _anew()


def _save(pair: ConfigPair, changed: ConfigPair) -> None:
    try:
        save_pair(
            get_store(), environment().config_dir, pair, changed, host=host_name(), person=person(), source="page"
        )
    except LabError as problem:
        show_findings(problem.findings)
        return
    _anew()


def _anew() -> None:
    """Fields that start again from what is on disk."""
    st.session_state[_ROUND] = st.session_state.get(_ROUND, 0) + 1
    st.rerun()
