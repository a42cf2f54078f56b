"""What a launch of a config pair will take of the memory, beside what the engine said when it ran like that."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from lab.configs.pair import ConfigPair
from lab.engine.definition import EngineDefinition
from lab.engine.forecast import MemoryForecast
from lab.engine.model_facts import ModelFacts
from lab.engine.preflight import Outlook
from lab.findings import LabError
from lab.records.plan import DEFAULT_ENGINE
from lab.store import LaunchRow
from pages.components.command import pair_command
from pages.components.context import show_findings
from pages.components.i18n import _, word_finding
from pages.components.outlook import host_launches, outlook
from pages.components.status import MISSING, byte_size, count, number, parameters_text, percent

# parts of the bar, each a colour that reads on light and dark ground
_COLOURS = {"others": "#8a8f98", "weights": "#2f6fbb", "overhead": "#c98a1b", "kv": "#2e8b57", "rest": "transparent"}


def memory_forecast_panel(pair: ConfigPair, kind: str = DEFAULT_ENGINE, told: ModelFacts | None = None) -> None:
    """Bar, table and what speaks against it. Draws nothing but a reason where nothing can be told.

    `told` is what the hub says of a model that is not on this host.
    """
    try:
        ahead = outlook(pair, kind, told)
        built = pair_command(pair, kind)
        definition, command = built.definition, built.command
    except LabError as problem:
        show_findings(problem.findings)
        return
    st.subheader(_("Memory forecast"), anchor=False)
    if ahead.facts is None or ahead.forecast is None:
        st.caption(_nothing_to_tell(ahead, definition))
        return
    found = ahead.forecast
    _bar(found)
    reported = _reported(command.argv)
    st.table(_frame(found, ahead.facts, reported), hide_index=True)
    st.caption(_explanation(found, reported))
    for finding in found.unknown:
        st.caption(f":material/help: {word_finding(finding)}")
    show_findings(found.findings)


def _nothing_to_tell(ahead: Outlook, definition: EngineDefinition) -> str:
    if ahead.facts is None:
        return _("The model is not on this host yet, so what it takes is not known.")
    return _("How {engine} shares the memory is not known here.").format(engine=definition.label)


def _bar(found: MemoryForecast) -> None:
    """One device as a bar: what others hold, weights, the rest of the engine, KV cache."""
    if not found.total_bytes or found.weights_bytes is None:
        return
    others = max(0, found.total_bytes - found.free_bytes) if found.free_bytes is not None else 0
    parts = {
        "others": others,
        "weights": found.weights_bytes,
        "overhead": found.overhead_bytes or 0,
        "kv": max(0, found.kv_bytes or 0),
    }
    scale = max(found.total_bytes, sum(parts.values()))
    cells = "".join(
        f'<div style="width:{100 * size / scale:.2f}%;background:{_COLOURS[name]}"></div>'
        for name, size in parts.items()
    )
    edge = "1px solid rgba(128,128,128,.5)"
    st.html(
        f'<div style="display:flex;height:1.1rem;border:{edge};border-radius:.25rem;overflow:hidden">{cells}</div>'
        f'<div style="display:flex;flex-wrap:wrap;gap:0 1rem;font-size:.8rem;margin-top:.3rem">{_legend(parts)}</div>'
    )


def _legend(parts: Mapping[str, int]) -> str:
    names = {
        "others": _("others and system"),
        "weights": _("weights"),
        "overhead": _("rest of the engine (guess)"),
        "kv": _("KV cache"),
    }
    dot = "display:inline-block;width:.7rem;height:.7rem;border-radius:.15rem;margin-right:.3rem;background:"
    return "".join(
        f'<span><span style="{dot}{_COLOURS[name]}"></span>{names[name]} {byte_size(size)}</span>'
        for name, size in parts.items()
    )


def _frame(found: MemoryForecast, facts: ModelFacts, reported: LaunchRow | None) -> pd.DataFrame:
    """What is forecast, and what the engine reported, row by row."""
    effective = dict(reported.effective or {}) if reported else {}
    tokens = effective.get("kv_cache_size_tokens")
    context = effective.get("max_model_len") or found.context_tokens
    told = isinstance(tokens, int) and isinstance(context, int) and context > 0
    rows = [
        (_device_name(found), byte_size(found.total_bytes), MISSING),
        (_("Share of the engine ({share})").format(share=percent(found.share)), byte_size(found.budget_bytes), MISSING),
        (_("Weights"), _weights(found, facts), MISSING),
        (_("Rest of the engine (guess)"), byte_size(found.overhead_bytes), MISSING),
        (_("Left for the KV cache"), byte_size(found.kv_bytes), MISSING),
        (_("One token in the cache"), _per_token(found), str(effective.get("kv_cache_dtype") or MISSING)),
        (_("Tokens that fit"), count(found.kv_tokens), count(tokens if isinstance(tokens, int) else None)),
        (
            _("Requests of {tokens} tokens at once").format(tokens=count(found.context_tokens)),
            number(found.contexts, 1),
            number(tokens / context, 1) if told else MISSING,
        ),
    ]
    names = (_("Per device"), _("Forecast"), _("Engine reported"))
    return pd.DataFrame(rows, columns=list(names))


def _device_name(found: MemoryForecast) -> str:
    if found.host == "cpu":
        return _("Memory of the host")
    return _("Memory of GPU {devices}").format(devices=", ".join(str(index) for index in found.devices))


def _weights(found: MemoryForecast, facts: ModelFacts) -> str:
    size = byte_size(found.weights_bytes)
    if facts.parameters is None:
        return size
    return _("{size} ({n} parameters)").format(size=size, n=parameters_text(facts.parameters))


def _per_token(found: MemoryForecast) -> str:
    if found.kv_bytes_per_token is None:
        return MISSING
    return _("{bytes} bytes ({dtype})").format(bytes=count(found.kv_bytes_per_token), dtype=found.kv_dtype)


def _explanation(found: MemoryForecast, reported: LaunchRow | None) -> str:
    parts = [_("Weights and bytes per token are counted from the model's files; the rest of the engine is a guess.")]
    if found.kv_fixed:
        parts = [_("The size of the cache is set; nothing of it depends on the guess.")]
    if reported is not None:
        parts.append(_("Reported by launch {id}, which ran with the same command.").format(id=reported.id))
    else:
        parts.append(_("No launch on this host ran with the same command yet."))
    return " ".join(parts)


def _reported(argv: tuple[str, ...]) -> LaunchRow | None:
    """The newest launch of the same command whose engine said what it took."""
    for launch in host_launches():
        if (launch.effective or {}).get("kv_cache_size_tokens") and _without_port(launch.argv) == _without_port(argv):
            return launch
    return None


def _without_port(argv: tuple[str, ...]) -> list[str]:
    """A command as it is asked for; the port is chosen anew for each launch."""
    place = argv.index("--port") if "--port" in argv else len(argv)
    return [*argv[:place], *argv[place + 2 :]]
