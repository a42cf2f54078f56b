"""Saving the draft of the config pair: a note, a button, a version."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from lab.configs.pair import ConfigPair
from lab.configs.secrets import masked
from lab.findings import Finding, LabError
from lab.store import ConfigSaveRow, save_pair
from pages.components.config_draft import restored_from, round_number, start_from
from pages.components.context import get_store, host_name, person, show_findings
from pages.components.i18n import _, word_finding
from pages.components.markdown import plain_markdown

_SAVED = "configs:saved"
_NOTE_LENGTH = 500


def saved_message() -> None:
    """What the last press of the button came to; once."""
    number = st.session_state.pop(_SAVED, None)
    if number is not None:
        st.success(
            _("Saved as version {number}. The next launch and the next experiment start from it.").format(
                number=number
            ),
            icon=":material/check:",
        )


def remember_saved(row: ConfigSaveRow | None) -> None:
    """For `saved_message`, once the page is drawn anew."""
    st.session_state[_SAVED] = row.id if row else None


def save_box(config_dir: Path, base: ConfigPair, current: ConfigPair, added: Sequence[Finding]) -> None:
    """Note, Save and Discard. `added` are the errors that the change brings; they forbid to save."""
    note = _note()
    with st.container(horizontal=True):
        wanted = st.button(_("Save"), type="primary", icon=":material/save:", disabled=bool(added))
        st.button(_("Discard"), icon=":material/undo:", on_click=start_from, args=(base,))
    if added:
        st.caption(_(":red[The change brings an error that was not there before; it cannot be saved like this.]"))
        for finding in added[:3]:
            st.caption(f":red[{plain_markdown(word_finding(finding))}]")
    if wanted and _save(config_dir, base, current, note):
        start_from(current)
        st.rerun()


def _note() -> str:
    key = f"configs:note:{round_number()}"
    note = st.text_input(
        _("Note"),
        key=key,
        max_chars=_NOTE_LENGTH,
        placeholder=_("Why? For those who read it later; may stay empty"),
        on_change=_without_key,
        args=(key,),
        persist_state="session",
    )
    return str(note or "")


def _without_key(key: str) -> None:
    st.session_state[key] = masked(str(st.session_state.get(key) or ""))


def _save(config_dir: Path, base: ConfigPair, current: ConfigPair, note: str) -> bool:
    """Write what changed and keep it as a version; False, with the reason on the page, where that failed."""
    restored = restored_from(current)
    try:
        row = save_pair(
            get_store(),
            config_dir,
            base,
            current,
            host=host_name(),
            person=person(),
            source="page" if restored is None else "restore",
            note=note,
            restored_id=restored,
        )
    except LabError as problem:
        if any(finding.code == "changed-meanwhile" for finding in problem.findings):
            st.rerun()  # somebody was faster by a moment: the page, drawn anew, shows all three texts
        show_findings(problem.findings)
        return False
    remember_saved(row)
    return True
