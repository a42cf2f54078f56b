"""Experiments: what runs and waits, the ready-made ones, and a form for others."""

from __future__ import annotations

import streamlit as st

from lab.configs.pair import ConfigPair, read_pair
from lab.findings import LabError
from pages.components.context import environment, errors_as_messages, get_store, header, live, show_findings
from pages.components.experiment_builder import builder
from pages.components.experiment_presets import presets
from pages.components.experiment_preview import queued_message
from pages.components.frame import link_to
from pages.components.i18n import _
from pages.components.pair_panel import checked, finding_lines, short_names
from pages.components.progress import open_experiments, running_experiment, waiting_list
from pages.components.runner import runner_button, runner_line, runner_seen


def page() -> None:
    header(_("Experiments"), _("Compare settings by measuring them: pick a ready-made experiment, or build your own."))
    queued_message()
    _queue()
    try:
        pair = short_names(read_pair(environment().config_dir))
    except LabError as problem:
        show_findings(problem.findings)
        return
    _pair_errors(pair)
    try:
        pair.knobs()
    except LabError:
        return  # said above; nothing below works without the two files
    ready, own = st.tabs([_("Ready-made"), _("Build your own")])
    with ready, errors_as_messages():
        presets(get_store(), pair)
    with own, errors_as_messages():
        builder(get_store(), pair)


def _pair_errors(pair: ConfigPair) -> None:
    """What is wrong with the two files that every experiment starts from; said once."""
    errors = [finding for finding in checked(pair) if finding.severity == "error"]
    if errors:
        with st.container(border=True):
            st.markdown(f"**{_('The config pair has errors, so nothing can be queued.')}**")
            finding_lines(errors)
            link_to("configs", _("Put the configs right"))


@live(2)
def _queue() -> None:
    """What runs and what waits, as it is this second."""
    rows = open_experiments()
    if not rows:
        st.caption(_("Nothing runs and nothing is queued."))
        return
    seen = runner_seen()
    with st.container(border=True):
        if not seen.running:
            st.markdown(runner_line(seen))
            runner_button(seen, key="experiments:start-runner")
        for row in rows:
            if row.state != "queued":
                running_experiment(row)
        waiting_list([row for row in rows if row.state == "queued"])


page()
