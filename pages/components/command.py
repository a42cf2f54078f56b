"""The command that a config pair stands for on this host: overlays and findings named beside it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

import pandas as pd
import streamlit as st

from lab.configs.checks import check_launch, check_pair
from lab.configs.pair import ConfigPair, read_pair
from lab.engine.command import EngineCommand
from lab.engine.definition import EngineDefinition
from lab.engine.pair_command import EXAMPLE_PORT, PairCommand
from lab.engine.pair_command import pair_command as engine_pair_command
from lab.findings import Finding, has_errors
from lab.records.plan import DEFAULT_ENGINE
from pages.components.context import environment, show_findings
from pages.components.effective import shown
from pages.components.host import current_facts
from pages.components.i18n import _, word
from pages.components.outlook import outlook


def live_pair() -> ConfigPair:
    """The config pair in configs/. Raises `LabError` where a file is missing or cannot be read."""
    return read_pair(environment().config_dir)


def pair_command(pair: ConfigPair, kind: str = DEFAULT_ENGINE) -> PairCommand:
    """The command of a pair on this host and all that is said of it; an unset port shows as 8000."""
    return engine_pair_command(environment(), pair, kind, current_facts().kind)


def command_panel(pair: ConfigPair, kind: str = DEFAULT_ENGINE) -> bool:
    """Findings, command and overlays of a pair; True where nothing forbids the launch."""
    built = pair_command(pair, kind)
    checks = check_pair(pair) if kind == DEFAULT_ENGINE else check_launch(pair, kind)
    findings = (*checks, *built.findings, *outlook(pair, kind).findings)
    show_findings(without_repeats(findings))
    command_lines(pair, built.definition, built.command)
    return not has_errors(findings)


def command_lines(pair: ConfigPair, definition: EngineDefinition, command: EngineCommand) -> None:
    """The command as it will be run, its environment, and where this host differs from the pair."""
    st.code(readable(command.argv), language=None, wrap_lines=True)
    if "port" not in pair.engine_knobs():
        st.caption(_("A free port is chosen at the start; {port} stands for it here.").format(port=EXAMPLE_PORT))
    ours = " ".join(f"`{name}={value}`" for name, value in sorted(definition.environment.set.items()))
    if ours:
        st.caption(_("Set in its environment: {variables}").format(variables=ours))
    overlay_table(command)


def without_repeats(findings: Iterable[Finding]) -> list[Finding]:
    """The same remark of two checks is shown once."""
    kept: list[Finding] = []
    for finding in findings:
        if finding not in kept:
            kept.append(finding)
    return kept


def readable(argv: tuple[str, ...]) -> str:
    """The command with one flag a line, ready for a shell."""
    lines: list[list[str]] = [[]]
    for part in argv:
        if part.startswith("--"):
            lines.append([])
        lines[-1].append(shlex.quote(part))
    return " \\\n    ".join(" ".join(line) for line in lines if line)


def overlay_table(command: EngineCommand) -> None:
    """Where this host differs from what the pair asks, and why."""
    if not command.overlays:
        return
    st.caption(
        _("This kind of host differs from the config pair here; an arm that sets the knob itself keeps its value:")
    )
    frame = pd.DataFrame(
        {
            _("Knob"): [overlay.knob for overlay in command.overlays],
            _("Asked"): [shown(overlay.asked) for overlay in command.overlays],
            _("Used here"): [shown(overlay.used) for overlay in command.overlays],
            _("Why"): [word(overlay.reason_code) for overlay in command.overlays],
        }
    )
    st.table(frame, hide_index=True)
