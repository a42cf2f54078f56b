"""A file of the config pair that does not exist any more, and the versions that can bring it back."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from lab.configs.pair import SETTINGS_FILE, ConfigPair, missing_files
from lab.configs.secrets import masked
from lab.store import ConfigSaveRow, Store, list_config_saves, put_back_missing, stored_pair
from pages.components.config_changes import version_title
from pages.components.config_saving import remember_saved
from pages.components.context import errors_as_messages, host_name, person
from pages.components.i18n import _


def missing_files_panel(store: Store, config_dir: Path) -> None:
    """Draw the choice of a version, what it would bring back, and the button; nothing where both files exist."""
    missing = missing_files(config_dir)
    rows = list_config_saves(store, config_dir, host=host_name(), limit=None) if missing else ()
    if not rows:
        return
    titles = {row.id: version_title(row) for row in rows}
    by_number = {row.id: row for row in rows}
    number = st.selectbox(_("Bring it back from version"), list(titles), format_func=titles.__getitem__)
    chosen = by_number[number]
    version = stored_pair(store, chosen.config_hash)
    if st.button(_("Bring {files} back").format(files=", ".join(missing)), type="primary", icon=":material/history:"):
        with errors_as_messages():
            _bring_back(store, config_dir, chosen)
    for name in missing:
        st.caption(name)
        is_settings = name == SETTINGS_FILE
        st.code(masked(_text(version, name)), language="json" if is_settings else "toml")


def _bring_back(store: Store, config_dir: Path, chosen: ConfigSaveRow) -> None:
    made = put_back_missing(store, config_dir, chosen, host=host_name(), person=person())
    remember_saved(made)
    st.rerun()


def _text(pair: ConfigPair, name: str) -> str:
    return pair.settings_text if name == SETTINGS_FILE else pair.config_text
