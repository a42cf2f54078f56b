"""What is wrong with the draft, and what would put it right: shown as a diff, done only when somebody says so."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from lab.configs.pair import ConfigPair, diff_pair
from lab.configs.repairs import Repair, repaired, repairs
from lab.findings import Finding
from pages.components.config_draft import propose
from pages.components.i18n import _, ngettext, word
from pages.components.pair_panel import finding_lines, in_order


def findings_panel(pair: ConfigPair, findings: Sequence[Finding]) -> None:
    """Every finding with its file and line, errors first; beside it the repair, where there is one."""
    st.subheader(_("Checks"), anchor=False)
    if not findings:
        st.markdown(f":green[:material/check:] {_('Nothing is wrong with these two files.')}")
        return
    offers = repairs(pair, findings)
    for place, finding in enumerate(in_order(findings)):
        finding_lines([finding])
        for number, repair in enumerate(each for each in offers if each.finding == finding):
            _offer(pair, repair, f"configs:repair:{place}:{number}")
    if len(offers) > 1:
        label = ngettext("Put all {n} right", "Put all {n} right", len(offers)).format(n=len(offers))
        _popover(label, pair, offers, "configs:repair:all")


def _offer(pair: ConfigPair, repair: Repair, key: str) -> None:
    _popover(word(repair.code, repair.params), pair, (repair,), key)


def _popover(label: str, pair: ConfigPair, chosen: Sequence[Repair], key: str) -> None:
    """The change as a diff behind a button; taking it over makes it part of the draft."""
    result = repaired(pair, chosen)
    diff = diff_pair(pair, result)
    if not diff:
        return
    with st.popover(label, icon=":material/build:", type="tertiary", key=key):
        st.code(diff, language="diff", wrap_lines=True)
        st.button(
            _("Take this over"),
            key=f"{key}:take",
            on_click=propose,
            args=(result,),
            help=_("It becomes part of what you are editing; nothing is written before you save."),
        )
