"""The paste box: text of an article in, the two files out; what was understood, guessed and left over beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd
import streamlit as st

from lab.configs.pair import ConfigPair
from lab.configs.paste import LONGEST, PastedValue, PasteResult, merged, read_paste, replaced, why_not_set
from lab.findings import LabError
from pages.components.config_changes import value_text
from pages.components.config_draft import round_number
from pages.components.context import show_findings
from pages.components.i18n import N_, _, ngettext, word
from pages.components.markdown import escaped
from pages.components.pair_panel import finding_lines, is_readable
from pages.components.value_field import plain

_USES = {"merged": N_("Set these values in your files"), "replaced": N_("Replace the files by the rebuilt ones")}
_FILES = {"settings": "settings.json", "config": "config.toml"}
_LONGEST_SNIPPET = 120
_ROWS_SHOWN = 12


def paste_view(working: ConfigPair) -> ConfigPair:
    """Draw the box and what was read; gives the pair as it would be, the working one where nothing was pasted."""
    result = _pasted(working)
    if result is None:
        return working
    finding_lines(result.notes)
    if not result.values:
        st.info(word("paste-nothing"))
        _left_over(result)
        return working
    use = _use(working)
    _understood(result.values, working if use == "merged" else None)
    _left_over(result)
    _rebuilt(result)
    try:
        return merged(working, result) if use == "merged" else replaced(working, result)
    except LabError as problem:
        show_findings(problem.findings)
        return working


def _use(working: ConfigPair) -> str:
    """Into the files as they are, or instead of them; files that cannot be read can only be replaced."""
    uses = list(_USES) if is_readable(working) else ["replaced"]
    return st.segmented_control(
        _("What to do with it"),
        uses,
        format_func=lambda use: _(_USES[use]),
        default=uses[0],
        required=True,
        key=f"configs:paste-use:{round_number()}",
    )


def _pasted(working: ConfigPair) -> PasteResult | None:
    key = f"configs:paste:{round_number()}"
    known = working if is_readable(working) else None
    text = st.text_area(
        _("Text of an article"),
        key=key,
        height=220,
        max_chars=LONGEST,
        placeholder=_(
            "A configuration block or the whole article. Lost quotes, brackets and line breaks do not matter."
        ),
        help=_("Nothing is written before you save. A key in the text is blanked at once and never kept."),
        on_change=_keep_safe_text,
        args=(key, known),
        persist_state="session",
    )
    if not text or not text.strip():
        return None
    kept: PasteResult | None = st.session_state.get(f"{key}:read")
    return kept if kept is not None and kept.safe_text == text else read_paste(text, known)


def _keep_safe_text(key: str, working: ConfigPair | None) -> None:
    """Of what was pasted, only the text with blanked keys stays in the session, and what was read from it."""
    try:
        result = read_paste(str(st.session_state.get(key) or ""), working)
    except LabError:
        st.session_state[key] = ""  # too long for anything but an accident; the field's own limit says so
        return
    st.session_state[key] = result.safe_text
    st.session_state[f"{key}:read"] = result


def _understood(values: Sequence[PastedValue], into: ConfigPair | None) -> None:
    """One row for each value; the guessed ones say why. `into`: the pair in which they are set, if they are."""
    guessed = sum(value.guessed for value in values)
    sure = len(values) - guessed
    count = f":green[:material/check:] {ngettext('{n} value understood', '{n} values understood', sure).format(n=sure)}"
    if guessed:
        count += f"&emsp;:orange[:material/help:] {ngettext('{n} guessed', '{n} guessed', guessed).format(n=guessed)}"
    st.markdown(count)
    frame = pd.DataFrame(
        {
            "file": [_FILES[value.file] for value in values],
            "key": [".".join(value.path) for value in values],
            "value": [value.literal or value_text(value.path[-1], value.value) for value in values],
            "how": [_how(value, into) for value in values],
        }
    )
    st.dataframe(
        frame,
        hide_index=True,
        height="content" if len(values) <= _ROWS_SHOWN else 35 * (_ROWS_SHOWN + 1),
        column_config={
            "file": st.column_config.TextColumn(_("File"), width=100),
            "key": st.column_config.TextColumn(_("Key"), width=210),
            "value": st.column_config.TextColumn(_("Value"), width=150),
            "how": st.column_config.TextColumn(_("Understood or guessed"), width=300),
        },
    )


def _how(value: PastedValue, into: ConfigPair | None) -> str:
    how = _("understood")
    if value.guessed:
        how = _("guessed: {why}").format(why="; ".join(word(reason) for reason in value.reasons))
    why_not = None if into is None else why_not_set(into, value)
    return how if why_not is None else f"{how}; {word(why_not)}"


def _left_over(result: PasteResult) -> None:
    """What could not be placed, and blocks that belong to other clients."""
    if result.unplaced:
        pieces = ngettext("{n} piece not placed", "{n} pieces not placed", len(result.unplaced))
        st.markdown(f":red[:material/close:] {pieces.format(n=len(result.unplaced))}")
        _bullets(f"{plain(_snippet(each.text))} {escaped(word(each.reason))}" for each in result.unplaced)
    if result.others:
        st.markdown(_("Not for the lab's two files:"))
        _bullets(f"**{escaped(each.label)}** {_names(each.keys)}" for each in result.others)


def _bullets(lines: Iterable[str]) -> None:
    st.markdown("\n".join(f"- {line}" for line in lines))


def _snippet(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_SNIPPET else f"{line[: _LONGEST_SNIPPET - 1]}…"


def _names(keys: Sequence[str]) -> str:
    return ", ".join(plain(key) for key in keys)


def _rebuilt(result: PasteResult) -> None:
    with st.expander(_("The rebuilt files")):
        for name, text, language in (
            ("settings.json", result.settings_text, "json"),
            ("config.toml", result.config_text, "toml"),
        ):
            st.caption(name)
            if text is None:
                st.caption(_("The text says nothing of this file; it stays as it is."))
            else:
                st.code(text, language=language)
