"""Home: the one button for the first experiment, what runs now, what is queued, what came out last, what is here."""

from __future__ import annotations

import streamlit as st

from lab.findings import LabError
from lab.store import list_experiments
from pages.components.context import environment, get_store, header, live, redraw_on_change, show_findings
from pages.components.frame import go_to, link_to
from pages.components.host import host_panel
from pages.components.i18n import _
from pages.components.launch import launch_line
from pages.components.progress import open_experiments, running_experiment, waiting_list
from pages.components.queueing import queue_first, read_preset
from pages.components.runner import runner_button, runner_line, runner_seen, start_runner
from pages.components.tables import experiments_table

FIRST_PRESET = "experiments/batching.toml"
LAST_RESULTS = 8


def first_experiment() -> None:
    """What a newcomer sees instead of results."""
    with st.container(border=True):
        st.subheader(_("Start here: what does continuous batching bring?"), anchor=False)
        st.markdown(
            _(
                "The lab measures vLLM in two ways, twice each: serving one request at a time (`max_num_seqs = 1`), "
                "and with continuous batching. Both get the same requests; you see throughput against P95 TTFT. "
                "It takes a few minutes; you may close this tab meanwhile."
            )
        )
        if st.button(_("Start the first experiment"), type="primary", icon=":material/science:", key="first"):
            _start_first()


def _start_first() -> None:
    try:
        experiment, _warnings = read_preset(environment().config_dir / FIRST_PRESET)
    except LabError as problem:
        show_findings(problem.findings)
        return
    queue_first(experiment)
    if start_runner():
        st.rerun()


@live(1.0)
def now() -> None:
    """Runner, engine and queue, as they are this second."""
    rows = open_experiments()
    redraw_on_change("open-experiments", [row.id for row in rows])
    seen = runner_seen()
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.markdown(f"{runner_line(seen)}  \n{launch_line(seen)}", width="content")
        runner_button(seen, key="start-runner")
    if not rows:
        st.caption(_("Nothing runs and nothing is queued."))
        link_to("experiments", _("Queue an experiment"))
    for row in rows:
        if row.state != "queued":
            running_experiment(row)
    waiting_list([row for row in rows if row.state == "queued"])


def last_results() -> None:
    rows = [row for row in list_experiments(get_store(), limit=50) if row.state not in ("queued", "running")]
    if not rows:
        st.caption(_("No experiment has ended yet."))
        return
    st.caption(_("Click a row for its results."))
    chosen = experiments_table(rows[:LAST_RESULTS], key="last-results")
    if chosen is not None:
        go_to("results", experiment=chosen)
    link_to("history", _("All experiments"))


header(_("Home"), _("Edit the knobs, relaunch the engine, measure the difference, export the winner."))
if not list_experiments(get_store(), limit=1):
    first_experiment()
left, right = st.columns([3, 2], gap="large")
with left:
    st.subheader(_("Now"), anchor=False)
    with st.container(border=True):
        now()
with right:
    st.subheader(_("This host"), anchor=False)
    host_panel()
st.subheader(_("Last results"), anchor=False)
last_results()
