"""The arms of an experiment built on the page: a grid over knobs, and arms beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from lab.configs.knob_values import read_value
from lab.configs.knobs import Knob, knob_table, settable_knob
from lab.configs.pair import ConfigPair
from lab.findings import Finding, LabError
from lab.records.plan import DEFAULT_ENGINE
from lab.records.workload import Scalar
from pages.components.experiment_preview import gateway_missing
from pages.components.flag_search import engine_options
from pages.components.i18n import _, word_finding
from pages.components.knob_field import knob_help, knob_label, spelled
from pages.components.markdown import plain_markdown

KEY = "build"
_PHASES = ("prefill", "decode", "kv_cache", "engine", "request")
_NOT_SWEPT = ("request_model", "stream", "max_tokens", "host", "port", "devices")


def grid(pair: ConfigPair, engines: Sequence[str]) -> tuple[dict[str, list[Scalar]], tuple[Finding, ...]]:
    """Draw the grid; gives the values of each chosen knob, and what is wrong with those that cannot be read."""
    known = [k.name for k in knob_table().values() if k.phase in _PHASES and k.name not in _NOT_SWEPT]
    known += [name for name in engine_options(engines) if name not in {*knob_table(), *_NOT_SWEPT}]
    chosen = st.multiselect(
        _("Knobs to vary"),
        known,
        format_func=_knob_title,
        accept_new_options=True,
        placeholder=_("Choose knobs, or type any flag of the engine"),
        help=_("Every combination of the values below becomes an arm."),
        key=f"{KEY}:knobs",
        persist_state="session",
    )
    values = pair.knobs()
    sweep: dict[str, list[Scalar]] = {} if list(engines) == [DEFAULT_ENGINE] else {"engine": [*engines]}
    wrong: list[Finding] = []
    for name in chosen:
        knob = _find(name, pair, wrong)
        if knob is not None and (found := _values(knob, values, wrong)):
            sweep[knob.name] = found
    return sweep, tuple(wrong)


def _knob_title(name: str) -> str:
    knob = knob_table().get(name)
    return name if knob is None else f"{_(knob.label)} · {name}"


def _find(name: str, pair: ConfigPair, wrong: list[Finding]) -> Knob | None:
    try:
        return settable_knob(name, pair.dialect)
    except LabError as problem:
        _say(problem, wrong)
        return None


def _values(knob: Knob, current: Mapping[str, Scalar], wrong: list[Finding]) -> list[Scalar]:
    """The values to try, as a list of choices where there are some, else as text."""
    label = _("Values of {knob}").format(knob=knob_label(knob))
    now = spelled(current[knob.name]) if knob.name in current else _("not set")
    key = f"{KEY}:values:{knob.name}"
    if knob.kind == "bool":
        return list(_pick(label, [True, False], knob, key, [True, False]))
    if knob.choices:
        return list(_pick(label, list(knob.choices), knob, key, None))
    text = st.text_input(
        label,
        placeholder=_("separated by commas; now {value}").format(value=now),
        help=knob_help(knob),
        key=key,
        persist_state="session",
    )
    return _read(knob, str(text or ""), wrong)


def _pick(label: str, options: Sequence[Any], knob: Knob, key: str, default: Sequence[Any] | None) -> Sequence[Any]:
    return st.multiselect(
        label,
        options,
        default=default,
        format_func=spelled,
        placeholder=_("Choose values"),
        help=knob_help(knob),
        key=key,
        persist_state="session",
    )


def _read(knob: Knob, text: str, wrong: list[Finding]) -> list[Scalar]:
    values: list[Scalar] = []
    for part in text.replace("，", ",").split(","):
        if part.strip():
            try:
                values.append(read_value(knob, part))
            except LabError as problem:
                _say(problem, wrong)
    return values


def _say(problem: LabError, wrong: list[Finding]) -> None:
    wrong.extend(problem.findings)
    for finding in problem.findings:
        st.caption(f":red[{plain_markdown(word_finding(finding))}]")


def arms_beside(pair: ConfigPair, engine: str) -> list[dict[str, Any]]:
    """Draw the arms beside the grid: the pair as it is, the gateway, a server that runs already.

    Those that need an engine are run on this one.
    """
    arms: list[dict[str, Any]] = []
    with_engine = {} if engine == DEFAULT_ENGINE else {"engine": engine}
    if st.checkbox(
        _("The config pair as it is"),
        value=True,
        help=_("An arm without any change, to compare the others with."),
        key=f"{KEY}:plain",
        persist_state="session",
    ):
        arms.append({**with_engine})
    if st.checkbox(
        _("No batching (1 sequence at a time)"),
        help=_("vLLM cannot switch continuous batching off; max_num_seqs = 1 serves one request after the other."),
        key=f"{KEY}:serial",
        persist_state="session",
    ):
        arms.append({"name": "no batching (1 sequence at a time)", "set": {"max_num_seqs": 1}, **with_engine})
    if st.checkbox(
        _("The TaoToken gateway, as the baseline"),
        help=_("The same requests, sent to the gateway's address with the key from the environment."),
        key=f"{KEY}:gateway",
        persist_state="session",
    ):
        arms.append({"name": "TaoToken", "target": "gateway"})
        for sentence in gateway_missing(pair.gateway()):
            st.caption(f":orange[:material/warning:] {sentence}")
    if server := _running_server():
        arms.append(server)
    return arms


def _running_server() -> dict[str, Any]:
    """The arm of a server that runs already; empty without an address."""
    address = _typed(
        _("A server that runs already"),
        "attach",
        placeholder="http://127.0.0.1:8000/v1",
        help=_("Its address; it is measured as it is, never started or stopped. Empty: none."),
    )
    if not address:
        return {}
    arm: dict[str, Any] = {"name": address, "target": "attach", "base_url": address}
    first, second = st.columns(2)
    with first:
        model = _typed(_("Its model"), "attach:model", placeholder=_("the first that it lists"))
    with second:
        variable = _typed(
            _("Variable of its key"),
            "attach:variable",
            placeholder=_("none"),
            help=_("The NAME of an environment variable, or of one in .env. A key itself is not taken here."),
        )
    if model:
        arm["set"] = {"model": model}
    return {**arm, "api_key_env": variable} if variable else arm


def _typed(label: str, name: str, **options: Any) -> str:
    return str(st.text_input(label, key=f"{KEY}:{name}", persist_state="session", **options) or "").strip()
