"""What a change of the config pair would do: the diff to disk, what is wrong with it, saving it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import streamlit as st

from lab.configs.checks import check_pair
from lab.configs.pair import ConfigPair, diff_pair, write_pair
from lab.findings import Finding, LabError
from pages.components.context import show_findings
from pages.components.i18n import _, ngettext, word_finding
from pages.components.markdown import plain_markdown

_ICONS = {"error": ":red[:material/error:]", "warning": ":orange[:material/warning:]", "advice": ":material/info:"}


def short_names(pair: ConfigPair) -> ConfigPair:
    """The pair with file names as people say them: the folder's name and the file's."""
    folder = Path(pair.settings_file).parent.name
    return replace(pair, settings_file=f"{folder}/settings.json", config_file=f"{folder}/config.toml")


def changes_panel(base: ConfigPair, current: ConfigPair) -> str:
    """The diff to what is on disk; gives its text, empty where nothing changed."""
    diff = diff_pair(base, current)
    st.subheader(_("Changes"), anchor=False)
    if not diff:
        st.caption(_("Nothing is changed: the form shows what is on disk."))
        return diff
    changed = sum(line.startswith("+") and not line.startswith("+++") for line in diff.splitlines())
    st.caption(
        ngettext(
            "{n} line is changed. Nothing is written before you save.",
            "{n} lines are changed. Nothing is written before you save.",
            changed,
        ).format(n=changed)
    )
    st.code(diff, language="diff", wrap_lines=True)
    return diff


def findings_panel(findings: tuple[Finding, ...]) -> None:
    """Every finding with its file and line, errors first."""
    st.subheader(_("Checks"), anchor=False)
    if not findings:
        st.markdown(f":green[:material/check:] {_('Nothing is wrong with these two files.')}")
        return
    finding_lines(findings)


def finding_lines(findings: Sequence[Finding]) -> None:
    """One line for each finding, errors first."""
    for finding in sorted(findings, key=lambda each: list(_ICONS).index(each.severity)):
        st.markdown(f"{_ICONS[finding.severity]} {plain_markdown(word_finding(finding))}")


def new_errors(base: tuple[Finding, ...], current: tuple[Finding, ...]) -> int:
    """How many errors a change brings that were not there before."""
    counts = [sum(each.severity == "error" for each in findings) for findings in (base, current)]
    return max(0, counts[1] - counts[0])


def of_the_pair(finding: Finding, pair: ConfigPair) -> bool:
    """Whether it is about one of the two files, which are shown once for the whole page."""
    return finding.file in (pair.settings_file, pair.config_file)


def checked(pair: ConfigPair) -> tuple[Finding, ...]:
    """All findings on a pair; a file that cannot be parsed is one of them."""
    try:
        return check_pair(pair)
    except LabError as problem:
        return problem.findings


def save(config_dir: Path, base: ConfigPair, current: ConfigPair) -> bool:
    """Write what changed; False, with the reason on the page, where that was not possible."""
    try:
        write_pair(config_dir, base, current)
    except LabError as problem:
        show_findings(problem.findings)
        return False
    return True
