"""The files changed on disk while somebody edits: what they changed, what you changed, and how to go on."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from lab.configs.knobs import File
from lab.configs.merge import ABSENT, Conflict, Merge, MergeRow, merge_three, three_way_rows
from lab.configs.pair import ConfigPair, pair_hash
from lab.store import ConfigSaveRow
from pages.components.config_changes import value_text
from pages.components.config_draft import rebase, start_from
from pages.components.i18n import N_, _
from pages.components.markdown import escaped
from pages.components.status import MISSING, ago
from pages.components.value_field import plain

_SIDES = {"theirs": N_("as on disk"), "mine": N_("as you have it")}
_COLOURS = {"theirs": "86, 156, 214", "mine": "78, 180, 110", "both": "150, 150, 150", "conflict": "226, 88, 80"}
_CONTEXT = 2
_CELL = "padding:0 .5rem;white-space:pre-wrap;overflow-wrap:anywhere;vertical-align:top;width:33%"
_Choices = Mapping[tuple[File, tuple[Any, ...]], str]


def conflict_panel(base: ConfigPair, disk: ConfigPair, mine: ConfigPair, saved: ConfigSaveRow | None) -> None:
    """Three ways side by side, a choice for each key that both changed, and two buttons."""
    with st.container(border=True):
        st.warning(_headline(saved), icon=":material/sync_problem:")
        key = f"configs:conflict:{pair_hash(disk)[:12]}:{pair_hash(base)[:12]}"
        merge = merge_three(base, disk, mine)
        choices = _choices(merge.conflicts, key)
        merge = merge_three(base, disk, mine, choices) if choices else merge
        _changed_keys(merge)
        with st.expander(_("The three texts side by side")):
            _three_texts(base, disk, mine)
        with st.container(horizontal=True):
            st.button(
                _("Put your changes on top of the files on disk"),
                type="primary",
                icon=":material/merge:",
                help=_("Nothing is written yet: you see the result first, and save it."),
                on_click=rebase,
                args=(disk, merge.pair),
            )
            st.button(
                _("Start again from the files on disk (drops your changes)"),
                icon=":material/refresh:",
                on_click=start_from,
                args=(disk,),
            )


def _headline(saved: ConfigSaveRow | None) -> str:
    """Who was faster, where that is known."""
    sentence = _("The files changed on disk since you started. Nothing was overwritten; your changes are still here.")
    if saved is None or saved.person is None:
        return sentence
    who = _("Version {number} is by {person} ({ago})").format(
        number=saved.id, person=escaped(saved.person), ago=ago(saved.created_at)
    )
    return f"{sentence} {who}: {escaped(saved.note)}" if saved.note else f"{sentence} {who}."


def _choices(conflicts: Sequence[Conflict], key: str) -> _Choices:
    """One field for each key that both sides changed to different values."""
    chosen: dict[tuple[File, tuple[Any, ...]], str] = {}
    for number, conflict in enumerate(conflicts):
        theirs, mine = (_text(conflict.path, value) for value in (conflict.theirs, conflict.mine))
        side = st.radio(
            _("Both changed {key}").format(key=plain(_key(conflict.file, conflict.path))),
            list(_SIDES),
            format_func=lambda each, values={"theirs": theirs, "mine": mine}: f"{_(_SIDES[each])}: {values[each]}",
            horizontal=True,
            key=f"{key}:{number}",
        )
        chosen[conflict.file, conflict.path] = str(side)
    return chosen


def _changed_keys(merge: Merge) -> None:
    """Every key that one of the sides changed: before, on disk, yours."""
    rows: dict[tuple[File, tuple[Any, ...]], dict[str, str]] = {}
    for side, changes in (("theirs", merge.theirs), ("mine", merge.mine)):
        for change in changes:
            place = (change.file, change.path)
            old = _text(change.path, change.old)
            row = rows.setdefault(place, {"key": _key(*place), "base": old, "theirs": old, "mine": old})
            row[side] = _text(change.path, change.new)
    if not rows:
        return
    titles = {"key": _("Key"), "base": _("When you started"), "theirs": _("On disk now"), "mine": _("Yours")}
    frame = pd.DataFrame(list(rows.values())).rename(columns=titles)
    st.dataframe(frame, hide_index=True, height="content")


def _key(file: File, path: Sequence[Any]) -> str:
    return ".".join(map(str, path)) or {"settings": "settings.json", "config": "config.toml"}[file]


def _text(path: Sequence[Any], value: Any) -> str:
    if value is ABSENT:
        return MISSING
    if not path:
        return _("the whole text")
    return value_text(str(path[-1]), value)


def _three_texts(base: ConfigPair, disk: ConfigPair, mine: ConfigPair) -> None:
    for name, texts in (
        (disk.settings_file, (base.settings_text, disk.settings_text, mine.settings_text)),
        (disk.config_file, (base.config_text, disk.config_text, mine.config_text)),
    ):
        rows = three_way_rows(*texts)
        if any(row.kind != "same" for row in rows):
            st.caption(name)
            st.html(_table(_near_changes(rows)))


def _near_changes(rows: Sequence[MergeRow]) -> list[MergeRow | None]:
    """The changed rows with a little around them; None where some are left out."""
    changed = [place for place, row in enumerate(rows) if row.kind != "same"]
    kept: list[MergeRow | None] = []
    for place, row in enumerate(rows):
        if any(abs(place - each) <= _CONTEXT for each in changed):
            kept.append(row)
        elif not kept or kept[-1] is not None:
            kept.append(None)
    return kept


def _table(rows: Sequence[MergeRow | None]) -> str:
    titles = "".join(
        f"<th style='text-align:left;padding:0 .5rem'>{html.escape(title)}</th>"
        for title in (_("When you started"), _("On disk now"), _("Yours"))
    )
    body = "".join(_row(row) for row in rows)
    style = "width:100%;border-collapse:collapse;table-layout:fixed;font-size:.8rem"
    return f"<table style='{style}'><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _row(row: MergeRow | None) -> str:
    if row is None:
        return f"<tr><td colspan='3' style='{_CELL};opacity:.5'>⋯</td></tr>"
    colour = _COLOURS.get(row.kind)
    tint = f"background:rgba({colour},.18)" if colour else ""
    cells = "".join(
        f"<td style='{_CELL};font-family:monospace'>{html.escape(chr(10).join(lines))}</td>"
        for lines in (row.base, row.theirs, row.mine)
    )
    return f"<tr style='{tint}'>{cells}</tr>"
