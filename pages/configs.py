"""Configs: the live pair of settings.json and config.toml, as a form and as text, with what it stands for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import streamlit as st

from lab.configs.pair import ConfigPair, pair_hash, read_pair
from lab.engine.definition import EngineDefinition, load_definition
from lab.findings import LabError, has_errors
from pages.components.command import command_lines, pair_command, without_repeats
from pages.components.context import environment, header, show_findings
from pages.components.i18n import N_, _
from pages.components.knob_form import knob_form
from pages.components.pair_panel import changes_panel, checked, findings_panel, new_errors, save, short_names

BASE, DRAFT, CURRENT, VIEW, SAVED, ROUND = (
    f"configs:{name}" for name in ("base", "draft", "current", "view", "saved", "round")
)
VIEWS = {"form": N_("Form"), "text": N_("Text of the files")}


def page() -> None:
    header(
        _("Configs"),
        _("The two files that every launch and every experiment starts from. Only what you change is written."),
    )
    config_dir = environment().config_dir
    try:
        disk = short_names(read_pair(config_dir))
    except LabError as problem:
        show_findings(problem.findings)
        return
    base = st.session_state.setdefault(BASE, disk)
    if st.session_state.pop(SAVED, False):
        st.success(_("Saved. The next launch and the next experiment start from it."), icon=":material/check:")
    working = st.session_state.get(DRAFT) or base
    form, side = st.columns([3, 2], gap="large")
    with form:
        current = _edit(working)
    st.session_state[CURRENT] = current
    if disk != base:
        if current == base:
            _start_from(disk)
            st.rerun()
        with side:
            _changed_meanwhile(disk)
    with side:
        _consequences(config_dir, base, current)


def _edit(working: ConfigPair) -> ConfigPair:
    """Draw the form or the texts; gives the pair as it would be."""
    definition = _definition()
    try:
        working.knobs()
    except LabError:
        st.error(
            _("There is no form while a file cannot be read. Put its text right; the checks say where."),
            icon=":material/error:",
        )
        return _texts(working)
    view = st.segmented_control(
        _("View"),
        list(VIEWS),
        format_func=lambda name: _(VIEWS[name]),
        default="form",
        required=True,
        key=VIEW,
        on_change=_keep_edits,
        label_visibility="collapsed",
    )
    if view == "text":
        return _texts(working)
    edits = knob_form(working, definition, f"knob:{_version(working)}")
    try:
        return edits.applied(working)
    except LabError as problem:
        show_findings(problem.findings)
        return working


def _texts(working: ConfigPair) -> ConfigPair:
    """Both files as they are, to be edited."""
    key = _version(working)
    st.html("<style>.st-key-configs-texts textarea { font-family: monospace; font-size: 0.85rem; }</style>")
    with st.container(key="configs-texts"):
        settings = _text(working.settings_file, working.settings_text, f"text:{key}:settings")
        config = _text(working.config_file, working.config_text, f"text:{key}:config")
    return replace(working, settings_text=settings, config_text=config)


def _text(name: str, text: str, key: str) -> str:
    height = min(700, max(160, 26 * (text.count("\n") + 2)))
    edited = str(st.text_area(name, value=text, height=height, key=key, persist_state="session") or "")
    # a browser's text field knows one line end only
    if "\r\n" in text and "\r" not in edited:
        edited = edited.replace("\n", "\r\n")
    return edited


def _changed_meanwhile(disk: ConfigPair) -> None:
    st.warning(
        _("The files changed on disk since you started; saving would not overwrite them."),
        icon=":material/sync_problem:",
    )
    st.button(
        _("Start again from the files on disk (drops your changes)"),
        icon=":material/refresh:",
        on_click=_start_from,
        args=(disk,),
    )


def _consequences(config_dir: Path, base: ConfigPair, current: ConfigPair) -> None:
    """Diff, checks, saving, and the command that the pair stands for."""
    diff = changes_panel(base, current)
    findings = checked(current)
    added = new_errors(checked(base), findings)
    if diff:
        _buttons(config_dir, base, current, added)
    if has_errors(findings):
        findings_panel(findings)
        st.subheader(_("Engine command"), anchor=False)
        st.caption(_("Shown when the checks find no error."))
        return
    definition, command = pair_command(current)
    findings_panel(tuple(without_repeats((*findings, *command.findings))))
    st.subheader(_("Engine command"), anchor=False)
    command_lines(current, definition, command)


def _buttons(config_dir: Path, base: ConfigPair, current: ConfigPair, added: int) -> None:
    with st.container(horizontal=True):
        wanted = st.button(_("Save"), type="primary", icon=":material/save:", disabled=added > 0)
        st.button(_("Discard"), icon=":material/undo:", on_click=_start_from, args=(base,))
    if added:
        st.caption(_(":red[The change brings an error that was not there before; it cannot be saved like this.]"))
    if wanted and save(config_dir, base, current):
        _start_from(current)
        st.session_state[SAVED] = True
        st.rerun()


def _start_from(pair: ConfigPair) -> None:
    """Forget every edit and show this pair."""
    st.session_state[BASE] = pair
    st.session_state.pop(DRAFT, None)
    st.session_state[ROUND] = st.session_state.get(ROUND, 0) + 1


def _keep_edits() -> None:
    """What was edited in one view is what the other one starts from."""
    st.session_state[DRAFT] = st.session_state[CURRENT]


def _version(pair: ConfigPair) -> str:
    """Fields belong to one text of the files and one start; a discarded edit must not come back."""
    return f"{st.session_state.get(ROUND, 0)}:{pair_hash(pair)[:12]}"


def _definition() -> EngineDefinition | None:
    try:
        return load_definition("vllm", environment().config_dir)
    except LabError as problem:
        show_findings(problem.findings)
        return None


page()
