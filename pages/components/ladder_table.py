"""Article 1's ladder table filled in: TTFT by prompt length, the share of prefill, the dominating phase."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from lab.metrics.growth import Fit, LadderFit
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
    st.subheader(_("Prefill and decode by prompt length"), anchor=False)
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


def fit_table(fits: Sequence[LadderFit]) -> None:
    """The straight line and the parabola of each arm with what they leave over; nothing where nothing was fitted."""
    if not fits:
        return
    several = len(fits) > 1
    titles = [_("Fit"), _("TTFT in ms for n prompt tokens"), _("Mean TTFT less the fit, at each length")]
    titles += [_("At most off by"), _("Adjusted R²")]
    if several:
        titles.insert(0, _("Arm"))
    lines = ["| " + " | ".join(titles) + " |", "|" + ":--|" * (len(titles) - 2) + "--:|--:|"]
    for fit in fits:
        for name, curve in ((_("Straight line"), fit.linear), (_("Parabola"), fit.quadratic)):
            cells = [name, _formula(curve), _residuals(fit, curve), percent(curve.worst_ratio, 1)]
            cells.append(number(curve.adjusted_r2, 4))
            lines.append("| " + " | ".join([plain_markdown(fit.arm_name), *cells] if several else cells) + " |")
    st.markdown("\n".join(lines))
    st.caption(
        _(
            "Fitted to every single request by least squares of the relative error, since the scatter grows with TTFT. "
            "It is called linear where the straight line stays within 10 % of the mean at every length, and otherwise "
            "only where the parabola is clearly better by AICc, which charges it for its third parameter."
        )
    )


def _formula(fit: Fit) -> str:
    """`52.1 + 0.231·n − 6.06e-06·n²`."""
    terms = ("", "·n", "·n²")
    first, *others = (f"{abs(c):.3g}{term}" for c, term in zip(fit.coefficients, terms, strict=False))
    signs = ["−" if c < 0 else "+" for c in fit.coefficients]
    head = f"−{first}" if signs[0] == "−" else first
    return " ".join([head, *(f"{sign} {term}" for sign, term in zip(signs[1:], others, strict=True))])


def _residuals(fit: LadderFit, curve: Fit) -> str:
    each = zip(fit.tokens, curve.residuals_ms, strict=True)
    return ", ".join(f"{tokens:,.0f}: {residual:+,.0f} ms".replace("-", "−") for tokens, residual in each)


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
