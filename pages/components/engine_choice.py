"""Which kind of engine: each that has a definition, with what is missing where it is not installed."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from lab.engine.definition import EngineDefinition, list_engines, load_definition
from lab.engine.installation import check_installed, engine_python
from lab.findings import Finding, LabError
from lab.records.plan import DEFAULT_ENGINE
from pages.components.context import environment, show_findings
from pages.components.i18n import _

_SEEN_FOR_S = 60.0


def engine_select(key: str, label: str | None = None) -> str:
    """Draw the choice; gives the kind. An engine that is not here can be chosen: what installs it is said below."""
    kinds = engine_kinds()
    chosen = st.selectbox(
        label or _("Engine"),
        kinds,
        format_func=engine_name,
        help=_("Each has a definition in configs/engines: its command, and its names for the knobs."),
        key=key,
        persist_state="session",
    )
    kind = str(chosen or DEFAULT_ENGINE)
    show_findings(missing_engine(kind))
    return kind


def engines_select(key: str) -> tuple[str, ...]:
    """Draw the choice of several, one at least."""
    chosen = st.multiselect(
        _("Engines"),
        engine_kinds(),
        default=[DEFAULT_ENGINE],
        format_func=engine_name,
        help=_("With more than one, the whole grid is run on each of them."),
        key=key,
        persist_state="session",
    )
    kinds = tuple(str(kind) for kind in chosen) or (DEFAULT_ENGINE,)
    for kind in kinds:
        show_findings(missing_engine(kind))
    return kinds


def engine_name(kind: str) -> str:
    """As people call it, and whether it is here."""
    definition = _definition(kind)
    name = definition.label if definition is not None else kind
    return _("{engine} (not installed)").format(engine=name) if missing_engine(kind) else name


def engine_kinds() -> list[str]:
    """All that are defined, vLLM first."""
    return sorted(list_engines(environment().config_dir), key=lambda kind: (kind != DEFAULT_ENGINE, kind))


def missing_engine(kind: str) -> tuple[Finding, ...]:
    """What is missing to launch it here, as it was within the last minute."""
    env = environment()
    return _missing(kind, str(env.config_dir), str(engine_python(kind, env)))


@st.cache_data(ttl=_SEEN_FOR_S, show_spinner=False)
def _missing(kind: str, config_dir: str, python: str) -> tuple[Finding, ...]:
    try:
        return check_installed(load_definition(kind, Path(config_dir)), Path(python))
    except LabError as problem:
        return problem.findings


def _definition(kind: str) -> EngineDefinition | None:
    try:
        return load_definition(kind, environment().config_dir)
    except LabError:
        return None
