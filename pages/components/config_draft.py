"""What somebody edits on the page Configs: the pair it began with, and what has been made of it so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from lab.configs.gateway import DEFAULT_KEY_VARIABLE
from lab.configs.pair import ConfigPair, pair_hash
from lab.configs.without_keys import without_keys

VIEW = "configs:view"
_BASE, _DRAFT, _CURRENT, _ROUND, _RESTORED = (
    f"configs:{name}" for name in ("base", "draft", "current", "round", "restored")
)


def base_pair(disk: ConfigPair) -> ConfigPair:
    """What stood on disk when the editing began."""
    base: ConfigPair = st.session_state.setdefault(_BASE, disk)
    return base


def working_pair(base: ConfigPair) -> ConfigPair:
    """What the fields show; a key that stands in a file is never among it."""
    draft: ConfigPair | None = st.session_state.get(_DRAFT)
    return keyless(draft or base)


def set_current(pair: ConfigPair) -> None:
    """The pair as the fields of this run of the page make it."""
    st.session_state[_CURRENT] = pair


def start_from(pair: ConfigPair) -> None:
    """Forget every edit and show this pair."""
    st.session_state[_BASE] = pair
    for key in (_DRAFT, _RESTORED):
        st.session_state.pop(key, None)
    _next_round()


def propose(pair: ConfigPair, view: str | None = None, restored_id: int | None = None) -> None:
    """Make this pair the draft, to be looked at and saved. For `on_click`, since it may change the view."""
    st.session_state[_DRAFT] = pair
    st.session_state.pop(_RESTORED, None)
    if restored_id is not None:
        st.session_state[_RESTORED] = (restored_id, pair_hash(pair))
    if view is not None:
        st.session_state[VIEW] = view
    _next_round()


def rebase(disk: ConfigPair, pair: ConfigPair) -> None:
    """Go on with this draft over files that somebody else has changed."""
    st.session_state[_BASE] = disk
    propose(pair)


def keep_edits() -> None:
    """What was edited in one view is what the next one starts from."""
    st.session_state[_DRAFT] = st.session_state[_CURRENT]


def restored_from(pair: ConfigPair) -> int | None:
    """The version that the draft brings back; None where it was changed since, or is none."""
    number, version = st.session_state.get(_RESTORED, (None, ""))
    return number if version == pair_hash(pair) else None


def draft_key(pair: ConfigPair) -> str:
    """Fields belong to one text of the files and one start; a discarded edit must not come back."""
    return f"{round_number()}:{pair_hash(pair)[:12]}"


def round_number() -> int:
    number: int = st.session_state.get(_ROUND, 0)
    return number


def keyless(pair: ConfigPair) -> ConfigPair:
    """The pair with placeholders for keys."""
    return replace(
        pair,
        settings_text=without_keys(pair.settings_text, pair.settings_file),
        config_text=without_keys(pair.config_text, pair.config_file),
    )


def key_taken_out(key: str, file: str) -> Callable[[], None]:
    """For `on_change` of a text of a file: no key stays in the field."""

    def take_out() -> None:
        typed = st.session_state.get(key)
        clean = without_keys(typed, file) if isinstance(typed, str) else typed
        if clean != typed:
            st.session_state[key] = clean
            st.session_state[f"{key}:refused"] = f"${{{DEFAULT_KEY_VARIABLE}}}"

    return take_out


def _next_round() -> None:
    st.session_state[_ROUND] = round_number() + 1
