"""History: every experiment of the team, found by text, state and person; notes and tags."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from lab.records.states import ExperimentState
from lab.store import ExperimentRow, add_note, list_experiments, list_notes, list_people, set_tags
from pages.components.context import get_store, header, person
from pages.components.frame import go_to, link_to
from pages.components.i18n import _, ngettext
from pages.components.markdown import escaped
from pages.components.own_words import own_words
from pages.components.status import ago, duration, local_time, state_badge, state_word
from pages.components.tables import best_text, experiments_table

AT_MOST = 500
STATES: tuple[ExperimentState, ...] = ("queued", "running", "paused", "done", "failed", "stopped")
ALL = ""


def filters() -> tuple[ExperimentRow, ...]:
    """The filters stand in the address, so that a view can be sent to somebody."""
    search, state, who = st.columns([3, 1, 1])
    with search:
        text = st.text_input(
            _("Search"),
            key="search",
            type="search",
            bind="query-params",
            placeholder=_("name, question, arm, tag or note"),
        )
    with state:
        chosen = choice(_("State"), STATES, "state", lambda code: state_word(code) if code else _("any"))
    with who:
        by = choice(_("Who"), list_people(get_store()), "who", lambda name: name or _("anybody"))
    return list_experiments(
        get_store(),
        search=(text or "").strip() or None,
        state=next((known for known in STATES if known == chosen), None),
        person=by or None,
        limit=AT_MOST,
    )


def choice(label: str, options: Sequence[str], key: str, shown: Callable[[str], str]) -> str:
    """A filter with a code, not its translation, in the address; empty means all."""
    named = st.query_params.get(key, ALL)
    if key not in st.session_state:
        st.session_state[key] = named if named in options else ALL
    elif st.session_state[key] not in (ALL, *options):
        st.session_state[key] = ALL
    chosen = st.selectbox(label, (ALL, *options), key=key, format_func=shown, on_change=_to_address, args=(key,))
    return chosen or ALL


def _to_address(key: str) -> None:
    if st.session_state[key]:
        st.query_params[key] = st.session_state[key]
    else:
        st.query_params.pop(key, None)


def overview(rows: Sequence[ExperimentRow]) -> ExperimentRow | None:
    """The list; returns the experiment that was clicked."""
    if not rows:
        nothing()
        return None
    found = ngettext("{n} experiment", "{n} experiments", len(rows)).format(n=len(rows))
    hint = _("the newest {n} are shown").format(n=AT_MOST) if len(rows) == AT_MOST else _("click a row for its notes")
    st.caption(f"{found} · {hint}")
    chosen = experiments_table(rows, key="history-table")
    return next((row for row in rows if row.id == chosen), None)


def nothing() -> None:
    if list_experiments(get_store(), limit=1):
        st.info(_("No experiment matches these filters."))
    else:
        st.info(_("There are no experiments yet. What your team measures is listed here, with notes."))
        link_to("home", _("Start the first one on the home page"))


def details(row: ExperimentRow) -> None:
    """What was asked, by whom, what came out; notes and tags."""
    with st.container(border=True):
        st.subheader(f"{row.id} · {escaped(own_words(row.name))}", anchor=False)
        facts, notes = st.columns(2, gap="large")
        with facts:
            _facts(row)
        with notes:
            _notes(row)


def _facts(row: ExperimentRow) -> None:
    st.markdown(" ".join((state_badge(row.state), *(f":gray-badge[{escaped(tag)}]" for tag in row.tags))))
    if row.question:
        st.markdown(f"*{escaped(row.question)}*")
    took = (row.ended_at - row.started_at).total_seconds() if row.ended_at and row.started_at else None
    trials = _("{done} done, {failed} failed of {total}").format(
        done=row.trials_done, failed=row.trials_failed, total=row.trials_total
    )
    lines = [
        (_("Arms"), " · ".join(row.arms)),
        (_("Trials"), trials),
        (_("Highest throughput"), best_text(row)),
        (_("Queued by"), f"{row.person}, {local_time(row.created_at)} ({row.host})"),
        (_("Took"), duration(took)),
    ]
    st.markdown("  \n".join(f"**{name}:** {escaped(value)}" for name, value in lines if value))
    with st.container(horizontal=True):
        if st.button(_("Open the results"), icon=":material/monitoring:", type="primary", key=f"open-{row.id}"):
            go_to("results", experiment=row.id)
        if row.trials_done and st.button(_("Export an arm"), icon=":material/ios_share:", key=f"export-{row.id}"):
            go_to("export", experiment=row.id)
    tags = st.multiselect(
        _("Tags"), sorted(row.tags), default=sorted(row.tags), accept_new_options=True, key=f"tags-{row.id}"
    )
    if set(tags) != set(row.tags):
        set_tags(get_store(), row.id, tags)
        st.rerun()


def _notes(row: ExperimentRow) -> None:
    notes = list_notes(get_store(), row.id)
    st.markdown(f"**{_('Notes')}**")
    for note in notes:
        st.caption(f"{escaped(note.person)} · {local_time(note.created_at)} ({ago(note.created_at)})")
        st.text(note.text)
    if not notes:
        st.caption(_("No notes yet: say what you learned, so that nobody has to measure it again."))
    with st.form(f"note-{row.id}", clear_on_submit=True, border=False):
        text = st.text_area(_("New note"), key=f"note-text-{row.id}", height=80)
        if st.form_submit_button(_("Add note as {person}").format(person=person())) and text and text.strip():
            add_note(get_store(), row.id, person(), text)
            st.rerun()


header(_("History"), _("Who tried what, when, and what came out."))
experiment = overview(filters())
if experiment is not None:
    details(experiment)
