"""A download from the hub as a step that is seen: wanted, cancelled, how far, how it ended."""

from __future__ import annotations

from typing import Any

import streamlit as st

from lab.store import IntentRow, add_intent, close_intent, open_intents, recent_intents
from pages.components.context import get_store, host_name, live, person, redraw_on_change
from pages.components.i18n import _, word
from pages.components.markdown import plain_markdown
from pages.components.runner import start_runner
from pages.components.status import byte_size, duration

_ENOUGH_TO_TELL = 1


@live(1.0)
def download_panel(name: str) -> None:
    """The download of one model: a button where none is wanted, else its progress and a way to stop it."""
    newest = next((each for each in recent_intents(get_store(), host_name(), "download") if _model(each) == name), None)
    redraw_on_change(f"download:{name}", newest and (newest.id, newest.closed_at))
    if newest is not None and newest.closed_at is None:
        _under_way(newest)
        return
    if newest is not None and newest.outcome == "failed":
        problem: dict[str, Any] = dict((newest.payload or {}).get("problem") or {})
        st.error(plain_markdown(word(str(problem.get("code")), problem)), icon=":material/error:")
    again = newest is not None and newest.outcome != "done"
    label = _("Go on with the download") if again else _("Download")
    if st.button(label, icon=":material/download:", key=f"download:{name}:start"):
        want_download(name)


def want_download(name: str) -> None:
    """Ask the runner for a model; the same wish is not written twice."""
    waiting = open_intents(get_store(), host_name())
    if all(each.kind != "download" or _model(each) != name for each in waiting):
        add_intent(get_store(), host_name(), "download", payload={"model": name}, person=person())
    if start_runner():
        st.rerun()


def _under_way(intent: IntentRow) -> None:
    news = intent.payload or {}
    done, total = news.get("done_bytes"), news.get("total_bytes")
    if not isinstance(done, int) or not isinstance(total, int) or total < _ENOUGH_TO_TELL:
        st.progress(0.0, text=_("Waiting for the runner; a trial that runs is not disturbed"))
    else:
        st.progress(min(1.0, done / total), text=_sentence(done, total, news.get("bytes_per_s")))
    if st.button(_("Stop the download"), icon=":material/stop:", key=f"download:{intent.id}:stop"):
        close_intent(get_store(), intent.id, "cancelled")
        st.rerun()


def _sentence(done: int, total: int, rate: object) -> str:
    text = _("{done} of {total}").format(done=byte_size(done), total=byte_size(total))
    if not isinstance(rate, int | float) or rate <= 0:
        return text
    left = duration((total - done) / rate)
    return text + _(", {rate}/s, {left} left").format(rate=byte_size(rate), left=left)


def _model(intent: IntentRow) -> str | None:
    return (intent.payload or {}).get("model")
