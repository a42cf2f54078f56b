"""What the kill matrix has seen, as JSON for machines and as a table for people."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Seen:
    """One killed process. `gone_s` from the kill until nothing of the engine was left; None where the cell broke."""

    process: str
    moment: str
    round: int
    held: bool
    seconds: float
    gone_s: float | None
    words: str


def write_json(path: Path, about: Mapping[str, object], seen: Sequence[Seen]) -> None:
    path.write_text(json.dumps({**about, "cells": [asdict(each) for each in seen]}, indent=1) + "\n", "utf-8")


def markdown(
    about: Mapping[str, object], processes: Sequence[str], moments: Sequence[str], seen: Sequence[Seen]
) -> str:
    """A line per process, a column per moment: how many of the kills held, and the seconds until all was gone."""
    lines = [f"- {name}: {value}" for name, value in about.items()]
    lines += ["", "| killed | " + " | ".join(moments) + " |", "|---" * (len(moments) + 1) + "|"]
    for process in processes:
        cells = [
            _cell([each for each in seen if (each.process, each.moment) == (process, moment)]) for moment in moments
        ]
        lines.append(f"| {process} | " + " | ".join(cells) + " |")
    broken = [f"- {each.process}:{each.moment}, round {each.round}: {each.words}" for each in seen if not each.held]
    return "\n".join([*lines, *(["", "Broken:", *broken] if broken else []), ""])


def _cell(kills: Sequence[Seen]) -> str:
    if not kills:
        return "–"
    held = [each for each in kills if each.held]
    times = [each.gone_s for each in held if each.gone_s is not None]
    gone = f", {statistics.median(times):.1f} s" if times else ""
    return f"{len(held)} of {len(kills)}{gone}"
