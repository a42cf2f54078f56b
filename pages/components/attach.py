"""A server that runs already: checked by single small calls, talked to and measured, never started or stopped."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import streamlit as st

from lab.configs.gateway import is_loopback, resolve_base_url
from lab.findings import LabError
from lab.load.chat import ChatTarget
from lab.load.doctor import Diagnosis, connection_doctor
from pages.components.context import environment, show_findings
from pages.components.frame import go_to
from pages.components.i18n import _, word
from pages.components.markdown import plain_markdown
from pages.components.runner import runner_seen

ATTACHED = "attach:target"
_FOUND = "attach:found"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIGNS = {True: ":green[:material/check:]", False: ":red[:material/error:]", None: ":gray[:material/info:]"}


def attached_target() -> ChatTarget | None:
    """The server that was checked last in this session, where it answered."""
    target: ChatTarget | None = st.session_state.get(ATTACHED)
    return target


def attach_panel() -> None:
    """Address, model and the name of the key's variable; a check step by step; the way into an experiment."""
    st.caption(_("It is used as it is: the lab never starts, changes or stops it."))
    with st.form("attach", border=False):
        address = st.text_input(_("Address"), placeholder="http://127.0.0.1:8000/v1", key="attach:address")
        first, second = st.columns(2)
        model = first.text_input(
            _("Model"), placeholder=_("the first that it lists"), key="attach:model", help=_("Its name on that server.")
        )
        variable = second.text_input(
            _("Variable of its key"),
            placeholder=_("none"),
            key="attach:variable",
            help=_("The NAME of an environment variable, or of one in .env. A key itself is not taken here."),
        )
        checked = st.form_submit_button(_("Check the connection"), icon=":material/lan:")
    if checked:
        _check(str(address or "").strip(), str(model or "").strip(), str(variable or "").strip())
    found: Diagnosis | None = st.session_state.get(_FOUND)
    if found is not None:
        _show(found)


def _check(address: str, model: str, variable: str) -> None:
    st.session_state.pop(ATTACHED, None)
    st.session_state.pop(_FOUND, None)
    if not address:
        st.error(_("Give the server's address."))
        return
    if variable and _NAME.fullmatch(variable) is None:
        st.error(
            _("This is no name of a variable. Put the key into the environment or into .env, and its name here."),
            icon=":material/key_off:",
        )
        return
    if runner_seen().trial_id is not None:
        st.warning(_("A trial is being measured on this host; a call now would disturb it."))
        return
    with st.spinner(_("Asking the server …")):
        _ask(address, model or None, variable or None)


def _ask(address: str, model: str | None, variable: str | None) -> None:
    variables = environment().variables
    key = variables.get(variable or "", "").strip() or None
    try:
        use_proxy = not is_loopback(urlsplit(resolve_base_url(address)).hostname or "")
    except LabError as problem:
        show_findings(problem.findings)
        return
    found = connection_doctor(address, key, model, key_variable=variable, use_proxy=use_proxy, variables=variables)
    st.session_state[_FOUND] = found
    report = found.report
    if report is not None and report.failure is None and report.model:
        st.session_state[ATTACHED] = ChatTarget(report.base_url, report.model, variable, use_proxy)


def _show(found: Diagnosis) -> None:
    lines = [f"{_SIGNS[step.ok]} {plain_markdown(word(step.code, step.params))}" for step in found.steps]
    st.markdown("  \n".join(lines))
    target = attached_target()
    if target is None:
        return
    with st.container(horizontal=True):
        if st.button(_("Measure it in an experiment"), icon=":material/science:", key="attach:measure"):
            st.session_state["build:attach"] = target.base_url
            st.session_state["build:attach:model"] = target.model
            st.session_state["build:attach:variable"] = target.key_variable or ""
            go_to("experiments")
        if st.button(_("Forget it"), icon=":material/link_off:", key="attach:forget"):
            st.session_state.pop(ATTACHED, None)
            st.session_state.pop(_FOUND, None)
            st.rerun()
