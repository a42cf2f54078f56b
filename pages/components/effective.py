"""What an engine was asked for and what it took, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from lab.configs.knobs import knob_table
from lab.engine.effective import compare_effective
from lab.records.workload import Scalar
from lab.store import LaunchRow
from pages.components.i18n import _, word
from pages.components.status import MISSING

# set by the lab itself, the same in every launch
_OURS = (
    "model", "served_model_name", "host", "port", "enable_prompt_tokens_details", "enable_per_request_metrics",
)  # fmt: skip


def effective_table(launch: LaunchRow) -> None:
    """Knob, asked, in force, differs; a line that says so where the engine told nothing."""
    effective = dict(launch.effective or {})
    if not effective:
        st.caption(_("The engine has not said which configuration it runs with."))
        return
    asked = asked_flags(launch.argv)
    marks = compare_effective(asked, effective)
    differing = {mark.params.get("knob") for mark in marks}
    for mark in marks:
        st.warning(word(mark.code, dict(mark.params)))
    names = sorted({*effective, *asked}, key=lambda name: (name not in differing, name not in asked, name))
    frame = pd.DataFrame(
        {
            _("Knob"): names,
            _("Meaning"): [_label(name) for name in names],
            _("Asked"): [shown(asked.get(name)) for name in names],
            _("In force"): [shown(effective.get(name)) for name in names],
            _("Differs"): [_("differs") if name in differing else "" for name in names],
        }
    )
    st.dataframe(frame, hide_index=True)


def asked_flags(argv: Sequence[str]) -> dict[str, Scalar]:
    """The knobs that a command sets: `--max-num-seqs 64`, `--enforce-eager`, `--no-enable-prefix-caching`."""
    asked: dict[str, Scalar] = {}
    for place, part in enumerate(argv):
        if not part.startswith("--"):
            continue
        flag, _equals, inline = part.partition("=")
        following = argv[place + 1] if place + 1 < len(argv) else "--"
        value = inline or ("" if following.startswith("--") else following)
        name = flag.removeprefix("--").replace("-", "_")
        if value:
            asked[name] = value
        else:
            asked[name.removeprefix("no_")] = not name.startswith("no_")
    return {name: value for name, value in asked.items() if name not in _OURS}


def _label(name: str) -> str:
    knob = knob_table().get(name)
    return _(knob.label) if knob else ""


def shown(value: object) -> str:
    """A setting as the files write it; what is not set is an en dash."""
    if value is None:
        return MISSING
    return str(value).lower() if isinstance(value, bool) else str(value)
