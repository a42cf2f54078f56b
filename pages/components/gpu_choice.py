"""Which GPUs a launch uses: each with its memory and who holds it now."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from lab.configs.pair import ConfigPair
from lab.host.facts import Gpu, HostFacts
from lab.records.workload import Scalar
from pages.components.i18n import _, word
from pages.components.status import MISSING, byte_size

DEVICES, SHARDS = "devices", "tensor_parallel_size"


def gpu_choice(pair: ConfigPair, host: HostFacts, key: str) -> dict[str, Scalar | None]:
    """Draw the GPUs; gives the knobs to change, None for one to remove, nothing where all stays as it is.

    A host without a GPU says why there is none and has nothing to choose.
    """
    if not host.gpus:
        st.caption(_("This host has no GPU to choose: the engine runs on the CPU. {why}").format(why=_why(host)))
        return {}
    st.dataframe(_frame(host.gpus), hide_index=True)
    now = chosen_now(pair.knobs(), host)
    options = [gpu.index for gpu in host.gpus]
    by_index = {gpu.index: gpu for gpu in host.gpus}
    picked = st.pills(
        _("GPUs for the launch"),
        options,
        selection_mode="multi",
        default=[index for index in now if index in by_index],
        format_func=lambda index: _label(by_index[index]),
        key=key,
    )
    wanted = sorted(picked)
    if not wanted:
        st.caption(_("None is chosen: the engine takes the first ones."))
    return changes(pair.knobs(), host, wanted)


def chosen_now(knobs: Mapping[str, Scalar], host: HostFacts) -> list[int]:
    """The GPUs that the pair means: those it names, else the first ones."""
    named = [part.strip() for part in str(knobs.get(DEVICES) or "").split(",") if part.strip()]
    if named and all(part.isdecimal() for part in named):
        return [int(part) for part in named]
    size = knobs.get(SHARDS)
    return [gpu.index for gpu in host.gpus[: size if isinstance(size, int) and size > 0 else 1]]


def changes(knobs: Mapping[str, Scalar], host: HostFacts, wanted: list[int]) -> dict[str, Scalar | None]:
    """What must be set so that just these GPUs are used, the model split over all of them."""
    if sorted(chosen_now(knobs, host)) == wanted:
        return {}
    if not wanted:
        return {name: None for name in (DEVICES, SHARDS) if name in knobs}
    found: dict[str, Scalar | None] = {DEVICES: ",".join(str(index) for index in wanted)}
    if len(wanted) > 1 or SHARDS in knobs:
        found[SHARDS] = len(wanted)
    return found


def _frame(gpus: tuple[Gpu, ...]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            _("GPU"): [str(gpu.index) for gpu in gpus],
            _("Name"): [gpu.name or MISSING for gpu in gpus],
            _("Memory"): [byte_size(gpu.memory_total_bytes) for gpu in gpus],
            _("Free now"): [byte_size(free_bytes(gpu)) for gpu in gpus],
            _("Held by"): [holders(gpu) for gpu in gpus],
        }
    )


def free_bytes(gpu: Gpu) -> int | None:
    """What nobody holds; None where the driver does not tell."""
    if gpu.memory_total_bytes is None or gpu.memory_used_bytes is None:
        return None
    return gpu.memory_total_bytes - gpu.memory_used_bytes


def holders(gpu: Gpu) -> str:
    """Each process with its owner, name and memory."""
    texts = [
        _("{pid} {name} ({user}): {used}").format(
            pid=process.pid,
            name=process.name or MISSING,
            user=process.user or MISSING,
            used=byte_size(process.used_bytes),
        )
        for process in gpu.processes
    ]
    return "; ".join(texts) or MISSING


def _label(gpu: Gpu) -> str:
    return _("{index}: {name}, {free} free").format(
        index=gpu.index, name=gpu.name or MISSING, free=byte_size(free_bytes(gpu))
    )


def _why(host: HostFacts) -> str:
    return word(host.gpu_note) if host.gpu_note else ""
