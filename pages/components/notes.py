"""What people wrote about an experiment, and a field for more."""

from __future__ import annotations

import streamlit as st

from lab.store import Store, add_note, list_notes
from pages.components.context import person
from pages.components.i18n import _
from pages.components.status import ago, local_time


def notes_panel(store: Store, experiment_id: int) -> None:
    for note in list_notes(store, experiment_id):
        st.caption(f"{note.person} · {local_time(note.created_at)} ({ago(note.created_at)})")
        st.text(note.text)
    with st.form(f"notes:{experiment_id}", clear_on_submit=True, border=False):
        text = st.text_area(
            _("New note"), height=80, placeholder=_("What did you learn? Your team reads it in the history.")
        )
        if st.form_submit_button(_("Add note as {person}").format(person=person())) and text and text.strip():
            add_note(store, experiment_id, person(), text)
            st.rerun()
