"""What a change of the config pair would do: the diff to disk, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import streamlit as st

from lab.configs.checks import check_pair, parse_errors
from lab.configs.fresh_findings import fresh_findings
from lab.configs.pair import ConfigPair, diff_pair
from lab.findings import Finding, LabError
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


def finding_lines(findings: Sequence[Finding]) -> None:
    """One line for each finding, errors first."""
    for finding in in_order(findings):
        st.markdown(f"{_ICONS[finding.severity]} {plain_markdown(word_finding(finding))}")


def in_order(findings: Sequence[Finding]) -> list[Finding]:
    """Errors first."""
    return sorted(findings, key=lambda each: list(_ICONS).index(each.severity))


def fresh_errors(base: ConfigPair, current: ConfigPair) -> tuple[Finding, ...]:
    """The errors that a change brings. Those that only show since a broken file can be read again are not its own."""
    if not parse_errors(base):
        return tuple(each for each in fresh_findings(base, current) if each.severity == "error")
    before, after = ([each for each in checked(pair) if each.severity == "error"] for pair in (base, current))
    return tuple(after) if parse_errors(current) and len(after) > len(before) else ()


def of_the_pair(finding: Finding, pair: ConfigPair) -> bool:
    """Whether it is about one of the two files, which are shown once for the whole page."""
    return finding.file in (pair.settings_file, pair.config_file)


def is_readable(pair: ConfigPair) -> bool:
    """Whether both files can be parsed, so that there are knobs to show."""
    return not parse_errors(pair)


def checked(pair: ConfigPair) -> tuple[Finding, ...]:
    """All findings on a pair; a file that cannot be parsed is one of them."""
    try:
        return check_pair(pair)
    except LabError as problem:
        return problem.findings
