"""A file of the config pair that does not exist any more, and the versions that can bring it back."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from lab.configs.pair import ConfigPair, filled_up, missing_files
from lab.store import Store, list_config_saves, save_pair, stored_pair
from pages.components.config_changes import version_title
from pages.components.config_saving import remember_saved
from pages.components.config_versions import show_files
from pages.components.context import errors_as_messages, host_name, person
from pages.components.i18n import _


def missing_files_panel(store: Store, config_dir: Path) -> None:
    """Draw the choice of a version, what it would bring back, and the button; nothing where both files exist."""
    missing = missing_files(config_dir)
    rows = list_config_saves(store, config_dir, host=host_name(), limit=None) if missing else ()
    if not rows:
        return
    titles = {row.id: version_title(row) for row in rows}
    hashes = {row.id: row.config_hash for row in rows}
    number = st.selectbox(_("Bring it back from version"), list(titles), format_func=titles.__getitem__)
    version = stored_pair(store, hashes[number])
    if st.button(_("Bring {files} back").format(files=", ".join(missing)), type="primary", icon=":material/history:"):
        with errors_as_messages():
            _bring_back(store, config_dir, missing, number, version)
    show_files(version, missing)


def _bring_back(store: Store, config_dir: Path, missing: tuple[str, ...], number: int, version: ConfigPair) -> None:
    old, new = filled_up(config_dir, missing, version)
    made = save_pair(
        store,
        config_dir,
        old,
        new,
        host=host_name(),
        person=person(),
        source="restore",
        restored_id=number,
        missing=missing,
    )
    remember_saved(made)
    st.rerun()
