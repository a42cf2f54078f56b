"""What an experiment will do, before it is queued: arms, trials, time, findings."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from lab.configs.gateway import GatewayConfig
from lab.findings import Finding, has_errors
from lab.plan import plan_trials, stages
from lab.records.plan import DEFAULT_ENGINE, Arm, Experiment
from lab.store import Store, list_experiments
from pages.components.context import host_name
from pages.components.engine_choice import engine_name
from pages.components.frame import link_to
from pages.components.i18n import _, ngettext, word_finding
from pages.components.knob_field import spelled
from pages.components.markdown import plain_markdown
from pages.components.outlook import arm_findings
from pages.components.own_words import own_words
from pages.components.pair_panel import finding_lines
from pages.components.queueing import queue_once
from pages.components.runner import start_runner
from pages.components.status import duration, target_word
from pages.components.workload_form import workload_sentence

QUEUED = "experiments:queued"


def queued_message() -> None:
    """What the last press of a queue button came to; once."""
    outcome = st.session_state.pop(QUEUED, None)
    if outcome is None:
        return
    number, is_new = outcome
    if is_new:
        st.success(_("Queued as experiment {id}. You may close this page; it runs on.").format(id=number))
    else:
        st.info(
            _("This very experiment is in the queue already, as number {id}; it was not queued twice.").format(
                id=number
            )
        )
    link_to("results", _("See its results"), experiment=number)


def preview(store: Store, experiment: Experiment) -> None:
    """Size, workload and time in two lines."""
    st.markdown(f"**{plain_markdown(size_sentence(experiment))}**")
    st.caption(plain_markdown(f"{workload_sentence(experiment.workload)} · {time_sentence(store, experiment)}"))
    finding_lines(arm_findings(experiment))


def size_sentence(experiment: Experiment) -> str:
    """Arms × repeats = trials, and the measurements where a trial has several."""
    arms = ngettext("{n} arm", "{n} arms", len(experiment.arms)).format(n=len(experiment.arms))
    repeats = ngettext("{n} repeat", "{n} repeats", experiment.repeats).format(n=experiment.repeats)
    planned = len(plan_trials(experiment))
    trials = ngettext("{n} trial", "{n} trials", planned).format(n=planned)
    steps = len(stages(experiment.workload))
    sentence = f"{arms} × {repeats} = {trials}"
    if steps > 1:
        sentence += " · " + _("{n} measurements in each").format(n=steps)
    return sentence


def time_sentence(store: Store, experiment: Experiment) -> str:
    """How long it takes, by the last time it ran on this host; nothing is guessed before that."""
    limit = duration(experiment.limits.max_minutes * 60)
    seconds = _took(store, experiment)
    if not seconds:
        return _("never run on this host yet; ends after {limit} at the latest").format(limit=limit)
    return _("about {minutes}, as last time").format(minutes=duration(seconds))


def _took(store: Store, experiment: Experiment) -> float | None:
    for row in list_experiments(store, search=experiment.name, state="done", host=host_name(), limit=5):
        if row.name == experiment.name and row.started_at and row.ended_at and row.trials_done:
            seconds = (row.ended_at - row.started_at).total_seconds()
            return seconds / (row.trials_done + row.trials_failed) * len(plan_trials(experiment))
    return None


def arm_lines(arms: Sequence[Arm]) -> str:
    """Each arm with what it changes, as a Markdown list."""
    return "\n".join(f"- **{plain_markdown(own_words(arm.name))}** {_difference(arm)}".rstrip() for arm in arms)


def _difference(arm: Arm) -> str:
    changes = ", ".join(f"`{name} = {spelled(value)}`" for name, value in arm.set.items())
    if arm.set and all(f"{name}={spelled(value)}" in arm.name.split(", ") for name, value in arm.set.items()):
        return ""  # an arm of a grid: its name says it
    if arm.target == "engine":
        engine = "" if arm.engine in (None, DEFAULT_ENGINE) else f":gray[{plain_markdown(engine_name(arm.engine))}] "
        return engine + (changes or f":gray[{_('the config pair as it is')}]")
    where = f":gray[{plain_markdown(target_word(arm.target))}]"
    return f"{where} `{arm.base_url}`" if arm.base_url else where


def gateway_missing(gateway: GatewayConfig) -> list[str]:
    """What a gateway arm still lacks, one sentence each."""
    missing = []
    if gateway.problem is not None:
        missing.append(word_finding(gateway.problem))
    elif gateway.base_url is None:
        missing.append(_("No gateway address is set: `TAOTOKEN_BASE_URL`, or `base_url` in config.toml."))
    if gateway.model is None:
        missing.append(_("No gateway model is set: `TAOTOKEN_MODEL`, or `model` under `[request]` in config.toml."))
    if not gateway.has_key:
        missing.append(
            _("The key is missing: `{name}` is not set in the environment or in .env.").format(name=gateway.api_key_env)
        )
    return missing


def gateway_warning(gateway: GatewayConfig) -> None:
    """A warning where the gateway cannot be measured; the other arms run all the same."""
    missing = gateway_missing(gateway)
    if missing:
        st.warning(
            "\n".join(
                [_("The gateway arm will fail; the other arms run all the same."), "", *(f"- {m}" for m in missing)]
            )
        )


def queue_button(experiment: Experiment | None, findings: Sequence[Finding], key: str, label: str) -> None:
    """Queue it and make sure of a runner; what came of it stands in the session for the next run of the page."""
    blocked = experiment is None or has_errors(tuple(findings))
    if st.button(label, type="primary", icon=":material/play_arrow:", disabled=blocked, key=key) and experiment:
        st.session_state[QUEUED] = queue_once(experiment)
        if start_runner():
            st.rerun()
