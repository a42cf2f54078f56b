"""Article 1's ladder table filled in: TTFT by prompt length, the share of prefill, the dominating phase."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from lab.metrics.ladder import LadderStep
from pages.components.i18n import N_, _
from pages.components.markdown import plain_markdown
from pages.components.status import MISSING, count, milliseconds, number, percent

_PHASES = {"prefill": N_("prefill"), "decode": N_("decode"), "neither": N_("about even")}


def ladder_table(steps: Sequence[LadderStep]) -> None:
    """One row for each arm and prompt length; nothing where the workload climbs no ladder."""
    if not steps:
        return
    several = len({step.arm_name for step in steps}) > 1
    titles = [_("Prompt tokens"), _("Requests"), _("Mean TTFT"), _("Mean TPOT"), _("Mean E2E")]
    titles += [_("Share of prefill"), _("Dominating phase")]
    if several:
        titles.insert(0, _("Arm"))
    lines = ["| " + " | ".join(titles) + " |", "|" + ("--:|" if not several else ":--|") + "--:|" * (len(titles) - 1)]
    lines += ["| " + " | ".join(_cells(step, several)) + " |" for step in steps]
    st.markdown("\n".join(lines))
    st.caption(
        _(
            "The share of prefill is TTFT in E2E: the time before the first token, network and queue included. It "
            "falls with every token that is asked for."
        )
    )


def _cells(step: LadderStep, several: bool) -> list[str]:
    phase = _(_PHASES[step.dominating]) if step.dominating is not None else MISSING
    cells = [
        number(step.prompt_tokens),
        count(step.requests),
        milliseconds(step.ttft_ms),
        milliseconds(step.tpot_ms),
        milliseconds(step.e2e_ms),
        percent(step.prefill_ratio),
        phase,
    ]
    return [plain_markdown(step.arm_name), *cells] if several else cells
