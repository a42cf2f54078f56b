"""Export: the files of a measured arm, for production to start from."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from lab.configs.pair import ConfigPair, diff_pair
from lab.engine.definition import EngineDefinition, load_definition
from lab.export import export_arm
from lab.metrics.pool import PooledArm
from lab.plan import arm_pair
from lab.records.plan import Arm
from lab.store import ExperimentView, Store, get_launch
from pages.components.archive import file_word, zipped
from pages.components.context import environment, errors_as_messages, get_store, header
from pages.components.experiment_choice import choose_experiment
from pages.components.frame import link_to
from pages.components.i18n import _
from pages.components.status import milliseconds, target_word, tokens_per_s

_LANGUAGES = {"json": "json", "toml": "toml", "yaml": "yaml", "txt": "bash"}


def page() -> None:
    header(_("Export"), _("The same two files with only the arm's values changed, and what production starts from."))
    store = get_store()
    view = choose_experiment(store, "export", lambda row: row.trials_done > 0)
    if view is None or not view.measurements:
        st.info(_("There is no measured arm yet: what is exported was measured before."))
        link_to("experiments", _("Choose an experiment"))
        return
    arm = _choose_arm(view)
    _figures([pooled for pooled in view.pooled if pooled.arm_name == arm.name])
    with errors_as_messages():
        _files(store, view, arm)


def _choose_arm(view: ExperimentView) -> Arm:
    """The arm named in the address, else the one to take."""
    measured = {row.arm_name for row in view.measurements}
    arms = {row.arm.name: row.arm for row in view.arms if row.arm.name in measured}
    named = st.query_params.get("arm")
    first = next((name for name in (named, _winner(view)) if name in arms), next(iter(arms)))
    chosen = st.selectbox(
        _("Arm"),
        list(arms),
        index=list(arms).index(first),
        format_func=lambda name: f"{name} · {target_word(arms[name].target)}",
        key=f"export:arm:{view.row.id}",
    )
    return arms[chosen]


def _winner(view: ExperimentView) -> str | None:
    """The arm that the verdict names, else the fastest one, among those that launch an engine."""
    own = {row.arm.name for row in view.arms if row.arm.target == "engine"}
    for verdict in view.verdicts:
        if verdict.code == "verdict-winner" and verdict.params["arm"] in own:
            return str(verdict.params["arm"])
    rates = {each.arm_name: each.output_tokens_per_s or 0.0 for each in view.pooled if each.arm_name in own}
    return max(rates, key=lambda name: rates[name]) if rates else None


def _figures(pooled: Sequence[PooledArm]) -> None:
    """What was measured with these values."""
    with st.container(horizontal=True, gap="medium"):
        for each in pooled[:1]:
            st.metric(_("Throughput"), tokens_per_s(each.output_tokens_per_s), width="content")
            st.metric(_("P95 TTFT"), milliseconds(each.ttft_ms.p95), width="content")
            st.metric(_("Repeats"), str(each.repeats), width="content")


def _files(store: Store, view: ExperimentView, arm: Arm) -> None:
    files = export_arm(view.experiment, arm.name, _definition(arm), _effective(store, view, arm))
    st.info(
        _(
            "Keys are placeholders such as `${{TAOTOKEN_API_KEY}}`: no key is stored here, and none is exported."
        ).format(),
        icon=":material/key_off:",
    )
    if arm.target == "engine":
        _changed(view, arm)
    else:
        st.caption(_("This arm launches no engine, so there are the two configuration files only."))
    st.download_button(
        _("All files as a zip"),
        zipped(files),
        file_name=f"experiment-{view.row.id}-{file_word(arm.name)}.zip",
        mime="application/zip",
        icon=":material/folder_zip:",
        type="primary",
        on_click="ignore",
        key="export:zip",
    )
    for tab, file in zip(st.tabs([file.name for file in files]), files, strict=True):
        with tab:
            st.download_button(
                _("Download {file}").format(file=file.name),
                file.text,
                file_name=file.name,
                mime="text/plain",
                icon=":material/download:",
                on_click="ignore",
                key=f"export:file:{file.name}",
            )
            st.code(file.text, language=_LANGUAGES.get(file.name.rpartition(".")[2], "text"))


def _changed(view: ExperimentView, arm: Arm) -> None:
    """What the arm changes in the pair that the experiment started from."""
    before = ConfigPair(view.experiment.settings_text, view.experiment.config_text)
    diff = diff_pair(before, arm_pair(view.experiment, arm))
    if not diff:
        st.caption(_("This arm is the config pair as it was: nothing is changed in the two files."))
        return
    with st.expander(_("What differs from the pair that the experiment started from"), expanded=True):
        st.code(diff, language="diff", wrap_lines=True)


def _definition(arm: Arm) -> EngineDefinition | None:
    return load_definition(arm.engine, environment().config_dir) if arm.engine else None


def _effective(store: Store, view: ExperimentView, arm: Arm) -> dict[str, object] | None:
    """What the engine of a measured trial of this arm took; None where that is not known."""
    for trial in view.trials:
        if trial.arm_name == arm.name and trial.state == "done" and trial.launch_id is not None:
            effective = get_launch(store, trial.launch_id).effective
            if effective:
                return dict(effective)
    return None


page()
