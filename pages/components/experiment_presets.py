"""The ready-made experiments: their question, what they will do, a button."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from lab.configs.experiment_file import Preset, list_presets, read_experiment
from lab.configs.pair import ConfigPair
from lab.findings import Finding
from lab.records.plan import Experiment
from lab.store import Store
from pages.components.context import environment
from pages.components.experiment_preview import arm_lines, gateway_warning, preview, queue_button
from pages.components.i18n import _
from pages.components.markdown import plain_markdown
from pages.components.pair_panel import finding_lines, of_the_pair

_WIDE = 2
_FIRST = "batching"


def presets(store: Store, pair: ConfigPair) -> None:
    """All experiment files of the configs folder, the broken ones with what is wrong."""
    found = sorted(list_presets(environment().config_dir), key=lambda preset: preset.path.stem != _FIRST)
    if not found:
        st.info(_("There are no experiment files in configs/experiments."))
    for start in range(0, len(found), _WIDE):
        for column, preset in zip(st.columns(_WIDE), found[start : start + _WIDE], strict=False):
            with column, st.container(border=True, height="stretch"):
                _card(store, pair, preset)


def _card(store: Store, pair: ConfigPair, preset: Preset) -> None:
    experiment, findings = _read(preset, pair)
    st.markdown(f"**{plain_markdown(_(preset.name))}**")
    if preset.question:
        st.markdown(plain_markdown(_(preset.question)))
    if experiment is not None:
        preview(store, experiment)
        with st.expander(_("Arms")):
            st.markdown(arm_lines(experiment.arms))
        if any(arm.target == "gateway" for arm in experiment.arms):
            gateway_warning(pair.gateway())
    finding_lines([each for each in findings if not of_the_pair(each, pair)])
    queue_button(experiment, findings, f"preset:{preset.path.stem}", _("Queue"))


def _read(preset: Preset, pair: ConfigPair) -> tuple[Experiment | None, tuple[Finding, ...]]:
    """Findings name the file as people say it."""
    try:
        text = preset.path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = {"file": preset.path.name, "reason": str(problem)}
        return None, (Finding("experiment-unreadable", params=reason),)
    experiment, findings = read_experiment(text, str(preset.path), pair)
    own = str(preset.path)
    return experiment, tuple(
        replace(each, file=f"experiments/{preset.path.name}") if each.file == own else each for each in findings
    )
