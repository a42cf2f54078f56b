"""A conversation beside the engine, one answer at a time, each with the times that a measurement would give it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from lab.configs.pair import ConfigPair
from lab.configs.placeholders import with_variables
from lab.engine.definition import load_definition
from lab.engine.request_fields import request_fields
from lab.findings import LabError
from lab.load.chat import ChatCall, ChatTarget
from lab.records.request import RequestRecord
from lab.records.workload import Scalar
from lab.store import LaunchRow
from pages.components.attach import attached_target
from pages.components.context import environment, errors_as_messages
from pages.components.i18n import N_, _, word
from pages.components.knob_field import spelled
from pages.components.markdown import plain_markdown
from pages.components.runner import runner_seen
from pages.components.status import failure_word, milliseconds, number, tokens_per_s

DEFAULT_TOKENS = 512
# questions whose answer was stopped
_STOPS = "chat:stops"
_REDRAW_S = 0.05
_SHOWN_CHARACTERS = 2000
_SET_HERE = ("temperature", "top_p", "max_tokens")
_KINDS = {"engine": N_("The served engine"), "attach": N_("The running server"), "gateway": N_("TaoToken gateway")}


@dataclass(frozen=True, slots=True)
class Partner:
    """Somebody to talk to: the fields are the pair's parameters by the names of that server."""

    kind: str
    target: ChatTarget
    fields: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Turn:
    """One question with what came of it; `record` is None while the answer is on its way."""

    question: str
    answer: str = ""
    thinking: str = ""
    record: RequestRecord | None = None

    @property
    def counts(self) -> bool:
        """Whether later questions build on it."""
        return self.record is not None and bool(self.answer) and self.record.failure in (None, "cancelled")


def stopped_answers() -> int:
    """How many answers were stopped in this session; a live part of the page redraws it when the number changes."""
    return len(st.session_state.get(_STOPS, ()))


def partners(launch: LaunchRow | None, pair: ConfigPair) -> list[Partner]:
    """Who can be talked to now: the served engine, the server that was attached, the gateway."""
    found = []
    if launch is not None and launch.state in ("ready", "busy") and launch.port is not None:
        found.append(_engine(launch, pair))
    attached = attached_target()
    if attached is not None:
        found.append(Partner("attach", attached, pair.request_fields()))
    gateway = pair.gateway()
    if gateway.base_url and gateway.model and gateway.has_key and gateway.problem is None:
        target = ChatTarget(gateway.base_url, gateway.model, gateway.api_key_env, use_proxy=True)
        found.append(Partner("gateway", target, pair.request_fields()))
    return found


def _engine(launch: LaunchRow, pair: ConfigPair) -> Partner:
    definition = load_definition(launch.engine, environment().config_dir)
    variable = definition.api_key_variable
    target = ChatTarget(f"http://127.0.0.1:{launch.port}/v1", launch.served_name or "", variable)
    return Partner("engine", target, request_fields(definition, pair))


@st.fragment
def chat_panel(launch: LaunchRow | None, pair: ConfigPair) -> None:
    """Draw the conversation and its field."""
    with errors_as_messages():
        pair = with_variables(pair, environment().variables)
        found = partners(launch, pair)
        if not found:
            st.caption(
                _("Start the engine, or attach a running server: then you can talk to it here, one answer at a time.")
            )
            return
        _conversation(found, pair)


def _conversation(found: list[Partner], pair: ConfigPair) -> None:
    place = st.selectbox(
        _("Talk to"),
        range(len(found)),
        format_func=lambda number: f"{_(_KINDS[found[number].kind])} · {found[number].target.model}",
        key="chat:partner",
        disabled=len(found) == 1,
    )
    partner = found[min(place or 0, len(found) - 1)]
    fields, system = _parameters(partner, pair)
    turns: list[Turn] = st.session_state.setdefault(f"chat:{partner.target.base_url}", [])
    with st.container(key="chat-turns"):
        for turn in turns:
            _show(turn)
        here = st.container()
    busy = runner_seen().trial_id is not None
    question = st.chat_input(
        _("A trial is measured now; talking would disturb it.") if busy else _("Ask something …"),
        disabled=busy,
        submit_mode="stop",
        key="chat:question",
    )
    if question:
        # first of all: a press of the stop button may end this run of the script at any call that follows
        turns.append(asked := Turn(str(question)))
        stops: list[str] = st.session_state.setdefault(_STOPS, [])
        try:
            with here:
                _answer(partner, fields, system, turns)
        finally:
            if turns and turns[-1] is asked:
                stops.append(asked.question)
    if turns and st.button(_("Begin anew"), icon=":material/delete_sweep:", key="chat:clear"):
        turns.clear()
        st.rerun(scope="fragment")


def _parameters(partner: Partner, pair: ConfigPair) -> tuple[dict[str, Scalar], str]:
    """The pair's parameters, three of them to be changed for this conversation; the system prompt."""
    fields = {name: value for name, value in partner.fields.items() if name not in _SET_HERE}
    knobs = pair.knobs()
    with st.expander(_("System prompt and parameters")):
        system = st.text_area(_("System prompt"), key="chat:system", placeholder=_("none"), height=80)
        first, second, third = st.columns(3)
        typed: dict[str, Any] = {
            "temperature": first.number_input(
                _("Temperature"), 0.0, 2.0, _float(knobs.get("temperature")), 0.1, key="chat:temperature"
            ),
            "top_p": second.number_input(_("Top p"), 0.0, 1.0, _float(knobs.get("top_p")), 0.05, key="chat:top-p"),
            "max_tokens": third.number_input(
                _("Most tokens"), 1, None, int(knobs.get("max_tokens") or DEFAULT_TOKENS), key="chat:max-tokens"
            ),
        }
        others = ", ".join(f"`{name} = {spelled(value)}`" for name, value in fields.items())
        if others:
            st.caption(_("From the config pair: {parameters}").format(parameters=others))
    return {**fields, **{name: value for name, value in typed.items() if value is not None}}, str(system or "").strip()


def _float(value: Scalar | None) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _answer(partner: Partner, fields: Mapping[str, Scalar], system: str, turns: list[Turn]) -> None:
    """Ask the last turn's question and show the answer as it comes; whatever interrupts it, what came is kept."""
    if runner_seen().trial_id is not None:
        turns.pop()
        st.warning(_("A trial is measured now; talking would disturb it."))
        return
    with _alone_with(partner.target.base_url) as alone:
        if not alone:
            turns.pop()
            st.warning(_("Somebody else is being answered just now; one answer at a time. Try again in a moment."))
            return
        try:
            said = messages(system, turns[:-1], turns[-1].question)
            call = ChatCall(partner.target, said, fields, variables=environment().variables)
        except LabError as problem:
            turns.pop()
            st.error(word(problem.findings[0].code, problem.findings[0].params))
            return
        _streamed(call, turns)


def _streamed(call: ChatCall, turns: list[Turn]) -> None:
    turn = turns[-1]
    stops: list[str] = st.session_state.setdefault(_STOPS, [])
    pieces = iter(call)
    whole = False
    try:
        with st.chat_message("user"):
            st.markdown(_asked(turn.question))
        with st.chat_message("assistant"):
            thinking, answer = st.empty(), st.empty()
            st.caption(_("The rest of this page stands still until the answer is complete."))
            answer.markdown(f":gray[{_('waiting for the first token …')}]")
            drawn = 0.0
            for piece in pieces:
                if piece.kind == "answer":
                    turn = replace(turn, answer=turn.answer + piece.text)
                else:
                    turn = replace(turn, thinking=turn.thinking + piece.text)
                turns[-1] = turn
                if time.monotonic() - drawn > _REDRAW_S:
                    drawn = time.monotonic()
                    _draw(turn, thinking, answer)
        whole = True
    finally:
        # a press of the stop button ends this run of the script in the middle: from here on every call of Streamlit,
        # a look into the session included, would end it again
        pieces.close()  # type: ignore[attr-defined]
        turns[-1] = replace(turn, record=call.record)
        if not whole:
            stops.append(turn.question)
    st.rerun(scope="fragment")


def _draw(turn: Turn, thinking: Any, answer: Any) -> None:
    if turn.thinking:
        thinking.markdown(f":gray[:material/psychology: {plain_markdown(turn.thinking)}]")
    answer.markdown(_spoken(turn.answer) or f":gray[{_('thinking …')}]")


def _show(turn: Turn) -> None:
    with st.chat_message("user"):
        st.markdown(_asked(turn.question))
    with st.chat_message("assistant"):
        if turn.thinking:
            with st.expander(_("Thinking")):
                st.markdown(plain_markdown(turn.thinking))
        if turn.answer:
            st.markdown(_spoken(turn.answer))
        record = turn.record
        if record is None:
            st.caption(f":material/stop: {_('Stopped before anything came.')}")
        elif record.failure == "cancelled":
            st.caption(f":material/stop: {_('Stopped.')} {figures(record)}")
        elif record.failure is not None:
            st.error(f"{failure_word(record.failure)}: {plain_markdown(record.message or '')}", icon=":material/error:")
        else:
            st.caption(figures(record))


def figures(record: RequestRecord) -> str:
    """TTFT, TPOT, speed, tokens and length of one answer; what could not be had is an en dash."""
    speed = None if not record.tpot_ms else 1000 / record.tpot_ms
    parts = [
        f"TTFT {milliseconds(record.ttft_ms)}",
        f"TPOT {milliseconds(record.tpot_ms)}",
        tokens_per_s(speed),
        _("{n} tokens").format(n=number(record.completion_tokens)),
        _("prompt {n}").format(n=number(record.prompt_tokens)),
        _("in {time}").format(time=milliseconds(record.e2e_ms)),
    ]
    if record.finish_reason == "length":
        parts.append(_("cut at the limit of tokens"))
    return " · ".join([*parts, *(word(mark) for mark in record.marks)])


def messages(system: str, turns: list[Turn], question: str) -> list[dict[str, str]]:
    """The conversation as the server gets it: turns that failed are left out."""
    said = [{"role": "system", "content": system}] if system else []
    for turn in turns:
        if turn.counts:
            said += [{"role": "user", "content": turn.question}, {"role": "assistant", "content": turn.answer}]
    return [*said, {"role": "user", "content": question}]


def _asked(question: str) -> str:
    """A question as it was sent; a very long one by its beginning and its length."""
    if len(question) <= _SHOWN_CHARACTERS:
        return _spoken(question)
    said = _("{n} characters in all").format(n=number(len(question)))
    return f"{_spoken(question[:_SHOWN_CHARACTERS])} … :gray[{said}]"


def _spoken(text: str) -> str:
    """Markdown of a model, without pictures: the browser would fetch them from anywhere."""
    return text.replace("![", "!\\[").replace("$", "\\$")


@contextmanager
def _alone_with(base_url: str) -> Iterator[bool]:
    """False where another session of this server is being answered from there."""
    lock = _lock(base_url)
    alone = lock.acquire(blocking=False)
    try:
        yield alone
    finally:
        if alone:
            lock.release()


@st.cache_resource(show_spinner=False)
def _lock(base_url: str) -> threading.Lock:  # noqa: ARG001  the key of the cache
    return threading.Lock()
