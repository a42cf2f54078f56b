"""An experiment built on the page from knobs and values, checked before it is queued."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from lab.configs.experiment_build import build_experiment
from lab.configs.pair import ConfigPair
from lab.engine.pair_command import check_arms
from lab.findings import Finding
from lab.records.plan import Experiment
from lab.store import Store
from pages.components.context import environment
from pages.components.engine_choice import engines_select
from pages.components.experiment_arms import KEY, arms_beside, grid
from pages.components.experiment_preview import arm_lines, preview, queue_button
from pages.components.host import current_facts
from pages.components.i18n import N_, _
from pages.components.pair_panel import finding_lines, of_the_pair
from pages.components.workload_form import used_part, workload_form

ORDERS = {
    "balanced": N_("Balanced (A B B A)"),
    "random": N_("Random"),
    "listed": N_("As listed"),
}


def builder(store: Store, pair: ConfigPair) -> None:
    """Draw the form, what would be run, and the button that queues it."""
    form, side = st.columns([3, 2], gap="large")
    with form:
        st.markdown(f"**{_('What is compared')}**")
        engines = engines_select(f"{KEY}:engines")
        sweep, unreadable = grid(pair, engines)
        st.caption(_("Arms beside the grid"))
        arms = arms_beside(pair, engines[0])
        st.markdown(f"**{_('What is sent')}**")
        workload = _workload(pair)
        st.markdown(f"**{_('How it is run')}**")
        parts = {**_plan(), "arm": arms, "workload": workload}
    parts["sweep"] = sweep
    with side:
        texts = _names(sweep)
        experiment, findings = built({**parts, **texts}, pair)
        _summary(store, pair, experiment, findings, unreadable)


def built(data: Mapping[str, Any], pair: ConfigPair) -> tuple[Experiment | None, tuple[Finding, ...]]:
    """The experiment of the form with every finding, by the same rules as a file."""
    wanted = {key: value for key, value in data.items() if value not in ({}, [])}
    experiment, found = build_experiment(wanted, pair, str(data["name"]))
    of_engines = check_arms(experiment, environment(), current_facts().kind) if experiment is not None else ()
    findings: list[Finding] = []
    for finding in (*(each for _where, each in found), *of_engines):
        if finding not in findings:
            findings.append(finding)
    return experiment, tuple(findings)


def _names(sweep: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    proposed = " × ".join(sweep) or _("My experiment")
    name = st.text_input(_("Name"), placeholder=proposed, key=f"{KEY}:name", persist_state="session")
    question = st.text_input(
        _("Question"),
        placeholder=_("What do you want to know?"),
        help=_("Stands above the result, so that others know why it was measured."),
        key=f"{KEY}:question",
        persist_state="session",
    )
    return {"name": str(name or "").strip() or proposed, "question": str(question or "").strip()}


def _workload(pair: ConfigPair) -> dict[str, Any]:
    """The pair's workload with what is changed here; it goes into the experiment, not into the file."""
    table = pair.config.get(("workload",))
    values = dict(table) if isinstance(table, dict) else {}
    changes = workload_form(values, f"{KEY}:workload")
    return used_part({**values, **changes})


def _plan() -> dict[str, Any]:
    first, second = st.columns(2)
    with first:
        repeats = st.number_input(
            _("Repeats"),
            min_value=1,
            max_value=100,
            value=2,
            help=_("At least two: a single repeat shows no spread, so no verdict is given."),
            key=f"{KEY}:repeats",
            persist_state="session",
        )
        limit_ms = st.number_input(
            _("Limit for P95 TTFT (ms)"),
            min_value=1,
            value=None,
            step=100,
            placeholder=_("none"),
            help=_("Drawn into the chart; requests that keep it make the goodput."),
            key=f"{KEY}:slo",
            persist_state="session",
        )
    with second:
        order = st.selectbox(
            _("Order"),
            list(ORDERS),
            format_func=lambda name: _(ORDERS[name]),
            help=_("Balanced turns every second repeat round, so that a drift of the host hits all arms alike."),
            key=f"{KEY}:order",
            persist_state="session",
        )
        minutes = st.number_input(
            _("Ends after (minutes)"),
            min_value=1,
            max_value=10_000,
            value=120,
            step=10,
            key=f"{KEY}:minutes",
            persist_state="session",
        )
    seed = 7
    if order == "random":
        seed = st.number_input(_("Seed"), min_value=0, value=7, key=f"{KEY}:seed", persist_state="session")
    slo = {"ttft_p95_ms": float(limit_ms)} if limit_ms else {}
    limits = {"max_minutes": float(minutes or 120)}
    return {"repeats": int(repeats or 1), "order": str(order), "seed": int(seed or 0), "slo": slo, "limits": limits}


def _summary(
    store: Store,
    pair: ConfigPair,
    experiment: Experiment | None,
    findings: Sequence[Finding],
    unreadable: Sequence[Finding],
) -> None:
    """`unreadable` stands at its field already; it forbids to queue less than what was asked for."""
    with st.container(border=True):
        st.markdown(f"**{_('What it will do')}**")
        if experiment is not None:
            preview(store, experiment)
            st.markdown(arm_lines(experiment.arms))
        finding_lines([each for each in findings if not of_the_pair(each, pair)])
        queue_button(experiment, (*findings, *unreadable), f"{KEY}:queue", _("Queue this experiment"))
