"""`lab paste`: settings out of an article's text, whose quotes, signs and line breaks may be lost."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import click

from lab.cli.findings_report import echo_findings, finding_json
from lab.cli.pair_saving import note_option, save
from lab.cli.store_access import json_option
from lab.configs.checks import parse_errors
from lab.configs.fresh_findings import fresh_findings
from lab.configs.pair import ConfigPair, diff_pair, read_pair
from lab.configs.paste import PastedValue, PasteResult, merged, read_paste, replaced, why_not_set
from lab.environment import read_environment
from lab.findings import has_errors
from lab.messages import word


@click.command("paste", short_help="Read settings out of an article's text.")
@click.argument("file", type=click.File("r", encoding="utf-8", errors="replace"), default="-")
@click.option("--replace", "whole", is_flag=True, help="Take the rebuilt files instead of setting their values.")
@click.option("--write", is_flag=True, help="Save the result; without it, nothing is written.")
@note_option
@json_option
def paste(file: Any, whole: bool, write: bool, note: str, as_json: bool) -> int:
    """Show what of the text in FILE (default: stdin) belongs into settings.json and config.toml, and the diff.

    What was understood, what was guessed and what could not be placed is listed; blocks for other clients are named.
    Keys are never kept. A result with an error that was not there before is not written: exit status 2.
    """
    env = read_environment()
    old = read_pair(env.config_dir)
    result = read_paste(file.read(), old)
    new = replaced(old, result) if whole else merged(old, result)
    fresh = fresh_findings(old, new)
    write = write and bool(diff_pair(old, new)) and not has_errors(fresh)
    version = save(env, old, new, note=note or "pasted") if write else None
    if as_json:
        click.echo(json.dumps(_report(result, old, new, version), ensure_ascii=False, indent=2, default=str))
    else:
        _show(result, None if whole else old)
        click.echo(diff_pair(old, new) or "Nothing to change.\n", nl=False)
        echo_findings((*result.notes, *fresh), err=True)
    return 2 if has_errors(fresh) else 0


def _show(result: PasteResult, into: ConfigPair | None) -> None:
    for title, values in (("understood", result.understood), ("guessed", result.guessed)):
        for value in values:
            left_out = None if into is None or parse_errors(into) else why_not_set(into, value)
            why = "; ".join(word(reason, {}) for reason in (*value.reasons, *([left_out] if left_out else [])))
            click.echo(f"{title}: {_line(value)}{f' ({why})' if why else ''}")
    for left in result.unplaced:
        click.echo(f"not placed: {' '.join(left.text.split())} ({word(left.reason, {})})")
    for other in result.others:
        click.echo(f"for another client: {other.label}: {', '.join(other.keys)}")
    if not result.values:
        click.echo(word("paste-nothing", {}))


def _line(value: PastedValue) -> str:
    name = "settings.json" if value.file == "settings" else "config.toml"
    return f"{name} {'.'.join(value.path)} = {json.dumps(value.value, ensure_ascii=False)}"


def _report(result: PasteResult, old: ConfigPair, new: ConfigPair, version: int | None) -> dict[str, Any]:
    return {
        "form": result.dialect,
        "understood": _values(result.understood),
        "guessed": _values(result.guessed),
        "unplaced": [{"text": each.text, "reason": each.reason} for each in result.unplaced],
        "other_clients": [{"client": each.client, "label": each.label, "keys": each.keys} for each in result.others],
        "notes": [finding_json(each) for each in result.notes],
        "settings_text": result.settings_text,
        "config_text": result.config_text,
        "diff": diff_pair(old, new),
        "written": version is not None,
        "version": version,
        "findings": [finding_json(each) for each in fresh_findings(old, new)],
    }


def _values(values: Iterable[PastedValue]) -> list[dict[str, Any]]:
    return [
        {
            "file": each.file,
            "key": ".".join(each.path),
            "knob": each.knob,
            "value": each.value,
            "reasons": each.reasons,
        }
        for each in values
    ]
