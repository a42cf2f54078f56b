"""The steps of a launch: where a start stands against earlier ones, and what each step took."""

from __future__ import annotations

from itertools import pairwise

import streamlit as st

from lab.store import ExpectedStart, LaunchRow, LaunchStep, expected_start
from pages.components.context import get_store
from pages.components.i18n import N_, _, ngettext
from pages.components.status import age_s, duration, state_word

PHASES = {
    "launching": N_("process started"),
    "importing": N_("importing"),
    "configuring": N_("reading the model's configuration"),
    "starting-workers": N_("starting workers"),
    "loading-weights": N_("loading weights"),
    "compiling": N_("compiling"),
    "first-run": N_("running the model for the first time"),
    "profiling-memory": N_("measuring memory for the KV cache"),
    "capturing-graphs": N_("capturing CUDA graphs"),
    "warming-up": N_("warming up"),
    "opening-port": N_("opening the port"),
    "listening": N_("port open"),
    "models": N_("waiting for the model"),
    "first-token": N_("waiting for the first token"),
}
# a bar that is full says that it is over, which it is not
_FULLEST = 0.97


def phase_word(phase: str) -> str:
    """A phase of the start in words; an unknown one as the engine's definition names it."""
    return _(PHASES[phase]) if phase in PHASES else phase


def phase_text(launch: LaunchRow) -> str:
    """What a starting engine is at, and for how long it has been starting."""
    since = _("for {duration}").format(duration=duration(age_s(launch.started_at)))
    return f"{phase_word(launch.phase)} · {since}" if launch.phase else since


def start_bar(launch: LaunchRow) -> None:
    """How far a start is, against what earlier starts of the same model took here; words alone for the first one."""
    expected = expected_start(get_store(), launch.host, launch.engine, launch.served_name)
    if expected is None:
        st.caption(phase_text(launch))
        return
    st.progress(start_ratio(launch, expected, age_s(launch.started_at) or 0.0), text=_start_text(launch, expected))


def start_ratio(launch: LaunchRow, expected: ExpectedStart, passed_s: float) -> float:
    """The share of a start that is over: by its time, but never beyond where the phase in hand used to end."""
    later = [s for phase, s in expected.phases.items() if s > expected.phases.get(launch.phase or "", 0.0)]
    ends_s = min([*later, expected.ready_s])
    return min(_FULLEST, min(passed_s, ends_s) / max(expected.ready_s, 0.1))


def _start_text(launch: LaunchRow, expected: ExpectedStart) -> str:
    text = ngettext(
        "usually ready after {duration} ({n} earlier start)",
        "usually ready after {duration} ({n} earlier starts)",
        expected.starts,
    )
    return f"{phase_text(launch)} · {text.format(duration=duration(expected.ready_s), n=expected.starts)}"


def launch_steps(launch: LaunchRow) -> None:
    """The steps on one line; a tooltip has the last line of the log of each. Nothing where none are known."""
    line = steps_line(launch)
    if line is not None:
        said = [f"- {_step_word(step)}: `{step.line.replace('`', '')}`" for step in launch.history if step.line]
        st.caption(line, help="\n".join(said) or None)


def steps_line(launch: LaunchRow) -> str | None:
    """All steps, each with what it took; None for a launch of which none are known."""
    if not launch.history:
        return None
    spans = [after.after_s - step.after_s for step, after in pairwise(launch.history)]
    parts = [f"{_step_word(step)} {duration(span)}" for step, span in zip(launch.history, spans, strict=False)]
    return " → ".join([*parts, _step_word(launch.history[-1])])


def _step_word(step: LaunchStep) -> str:
    return phase_word(step.phase) if step.state == "starting" and step.phase else state_word(step.state)
