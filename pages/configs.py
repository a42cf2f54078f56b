"""Configs: the live pair of settings.json and config.toml: edited, compared, brought back, with what it stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import streamlit as st

from lab.configs.pair import ConfigPair, read_pair
from lab.engine.definition import EngineDefinition, load_definition
from lab.findings import LabError, has_errors
from lab.store import ConfigSaveRow, note_disk
from pages.components import config_draft as draft
from pages.components.command import command_lines, pair_command, without_repeats
from pages.components.config_changes import version_title
from pages.components.config_conflict import conflict_panel
from pages.components.config_convert import convert_view
from pages.components.config_missing import missing_files_panel
from pages.components.config_repairs import findings_panel
from pages.components.config_saving import save_box, saved_message
from pages.components.config_text import text_fields
from pages.components.config_try import try_panel
from pages.components.config_versions import versions_view
from pages.components.context import environment, errors_as_messages, get_store, header, host_name, show_findings
from pages.components.flag_search import flags_view
from pages.components.i18n import N_, _
from pages.components.knob_form import knob_form
from pages.components.markdown import escaped
from pages.components.memory_forecast import memory_forecast_panel
from pages.components.outlook import outlook
from pages.components.pair_panel import changes_panel, checked, fresh_errors, is_readable, short_names
from pages.components.paste_box import paste_view

VIEWS = {
    "form": N_("Form"),
    "flags": N_("All options"),
    "text": N_("Text"),
    "paste": N_("Paste"),
    "convert": N_("Convert"),
    "versions": N_("Versions"),
}
# without a form: the files cannot be read, so there are no knobs to show and nothing to convert
_UNREADABLE_VIEWS = ("text", "paste", "versions")


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
        missing_files_panel(get_store(), config_dir)
        return
    saved = _version_on_disk(config_dir)
    told = st.container()
    base = draft.base_pair(disk)
    above = st.container()
    form, side = st.columns([3, 2], gap="large")
    with form:
        current = _edit(config_dir, disk, draft.working_pair(base))
    draft.set_current(current)
    if disk != base and current in (base, disk, draft.keyless(base)):
        draft.start_from(disk)
        st.rerun()
    with told:
        saved_message()
    if disk != base:
        with above:
            conflict_panel(base, disk, current, saved)
    with side:
        _consequences(config_dir, disk, base, current)


def _version_on_disk(config_dir: Path) -> ConfigSaveRow | None:
    """Keep what stands on disk as a version, whoever wrote it, and say which one that is."""
    try:
        row = note_disk(get_store(), config_dir, host=host_name())
    except LabError as problem:
        show_findings(problem.findings)
        return None
    if row is not None:
        st.caption(_("On disk: version {title}").format(title=escaped(version_title(row))))
    return row


def _edit(config_dir: Path, disk: ConfigPair, working: ConfigPair) -> ConfigPair:
    """Draw the chosen view; gives the pair as it would be."""
    readable = is_readable(working)
    if not readable:
        st.error(
            _("There is no form while a file cannot be read. Put its text right; the checks say where."),
            icon=":material/error:",
        )
    views = [name for name in VIEWS if readable or name in _UNREADABLE_VIEWS]
    if st.session_state.get(draft.VIEW) not in views:
        st.session_state[draft.VIEW] = views[0]
    view = st.segmented_control(
        _("View"),
        views,
        format_func=lambda name: _(VIEWS[name]),
        required=True,
        key=draft.VIEW,
        on_change=draft.keep_edits,
        label_visibility="collapsed",
    )
    return _drawers(config_dir, disk)[view](working)


def _drawers(config_dir: Path, disk: ConfigPair) -> Mapping[str, Callable[[ConfigPair], ConfigPair]]:
    def versions(working: ConfigPair) -> ConfigPair:
        versions_view(get_store(), config_dir, disk, working)
        return working

    def conversion(working: ConfigPair) -> ConfigPair:
        convert_view(working)
        return working

    drawers = {"form": _form, "flags": flags_view, "text": text_fields, "paste": paste_view}
    return {**drawers, "convert": conversion, "versions": versions}


def _form(working: ConfigPair) -> ConfigPair:
    edits = knob_form(working, _definition(), f"knob:{draft.draft_key(working)}")
    try:
        return edits.applied(working)
    except LabError as problem:
        show_findings(problem.findings)
        return working


def _consequences(config_dir: Path, disk: ConfigPair, base: ConfigPair, current: ConfigPair) -> None:
    """Diff, saving, checks, a comparison to queue, and the command that the pair stands for."""
    if changes_panel(base, current) and disk == base:
        save_box(config_dir, base, current, fresh_errors(base, current))
    findings = checked(current)
    if has_errors(findings):
        findings_panel(current, findings)
        st.subheader(_("Engine command"), anchor=False)
        st.caption(_("Shown when the checks find no error."))
        return
    built = pair_command(current)
    definition, command = built.definition, built.command
    everything = tuple(without_repeats((*findings, *built.findings, *outlook(current).findings)))
    findings_panel(current, everything)
    with st.expander(_("Try this"), icon=":material/science:"), errors_as_messages():
        if has_errors(everything):
            st.caption(_("The checks show an error. Once it is put right, this can be measured."))
        else:
            try_panel(get_store(), base, current)
    st.subheader(_("Engine command"), anchor=False)
    command_lines(current, definition, command)
    memory_forecast_panel(current)


def _definition() -> EngineDefinition | None:
    try:
        return load_definition("vllm", environment().config_dir)
    except LabError as problem:
        show_findings(problem.findings)
        return None


page()
