"""Try this: an experiment of the draft against what is on disk or any version, with a ready-made workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from lab.configs.experiment_file import Preset, list_presets, read_experiment
from lab.configs.pair import ConfigPair
from lab.findings import Finding, LabError
from lab.records.plan import Experiment
from lab.records.workload import Scalar
from lab.store import Store, list_config_saves, stored_pair
from pages.components.config_changes import version_title
from pages.components.context import environment, host_name
from pages.components.experiment_builder import built
from pages.components.experiment_preview import arm_lines, preview, queue_button, queued_message
from pages.components.i18n import _
from pages.components.knob_field import spelled
from pages.components.pair_panel import finding_lines, of_the_pair

_OLDER = 10
_FIRST_PRESET = "batching"
_NAMED = 3
_NOT_TRIED = ("port", "host")


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two pairs: `name` is its arm's, `title` tells it apart in a list."""

    name: str
    title: str
    pair: ConfigPair


def try_panel(store: Store, base: ConfigPair, current: ConfigPair) -> None:
    """Draw the choice, what would be run, and the button that queues it. The draft need not be saved for it."""
    queued_message()
    others = _others(store, base, current)
    if not others:
        st.caption(_("Change a knob, or bring a version back: then the two can be measured against each other."))
        return
    presets = {preset.path.stem: preset for preset in list_presets(environment().config_dir)}
    number = st.selectbox(
        _("Against"),
        range(len(others)),
        format_func=lambda place: others[place].title,
        key="configs:try:against",
    )
    chosen = st.selectbox(
        _("Load of the ready-made experiment"),
        sorted(presets, key=lambda stem: stem != _FIRST_PRESET),
        format_func=lambda stem: _(presets[stem].name),
        key="configs:try:load",
    )
    if chosen is None:
        return
    mine = Side(_("as on disk") if current == base else _("as edited"), "", current)
    try:
        experiment, findings = comparison(others[number or 0], mine, presets[chosen])
    except LabError as problem:
        experiment, findings = None, problem.findings
    if experiment is not None:
        preview(store, experiment)
        st.markdown(arm_lines(experiment.arms))
    finding_lines([each for each in findings if not of_the_pair(each, current)])
    queue_button(experiment, findings, "configs:try:queue", _("Queue this comparison"))


def comparison(other: Side, mine: Side, preset: Preset) -> tuple[Experiment | None, tuple[Finding, ...]]:
    """Two arms that differ in nothing but the knobs in which the two pairs differ. Raises `LabError`."""
    model, found = read_experiment(preset.path.read_text("utf-8"), str(preset.path), mine.pair)
    if model is None:
        return None, found
    old, new = tried_knobs(other.pair), tried_knobs(mine.pair)
    differing = [knob for knob in dict.fromkeys((*old, *new)) if old.get(knob) != new.get(knob)]
    # a knob that one side leaves to the engine stands in neither file: the other side's arm sets it
    common = other.pair.with_knobs({knob: None for knob in differing if knob not in new})
    arms = (
        {"name": other.name, "set": {knob: old[knob] for knob in differing if knob not in new}},
        {"name": mine.name, "set": {knob: new[knob] for knob in differing if knob in new}},
    )
    return built(_data(model, arms, differing, old, new), common)


def tried_knobs(pair: ConfigPair) -> dict[str, Scalar]:
    """The knobs whose change can be measured: the engine's and the requests'."""
    knobs = {**pair.engine_knobs(), **pair.request_fields()}
    return {name: value for name, value in knobs.items() if name not in _NOT_TRIED}


def _others(store: Store, base: ConfigPair, current: ConfigPair) -> list[Side]:
    """What the draft can be measured against: the files on disk, and versions with other knobs."""
    knobs = tried_knobs(current)
    found: list[Side] = []
    if _knobs_of(base) not in (None, knobs):
        found.append(Side(_("as on disk"), _("the files on disk"), base))
    for row in list_config_saves(store, environment().config_dir, host=host_name(), limit=_OLDER):
        pair = _named(stored_pair(store, row.config_hash), base)
        if pair != base and _knobs_of(pair) not in (None, knobs):
            found.append(Side(_("version {number}").format(number=row.id), version_title(row), pair))
    return found


def _named(pair: ConfigPair, like: ConfigPair) -> ConfigPair:
    return replace(pair, settings_file=like.settings_file, config_file=like.config_file)


def _knobs_of(pair: ConfigPair) -> dict[str, Scalar] | None:
    try:
        return tried_knobs(pair)
    except LabError:
        return None


def _data(
    model: Experiment,
    arms: Sequence[Mapping[str, Any]],
    differing: Sequence[str],
    old: Mapping[str, Scalar],
    new: Mapping[str, Scalar],
) -> dict[str, Any]:
    """As an experiment file would say it."""
    changes = ", ".join(f"{knob} {_word(old.get(knob))} → {_word(new.get(knob))}" for knob in differing[:_NAMED])
    more = "" if len(differing) <= _NAMED else " …"
    workload = {key: value for key, value in model.workload.model_dump(exclude_none=True).items() if value != ()}
    return {
        "name": _("Try {changes}").format(changes=changes + more),
        "question": _("What does this change of the configs bring, and what does it cost?"),
        "repeats": max(2, model.repeats),
        "order": model.order,
        "seed": model.seed,
        "workload": workload,
        "slo": model.slo.model_dump(exclude_none=True),
        "limits": model.limits.model_dump(exclude_none=True),
        "arm": [dict(arm) for arm in arms],
    }


def _word(value: Scalar | None) -> str:
    return _("not set") if value is None else spelled(value)
