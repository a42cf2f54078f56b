"""Names of the shipped experiments and their arms in the session's language; names that people gave stay as typed."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from lab.environment import ROOT
from lab.findings import Param
from lab.metrics.verdict import Verdict
from lab.store import ExperimentView
from pages.components.i18n import _

_ARM_PARAMS = ("arm", "other", "marked", "failing")


def own_words(text: str) -> str:
    """A text of a shipped experiment file translated; any other as it is."""
    return _(text) if text in _shipped() else text


def view_in_words(view: ExperimentView) -> ExperimentView:
    """An experiment for showing. Trials and the experiment itself keep their names: they are looked up by them."""
    return replace(
        view,
        row=replace(view.row, name=own_words(view.row.name), question=own_words(view.row.question)),
        measurements=tuple(replace(row, arm_name=own_words(row.arm_name)) for row in view.measurements),
        verdicts=tuple(_verdict(verdict) for verdict in view.verdicts),
        pooled=tuple(replace(arm, arm_name=own_words(arm.arm_name)) for arm in view.pooled),
        ladders=tuple(replace(fit, arm_name=own_words(fit.arm_name)) for fit in view.ladders),
    )


def _verdict(verdict: Verdict) -> Verdict:
    named: dict[str, Param] = {
        name: own_words(value) for name in _ARM_PARAMS if isinstance(value := verdict.params.get(name), str)
    }
    return replace(verdict, params={**verdict.params, **named})


@cache
def _shipped() -> frozenset[str]:
    found: set[str] = set()
    for path in sorted((ROOT / "configs" / "experiments").glob("*.toml")):
        try:
            found.update(_texts(tomllib.loads(path.read_text("utf-8"))))
        except (OSError, ValueError):  # a file that somebody is editing has no names to offer
            continue
    return frozenset(found)


def _texts(table: Mapping[str, Any]) -> set[str]:
    arms = [arm for arm in table.get("arm", ()) if isinstance(arm, Mapping)]
    texts = [table.get("name"), table.get("question"), *(arm.get("name") for arm in arms)]
    return {text for text in texts if isinstance(text, str)}
