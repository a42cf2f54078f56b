"""Languages: every text of the pages goes through `_`, chosen anew for each browser session."""

from __future__ import annotations

import gettext
import io
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import streamlit as st
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from lab import messages
from lab.findings import Finding, Param

LOCALE_DIR = Path(__file__).resolve().parents[2] / "locale"
LANGUAGES = {"en": "English", "zh_CN": "中文"}
_STATE_KEY = "language"


@cache
def translator(language: str) -> gettext.NullTranslations:
    """The translations of a language, compiled in memory; a language without a file speaks English."""
    path = LOCALE_DIR / language / "LC_MESSAGES" / "lab.po"
    if not path.is_file():
        return gettext.NullTranslations()
    with path.open("rb") as file:
        catalogue = read_po(file, locale=language)
    compiled = io.BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)


def match_language(tag: str | None) -> str:
    """The language for a tag of a browser or an address ("zh", "zh-Hans-CN", "en_GB"); English where there is none."""
    primary = (tag or "").replace("_", "-").split("-")[0].lower()
    return next((code for code in LANGUAGES if code.split("_")[0] == primary), "en")


def current_language() -> str:
    """The language of this browser session: chosen, else of the address, else of the browser."""
    chosen = st.session_state.get(_STATE_KEY)
    if isinstance(chosen, str):
        return chosen
    return match_language(st.query_params.get("lang") or st.context.locale)


def choose_language(language: str) -> None:
    """Keep a language for this session and in its address."""
    st.session_state[_STATE_KEY] = language
    st.query_params["lang"] = language


def keep_language() -> None:
    """Follow the address where it names a language; write a chosen one back after a change of page dropped it."""
    named = st.query_params.get("lang")
    if named is not None:
        st.session_state[_STATE_KEY] = match_language(named)
    elif _STATE_KEY in st.session_state:
        st.query_params["lang"] = st.session_state[_STATE_KEY]


def _(message: str) -> str:
    """The message in the session's language. An empty message stays empty (gettext would give its header)."""
    return translator(current_language()).gettext(message) if message else ""


def ngettext(singular: str, plural: str, n: int) -> str:
    """One of two forms, by number; the caller formats `{n}` in."""
    return translator(current_language()).ngettext(singular, plural, n)


def word(code: str, params: Mapping[str, Param] | None = None) -> str:
    """The sentence for a message code, in the session's language."""
    return messages.word(code, _written(params or {}), _)


def _written(params: Mapping[str, Param]) -> dict[str, Param]:
    """Parameters as a reader wants them: true and false small, names of metrics and stages in her language."""
    shown = {name: str(value).lower() if isinstance(value, bool) else value for name, value in params.items()}
    if isinstance(shown.get("metric"), str):
        shown["metric"] = _(str(shown["metric"]))
    kind, value = shown.get("stage_kind"), shown.get("stage_value")
    if shown.get("stage") and kind in _STAGES and isinstance(value, int | float):
        shown["stage"] = _(_STAGES[str(kind)]).format(value=f"{value:g}")
    return shown


def N_(message: str) -> str:  # noqa: N802 - the name that gettext's tools know
    """Mark a text for translation where it stands; `_` translates it where it is shown."""
    return message


# how a verdict about one stage of several begins
_STAGES = {
    "concurrency": N_("{value} requests at a time: "),
    "rate": N_("{value} requests per second: "),
    "prompt_tokens": N_("{value} prompt tokens: "),
}
# metrics as the verdicts name them; lab knows no gettext
_METRICS = (N_("throughput"), N_("P95 TTFT"), N_("TPOT"), N_("longest stall"), N_("TTFT of long prompts"))


def word_finding(finding: Finding) -> str:
    """Place, sentence and remedy of a finding, in the session's language."""
    return messages.word_finding(replace(finding, params=_written(finding.params)), _)
