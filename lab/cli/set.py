"""`lab set`: edit the live config pair, format kept."""

from __future__ import annotations

from collections.abc import Sequence

import click

from lab.cli.pair_saving import dry_run_option, note_option, report_change, save
from lab.cli.store_access import json_option
from lab.configs.fresh_findings import fresh_findings
from lab.configs.knob_values import read_value
from lab.configs.knobs import Knob, engine_flags, knob_table, lab_keys, settable_knob, switches
from lab.configs.pair import ConfigPair, diff_pair, read_pair
from lab.configs.secrets import refuse_secret
from lab.environment import read_environment
from lab.findings import LabError, error, has_errors
from lab.records.workload import Scalar


@click.command("set", short_help="Edit the live config pair, format kept; print the diff.")
@click.argument("assignments", nargs=-1, required=True, metavar="KNOB=VALUE…")
@note_option
@dry_run_option
@json_option
def set_knobs(assignments: tuple[str, ...], note: str, dry_run: bool, as_json: bool) -> int:
    """Set knobs of the live settings.json and config.toml; an empty VALUE takes the knob out.

    Knobs go by their own names, the articles' keys or the engine's flags; lists are written 1,4,16. A change that
    would make the pair wrong is refused with exit status 2.
    """
    env = read_environment()
    old = read_pair(env.config_dir)
    new = _changed(old, assignments)
    fresh = fresh_findings(old, new)
    if has_errors(fresh):
        raise LabError(*(each for each in fresh if each.severity == "error"))
    write = bool(diff_pair(old, new)) and not dry_run
    report_change(old, new, fresh, save(env, old, new, note=note) if write else None, as_json=as_json)
    return 0


def _changed(pair: ConfigPair, assignments: Sequence[str]) -> ConfigPair:
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or not name.strip():
            raise error("set-form", given=name)
        pair = _assigned(pair, name.strip(), text.strip())
    return pair


def _assigned(pair: ConfigPair, name: str, text: str) -> ConfigPair:
    refuse_secret(name.rpartition(".")[2], text)
    if name.rpartition(".")[2] in switches():
        return pair.with_knobs({name: text.lower() in ("true", "on", "1")})
    knob = settable_knob(name, pair.dialect)
    if not text:
        return pair.with_knobs({knob.name: None})
    if knob.phase == "workload":
        values = [read_value(knob, part) for part in text.strip("[]").split(",")] if knob.many else None
        return pair.with_workload({knob.name.partition(".")[2]: values or read_value(knob, text)})
    return pair.with_knobs({knob.name: _value(knob, text)})


def _value(knob: Knob, text: str) -> Scalar:
    """Flags whose type nothing knows take what the text looks like."""
    if knob.name in knob_table() or knob.name in lab_keys() or knob.name in engine_flags():
        return read_value(knob, text)
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
