"""The texts of the two files, to be edited as they are."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from lab.configs.pair import ConfigPair
from pages.components.config_draft import draft_key, key_taken_out
from pages.components.i18n import _
from pages.components.value_field import plain

_STYLE = "<style>.st-key-configs-texts textarea { font-family: monospace; font-size: 0.85rem; }</style>"


def text_fields(working: ConfigPair) -> ConfigPair:
    """Draw both; gives the pair as it would be."""
    key = draft_key(working)
    st.html(_STYLE)
    with st.container(key="configs-texts"):
        settings = _text(working.settings_file, working.settings_text, f"text:{key}:settings")
        config = _text(working.config_file, working.config_text, f"text:{key}:config")
    return replace(working, settings_text=settings, config_text=config)


def _text(name: str, text: str, key: str) -> str:
    height = min(700, max(160, 26 * (text.count("\n") + 2)))
    st.session_state.setdefault(key, text)  # not as the widget's own value: a key is taken out of the state
    edited = st.text_area(name, height=height, key=key, on_change=key_taken_out(key, name), persist_state="session")
    say_key_taken_out(key, name)
    edited = str(edited or "")
    # a browser's text field knows one line end only
    if "\r\n" in text and "\r" not in edited:
        edited = edited.replace("\n", "\r\n")
    return edited


def say_key_taken_out(key: str, where: str) -> None:
    """What became of a key that was typed or pasted into the field, and how it is done rightly."""
    placeholder = st.session_state.pop(f"{key}:refused", None)
    if placeholder is not None:
        st.error(
            _(
                "What was typed into {where} held a key. It was taken out before anything kept it; {placeholder} "
                "stands in its place. Put the key itself into the environment or into the file .env."
            ).format(where=plain(where), placeholder=plain(placeholder)),
            icon=":material/key_off:",
        )
