"""Engine: the live launch, its command, what it took, its log; start and stop through the runner."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from lab.configs.checks import check_launch
from lab.configs.pair import ConfigPair
from lab.findings import Finding, LabError
from lab.records.plan import DEFAULT_ENGINE
from lab.store import LaunchRow, add_intent, get_launch, list_launches, open_intents, trial_of_launch
from pages.components.attach import attach_panel
from pages.components.chat import chat_panel, stopped_answers
from pages.components.command import command_panel, live_pair, readable
from pages.components.context import (
    errors_as_messages,
    get_store,
    header,
    host_name,
    live,
    person,
    redraw_on_change,
    show_findings,
)
from pages.components.effective import effective_table
from pages.components.engine_choice import engine_select, missing_engine
from pages.components.i18n import _, word_finding
from pages.components.launch import failure_text, launch_record, launch_state, live_launch
from pages.components.launch_choice import launch_choice
from pages.components.launch_steps import launch_steps
from pages.components.log_view import log_view
from pages.components.markdown import plain_markdown
from pages.components.memory_forecast import memory_forecast_panel
from pages.components.outlook import rule_findings
from pages.components.pair_panel import short_names
from pages.components.remedy import launch_remedies
from pages.components.runner import RunnerSeen, runner_line, runner_seen, start_runner

EARLIER = 50
KIND_KEY = "engine:kind"


@live(1.0)
def state() -> None:
    """The runner and its engine as they are this second, with the buttons that fit."""
    seen = runner_seen()
    launch = live_launch(seen)
    # what stands outside of this live part is about one launch, and a start can fail before anything lives
    newest = next(iter(list_launches(get_store(), host_name(), 1)), None)
    redraw_on_change("launch-shown", (launch and (launch.id, launch.state), newest and (newest.id, newest.state)))
    redraw_on_change("stopped-answers", stopped_answers())
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        with st.container(width="content", gap="xsmall"):
            st.markdown(runner_line(seen))
            launch_state(launch)
        _buttons(seen, launch)


def _buttons(seen: RunnerSeen, launch: LaunchRow | None) -> None:
    wanted = {intent.kind for intent in open_intents(get_store(), host_name())}
    if launch is None:
        asked = "serve" in wanted and seen.running
        against = _against_a_start()
        label = _("Starting …") if asked else _("Start the engine")
        with st.container(width="content", horizontal_alignment="right", gap="xsmall"):
            off = asked or against is not None
            if st.button(label, type="primary", icon=":material/play_arrow:", disabled=off, key="serve"):
                _serve()
            if against is not None:
                st.caption(f":red[{plain_markdown(word_finding(against))}]", width="content")
    elif seen.trial_id is not None:
        st.caption(_("A trial uses it."), width="content")
    else:
        asked = "stop-engine" in wanted or launch.state == "stopping"
        label = _("Stopping …") if asked else _("Stop the engine")
        if st.button(label, icon=":material/stop:", disabled=asked, key="stop-engine"):
            add_intent(get_store(), host_name(), "stop-engine", person=person())
            st.rerun()


def _against_a_start() -> Finding | None:
    """The first error of the two files as they are now; None where nothing forbids a start."""
    try:
        pair, kind = short_names(live_pair()), wanted_kind()
        found = (*check_launch(pair, kind), *missing_engine(kind), *rule_findings(pair, kind))
    except LabError as problem:
        found = problem.findings
    return next((finding for finding in found if finding.severity == "error"), None)


def _serve() -> None:
    """Ask for the live pair as it stands now."""
    try:
        pair = live_pair()
    except LabError as problem:
        show_findings(problem.findings)
        return
    serve_pair(pair, ())


def wanted_kind() -> str:
    """The kind of engine that is chosen on this page."""
    return str(st.session_state.get(KIND_KEY) or DEFAULT_ENGINE)


def serve_pair(pair: ConfigPair, explicit: tuple[str, ...], kind: str | None = None) -> None:
    """Ask for a pair; the same wish is not written twice. No overlay of this host takes `explicit` knobs back.

    `kind` None is the kind that is chosen on this page.
    """
    if all(intent.kind != "serve" for intent in open_intents(get_store(), host_name())):
        payload = {
            "engine": kind or wanted_kind(),
            "settings_text": pair.settings_text,
            "config_text": pair.config_text,
            "explicit": list(explicit),
        }
        add_intent(get_store(), host_name(), "serve", payload=payload, person=person())
    if start_runner():
        st.rerun()


def earlier(launches: tuple[LaunchRow, ...]) -> LaunchRow | None:
    """All launches of this host; returns the one that was clicked."""
    frame = pd.DataFrame([launch_record(launch) for launch in launches])
    event = st.dataframe(
        frame,
        key="launches",
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "id": st.column_config.NumberColumn(_("No."), format="%d", width=45),
            "state": st.column_config.TextColumn(_("State"), width=70),
            "started": st.column_config.TextColumn(_("Started"), width=145),
            "engine": st.column_config.TextColumn(_("Engine"), width=65),
            "model": st.column_config.TextColumn(_("Model"), width=135),
            "ready": st.column_config.TextColumn(_("Ready after"), width=75),
            "lived": st.column_config.TextColumn(_("Lived"), width=70),
            "failure": st.column_config.TextColumn(_("Failure"), width=165),
            "end": st.column_config.TextColumn(_("End"), width=190),
        },
    )
    chosen = event.selection.rows
    return launches[chosen[0]] if chosen else None


def named_launch() -> LaunchRow | None:
    """The launch that the address names: results link to the one that failed a trial."""
    named = st.query_params.get("launch", "")
    try:
        return get_launch(get_store(), int(named)) if named.isdecimal() else None
    except LabError:
        return None


def one_launch(launch: LaunchRow) -> None:
    """Why it failed, the command that ran, what it took, its log."""
    launch_steps(launch)
    failure_text(launch)
    if launch.state == "failed":
        free = live_launch(runner_seen()) is None
        message = (launch.ended or {}).get("message") or {}
        start = partial(serve_pair, kind=launch.engine) if free else None
        launch_remedies(message, f"launch-{launch.id}", start, launch.engine, trial_of_launch(get_store(), launch.id))
    if not launch.argv:
        return  # it failed before there was a command
    names = [_("Effective configuration"), _("Log"), _("Command")]
    shown_first = names[0] if launch.effective and launch.state != "failed" else names[1]
    took, log, command = st.tabs(names, default=shown_first)
    with took:
        effective_table(launch)
    with log:
        log_view(launch.log_path, key=f"log-{launch.id}")
    with command:
        st.code(readable(launch.argv), language=None, wrap_lines=True)
        variables = ", ".join(f"`{name}`" for name in launch.environment_names)
        st.caption(_("Variables of its environment (names only): {names}").format(names=variables))


header(
    _("Engine"),
    _("The engine that runs now on this host, and those before it. Starts and stops go through the runner."),
)
with st.container(border=True):
    kind = engine_select(KIND_KEY, _("The engine that is started"))
    state()
with errors_as_messages():
    launch_choice(live_pair(), kind)
launches = list_launches(get_store(), host_name(), EARLIER)
current = live_launch(runner_seen())
if current is None and launches and launches[0].state == "failed":
    current = launches[0]  # why the last start failed stands where the engine would
for shown in dict.fromkeys(launch.id for launch in (current, named_launch()) if launch is not None):
    st.subheader(_("Launch {id}").format(id=shown), anchor=False)
    one_launch(get_launch(get_store(), shown))
st.subheader(_("Try it by hand"), anchor=False)
talk, attach = st.tabs([_("Chat"), _("A server that runs already")])
with talk, errors_as_messages():
    chat_panel(live_launch(runner_seen()), live_pair())
with attach, errors_as_messages():
    attach_panel()
st.subheader(_("The command for the live config pair"), anchor=False)
with errors_as_messages():
    command_panel(live_pair(), kind)
    memory_forecast_panel(live_pair(), kind)
st.subheader(_("Launches on this host"), anchor=False)
if launches:
    chosen = earlier(launches)
    if chosen is not None and (current is None or chosen.id != current.id):
        st.markdown(f"**{_('Launch {id}').format(id=chosen.id)}**")
        one_launch(chosen)
else:
    st.caption(_("Nothing was launched here yet."))
