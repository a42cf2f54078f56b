"""Every version of the config pair: who, when, what, why; compared with any other, brought back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import streamlit as st

from lab.configs.pair import ConfigPair, diff_pair
from lab.configs.secrets import masked
from lab.store import ConfigSaveRow, Store, count_config_saves, list_config_saves, stored_pair
from pages.components.config_changes import version_title, what_changed, who
from pages.components.config_draft import propose
from pages.components.context import host_name
from pages.components.i18n import N_, _
from pages.components.status import local_time

_TABLE, _CHOSEN, _AGAINST, _SEARCH = (f"configs:versions:{name}" for name in ("table", "chosen", "against", "search"))
_ROWS_SHOWN = 10
_OTHERS = {
    "before": N_("the version before it"),
    "disk": N_("the files on disk"),
    "draft": N_("what you are editing"),
}


def versions_view(store: Store, config_dir: Path, disk: ConfigPair, working: ConfigPair) -> None:
    """Draw the list, the comparison of the chosen two, and the button that brings one back."""
    search = st.text_input(_("Search notes and names"), key=_SEARCH, icon=":material/search:", persist_state="session")
    rows = list_config_saves(store, config_dir, host=host_name(), search=str(search or ""), limit=None)
    if not rows:
        there = count_config_saves(store, config_dir, host=host_name())
        st.info(_("No version matches.") if there else _("There is no version yet: the first save makes one."))
        return
    _list(rows)
    by_number = {row.id: row for row in rows}
    chosen, against = _choice(by_number)
    _comparison(store, by_number, chosen, against, disk, working)
    _restore(store, chosen, disk, working)


def _list(rows: Sequence[ConfigSaveRow]) -> None:
    st.caption(_("Choose one row to see what it changed, two to compare them."))
    frame = pd.DataFrame(
        {
            "number": [row.id for row in rows],
            "when": [local_time(row.created_at) for row in rows],
            "who": [who(row) for row in rows],
            "note": [row.note for row in rows],
            "what": [what_changed(row) for row in rows],
        }
    )
    st.dataframe(
        frame,
        key=_TABLE,
        hide_index=True,
        height="content" if len(rows) <= _ROWS_SHOWN else 35 * (_ROWS_SHOWN + 1),
        selection_mode="multi-row",
        on_select=_take_selection([row.id for row in rows]),
        column_config={
            "number": st.column_config.NumberColumn(_("No."), format="%d", width=45),
            "when": st.column_config.TextColumn(_("When"), width=120, help=_("In the time zone of your browser.")),
            "who": st.column_config.TextColumn(_("Who"), width=105),
            "note": st.column_config.TextColumn(_("Note"), width=110),
            "what": st.column_config.TextColumn(_("What changed"), width=260),
        },
    )


def _take_selection(numbers: Sequence[int]) -> object:
    """For `on_select`: one row is looked at, of two the older one is what the newer is compared with."""

    def take() -> None:
        places = [place for place in st.session_state[_TABLE].selection.rows if place < len(numbers)]
        picked = sorted(numbers[place] for place in places[-2:])
        if picked:
            st.session_state[_CHOSEN] = picked[-1]
            st.session_state[_AGAINST] = picked[0] if len(picked) > 1 else "before"

    return take


def _choice(rows: Mapping[int, ConfigSaveRow]) -> tuple[ConfigSaveRow, int | str]:
    numbers, others = list(rows), [*_OTHERS, *rows]
    titles = {number: version_title(row) for number, row in rows.items()}
    _drop_what_is_gone(_CHOSEN, numbers)
    _drop_what_is_gone(_AGAINST, others)
    first, second = st.columns(2)
    with first:
        number = st.selectbox(
            _("Version"), numbers, format_func=titles.__getitem__, key=_CHOSEN, persist_state="session"
        )
    with second:
        against = st.selectbox(
            _("Compared with"),
            others,
            format_func=lambda other: _(_OTHERS[other]) if isinstance(other, str) else titles[other],
            key=_AGAINST,
            persist_state="session",
        )
    return rows[number], against


def _drop_what_is_gone(key: str, options: Sequence[int | str]) -> None:
    if st.session_state.get(key) not in options:
        st.session_state.pop(key, None)


def _comparison(
    store: Store,
    rows: Mapping[int, ConfigSaveRow],
    chosen: ConfigSaveRow,
    against: int | str,
    disk: ConfigPair,
    working: ConfigPair,
) -> None:
    """The difference, always from the older side to the newer one."""
    version = _as_files(stored_pair(store, chosen.config_hash), disk)
    if against == "disk":
        _diff(version, disk, _("The files on disk are the same as version {number}.").format(number=chosen.id))
    elif against == "draft":
        _diff(version, working, _("What you are editing is the same as version {number}.").format(number=chosen.id))
    elif isinstance(against, int):
        older, newer = sorted((chosen, rows[against]), key=lambda row: row.id)
        st.caption(_("From version {older} to version {newer}").format(older=older.id, newer=newer.id))
        pairs = [_as_files(stored_pair(store, row.config_hash), disk) for row in (older, newer)]
        _diff(pairs[0], pairs[1], _("The two versions are the same."))
    elif chosen.parent_hash is None:
        st.caption(_("This is the first version that was seen here; nothing stands before it."))
    else:
        before = _as_files(stored_pair(store, chosen.parent_hash), disk)
        _diff(before, version, _("Nothing differs from the version before it."))


def _diff(older: ConfigPair, newer: ConfigPair, same: str) -> None:
    diff = diff_pair(older, newer)
    if diff:
        st.code(diff, language="diff", wrap_lines=True)
    else:
        st.caption(same)


def _restore(store: Store, chosen: ConfigSaveRow, disk: ConfigPair, working: ConfigPair) -> None:
    version = _as_files(stored_pair(store, chosen.config_hash), disk)
    st.button(
        _("Bring version {number} back").format(number=chosen.id),
        icon=":material/history:",
        disabled=version == working,
        help=_("Its texts become what you are editing. Saving them makes a new version; nothing is lost."),
        on_click=propose,
        args=(version,),
        kwargs={"restored_id": chosen.id},
    )
    with st.expander(_("The files of version {number}").format(number=chosen.id)):
        show_files(version, (version.settings_file, version.config_file))


def show_files(pair: ConfigPair, names: Collection[str]) -> None:
    """The texts of the files of these names, keys masked."""
    for name, text, language in (
        (pair.settings_file, pair.settings_text, "json"),
        (pair.config_file, pair.config_text, "toml"),
    ):
        if name in names:
            st.caption(name)
            st.code(masked(text), language=language)


def _as_files(pair: ConfigPair, named: ConfigPair) -> ConfigPair:
    return replace(pair, settings_file=named.settings_file, config_file=named.config_file)
