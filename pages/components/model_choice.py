"""The model of a launch: what lies on this host, or on the hub; all that is known of it before anything starts."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from lab.engine.found_models import FoundModel, found_models, model_folders
from lab.engine.hub import HubModel, hub_model
from lab.engine.model import find_model, hub_cache_dir
from lab.engine.model_facts import ModelFacts, read_model_facts
from lab.findings import Finding, LabError
from pages.components.context import environment
from pages.components.download import download_panel
from pages.components.host import facts_table
from pages.components.i18n import _, word_finding
from pages.components.markdown import plain_markdown
from pages.components.status import MISSING, byte_size, count, parameters_text

_HUB = "model-choice:hub"


def model_choice(current: str, key: str) -> str:
    """Draw the choice and what is known of the chosen model; gives its name for the knob `model`."""
    env = environment()
    models = {model.name: model for model in _models((*model_folders(env), hub_cache_dir(env.variables)))}
    options = list(dict.fromkeys([*models, *([current] if current else [])]))
    chosen = st.selectbox(
        _("Model"),
        options,
        index=options.index(current) if current in options else None,
        format_func=lambda name: _label(name, models.get(name)),
        accept_new_options=True,
        key=key,
        placeholder=_("Choose one, or type a folder or a name like organisation/model"),
        help=_("Models in .lab/models, in LAB_MODEL_DIRS and in the hub's cache are listed; any other can be typed."),
    )
    name = str(chosen or "").strip()
    if name:
        _about(name)
    return name


def told_by_the_hub(name: str) -> ModelFacts | None:
    """What the hub said of this model in this session; None where it was not asked."""
    told: HubModel | None = st.session_state.get(_HUB)
    return told.facts if told is not None and told.name == name else None


@st.cache_data(ttl=15, show_spinner=False)
def _models(places: tuple[Path, ...]) -> tuple[FoundModel, ...]:  # noqa: ARG001  what the answer is kept for
    """Looked for again every quarter of a minute: a download may have brought one."""
    return found_models(environment())


def _about(name: str) -> None:
    """Where it is, what it is, what it lacks; for one that is not here what the hub says, and the download."""
    model = find_model(name, environment())
    if model.problem is not None:
        st.error(word_finding(model.problem), icon=":material/error:")
        return
    facts = read_model_facts(name, model.folder) if model.folder is not None else None
    if facts is not None:
        st.markdown(facts_table(_rows(facts, str(model.folder))))
        _problems(facts.problems)
    of_the_hub = model.source in ("hub", "cache")
    if of_the_hub and (facts is None or not facts.complete):
        _from_hub(name)


def _rows(facts: ModelFacts, place: str) -> list[tuple[str, str]]:
    shape = facts.shape
    state = _("whole") if facts.complete else _("incomplete")
    return [
        (_("Place"), f"`{place}` · {state}"),
        (_("Size on disk"), byte_size(facts.disk_bytes)),
        *_shape_rows(facts),
        (_("Layers, heads"), _heads(shape.layers, shape.attention_heads, shape.kv_heads)),
    ]


def _shape_rows(facts: ModelFacts) -> list[tuple[str, str]]:
    shape = facts.shape
    return [
        (_("Parameters"), parameters_text(facts.parameters)),
        (_("Longest context"), _("{n} tokens").format(n=count(shape.context_tokens))),
        (_("Number type"), shape.dtype or facts.weights.main_type or MISSING),
        (_("Quantisation"), shape.quantization or _("none")),
    ]


def _heads(layers: int | None, heads: int | None, kv_heads: int | None) -> str:
    return _("{layers} layers, {heads} heads, {kv_heads} of them with keys and values of their own").format(
        layers=count(layers), heads=count(heads), kv_heads=count(kv_heads)
    )


def _problems(problems: tuple[Finding, ...]) -> None:
    for problem in problems:
        st.warning(plain_markdown(word_finding(problem)), icon=":material/warning:")


def _from_hub(name: str) -> None:
    """The hub is asked only on demand; what it said stays until another model is chosen."""
    st.caption(_("Not, or not in full, on this host. The engine would fetch it at its start, without a progress."))
    if st.button(_("Ask the hub about it"), icon=":material/travel_explore:", key="model-choice:ask"):
        try:
            with st.spinner(_("Asking the hub …")):
                st.session_state[_HUB] = hub_model(name, environment().variables)
        except LabError as problem:
            st.session_state.pop(_HUB, None)
            for finding in problem.findings:
                st.error(plain_markdown(word_finding(finding)), icon=":material/error:")
    told: HubModel | None = st.session_state.get(_HUB)
    if told is not None and told.name == name:
        access = _("gated: its owner must grant access, and HF_TOKEN must be set") if told.gated else _("free")
        rows = [(_("Access"), access), (_("To download"), byte_size(told.total_bytes)), *_shape_rows(told.facts)]
        st.markdown(facts_table(rows))
    download_panel(name)


def _label(name: str, model: FoundModel | None) -> str:
    """A folder by its last name; the whole path stands below, once it is chosen."""
    if model is None:
        return name
    shown = Path(name).name if model.source == "folder" else name
    text = f"{shown} · {parameters_text(model.facts.parameters)} · {byte_size(model.facts.disk_bytes)}"
    return text if model.complete else f"{text} · {_('incomplete')}"
