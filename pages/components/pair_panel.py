"""What a change of the config pair would do: the diff to disk, what is wrong with it, saving it."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from lab.configs.checks import check_pair
from lab.configs.pair import ConfigPair, diff_pair, write_pair
from lab.findings import Finding, LabError
from pages.components.context import show_findings
from pages.components.i18n import _, ngettext, word_finding

_ICONS = {"error": ":red[:material/error:]", "warning": ":orange[:material/warning:]", "advice": ":material/info:"}


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
    order = ("error", "warning", "advice")
    for finding in sorted(findings, key=lambda each: order.index(each.severity)):
        st.markdown(f"{_ICONS[finding.severity]} {plain_markdown(word_finding(finding))}")


def plain_markdown(text: str) -> str:
    """Text of a message or a file: code in back-ticks stays code, nothing else is markup."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _escaped(text)
    return "`".join(part if index % 2 else _escaped(part) for index, part in enumerate(parts))


def _escaped(text: str) -> str:
    return "".join(f"\\{character}" if character in "\\`*_[]<>$~#:|" else character for character in text)


def new_errors(base: tuple[Finding, ...], current: tuple[Finding, ...]) -> int:
    """How many errors a change brings that were not there before."""
    counts = [sum(each.severity == "error" for each in findings) for findings in (base, current)]
    return max(0, counts[1] - counts[0])


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
