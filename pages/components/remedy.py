"""What to do about a failure: each remedy with its values, and a click that tries it. Nothing changes by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from lab.configs.pair import ConfigPair, read_pair
from lab.engine.definition import load_definition
from lab.engine.overlays import apply_overlays
from lab.engine.remedies import Changes, Remedy, stored_remedies
from lab.findings import LabError
from lab.plan import arm_pair
from lab.plan.remedied import check_remedy, with_remedy
from lab.records.plan import Experiment
from lab.records.workload import Scalar
from lab.store import ExperimentView, TrialRow, get_experiment
from pages.components import config_draft
from pages.components.context import environment, get_store, show_findings
from pages.components.experiment_preview import arm_lines, preview, queue_button
from pages.components.frame import go_to
from pages.components.host import current_facts
from pages.components.i18n import _, word
from pages.components.knob_field import spelled
from pages.components.markdown import plain_markdown
from pages.components.pair_panel import finding_lines, short_names

# the remedy whose arm is shown
_OPEN = "remedy:open"
Start = Callable[[ConfigPair, tuple[str, ...]], None]
# number of the experiment, name of the arm
FailedArm = tuple[int, str]


def trial_remedies(view: ExperimentView, trial: TrialRow) -> None:
    """The remedies of a failed trial; a click shows the experiment with that arm put right, ready to be queued."""
    remedies = stored_remedies(trial.message)
    for place, remedy in enumerate(remedies):
        with _line():
            _sentence(place, remedies)
            key = f"remedy:{trial.id}:{place}"
            if remedy.changes:
                st.button(_("Make the arm"), key=key, width="content", on_click=_open, args=(key,))
        if remedy.changes and st.session_state.get(_OPEN) == key:
            _arm(view.experiment, trial.arm_name, remedy.changes)


def launch_remedies(
    message: Mapping[str, Any], key: str, start: Start | None, kind: str, trial: FailedArm | None = None
) -> None:
    """The remedies of a failed launch; `start` launches a pair with them, None where an engine lives already.

    `kind` is the engine's. `trial` is what the launch was for; None where a person asked for it: then it is the live
    pair that is changed.
    """
    remedies = stored_remedies(message)
    said = _("The live config pair with this change; nothing is saved.")
    if trial is not None:
        said = _("The arm {arm} of experiment {id} with this change; nothing is saved.").format(
            id=trial[0], arm=trial[1]
        )
    for place, remedy in enumerate(remedies):
        with _line():
            _sentence(place, remedies)
            if not remedy.changes:
                continue
            with st.container(horizontal=True, width="content"):
                if start is not None and _button(_("Start with it"), f"{key}:start:{place}", said):
                    _start_with(remedy.changes, start, trial)
                undone = _undone(remedy.changes, kind)
                about = (
                    _("as a draft, to be looked at and saved")
                    if undone is None
                    else _("In the files it has no effect: this host would use {knob} = {value} again.").format(
                        knob=undone, value=spelled(_on_this_host(remedy.changes, kind).get(undone))
                    )
                )
                if _button(_("Into the configs"), f"{key}:draft:{place}", about, off=undone is not None):
                    _to_draft(remedy.changes)


def _line() -> Any:
    return st.container(horizontal=True, vertical_alignment="center", gap="small")


def _sentence(place: int, remedies: tuple[Remedy, ...]) -> None:
    remedy = remedies[place]
    sentence = plain_markdown(word(remedy.code, remedy.params))
    st.markdown(f":material/healing: {sentence}", width="stretch")


def _button(label: str, key: str, said: str, *, off: bool = False) -> bool:
    return st.button(label, key=key, help=said, width="content", disabled=off)


def _undone(changes: Changes, kind: str) -> str | None:
    """The first knob that the overlays of this host take back where it stands in the files; None where none is."""
    used = _on_this_host(changes, kind)
    return next((knob for knob, value in changes.items() if value is not None and used.get(knob) != value), None)


def _on_this_host(changes: Changes, kind: str) -> Mapping[str, Scalar]:
    """What becomes of the changes as values of the config pair; as they are where the engine is not defined."""
    asked = {knob: value for knob, value in changes.items() if value is not None}
    try:
        overlays = load_definition(kind, environment().config_dir).overlay
    except LabError:
        return asked
    return apply_overlays(overlays, asked, frozenset(), current_facts().kind)[0]


def _start_with(changes: Changes, start: Start, trial: FailedArm | None) -> None:
    try:
        pair, explicit = _launched(trial)
        pair = pair.with_knobs(changes)
    except LabError as problem:
        show_findings(problem.findings)
        return
    kept = [knob for knob in explicit if knob not in changes]
    start(pair, (*kept, *(knob for knob, value in changes.items() if value is not None)))


def _launched(trial: FailedArm | None) -> tuple[ConfigPair, tuple[str, ...]]:
    """The pair that a launch was of, and the knobs that somebody set for it: those of the arm, or of the live pair."""
    if trial is None:
        return read_pair(environment().config_dir), ()
    experiment = get_experiment(get_store(), trial[0]).experiment
    arm = next(arm for arm in experiment.arms if arm.name == trial[1])
    return arm_pair(experiment, arm), tuple(arm.set)


def _to_draft(changes: Changes) -> None:
    try:
        pair = short_names(read_pair(environment().config_dir))
        changed = pair.with_knobs(changes)
    except LabError as problem:
        show_findings(problem.findings)
        return
    config_draft.start_from(pair)
    config_draft.propose(changed, "form")
    go_to("configs")


def _arm(experiment: Experiment, arm: str, changes: Changes) -> None:
    """What would be queued, with the choice to leave the other arms out."""
    with st.container(border=True):
        alone = len(experiment.arms) == 1 or st.radio(
            _("What is measured"),
            (False, True),
            format_func=lambda one: _("This arm alone") if one else _("All arms again, this one changed"),
            horizontal=True,
            key="remedy:alone",
        )
        wanted = with_remedy(experiment, arm, changes, alone=bool(alone))
        findings = check_remedy(wanted)
        st.markdown(_("Changed: {changes}").format(changes=changed_text(changes)))
        preview(get_store(), wanted)
        st.markdown(arm_lines(wanted.arms))
        finding_lines(findings)
        with st.container(horizontal=True):
            queue_button(wanted, findings, "remedy:queue", _("Queue it as a new experiment"))
            st.button(_("Close"), key="remedy:close", on_click=_open, args=(None,))


def _open(key: str | None) -> None:
    st.session_state[_OPEN] = key


def changed_text(changes: Changes) -> str:
    """The knobs of a remedy as code, the ones taken out named as such."""
    parts = [
        f"`{knob} = {spelled(value)}`" if value is not None else _("`{knob}` taken out").format(knob=knob)
        for knob, value in changes.items()
    ]
    return ", ".join(parts)
