"""What the commands share that change the live config pair: the diff, the version that is kept, the report."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from lab.cli.findings_report import echo_findings, finding_json
from lab.cli.store_access import open_database, system_user
from lab.configs.pair import ConfigPair, diff_pair
from lab.findings import Finding

if TYPE_CHECKING:
    from lab.environment import Environment
    from lab.records.states import SaveSource

note_option = click.option("--note", default="", help="Why; kept with the version.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Print the diff, write nothing.")


def save(
    env: Environment,
    old: ConfigPair,
    new: ConfigPair,
    *,
    note: str,
    source: SaveSource = "cli",
    restored_id: int | None = None,
    missing: Collection[str] = (),
) -> int | None:
    """Write the files and keep the version; its number, None where nothing changed. Raises what `save_pair` raises."""
    from lab.host.facts import host_facts
    from lab.store import save_pair

    host, person = host_facts().name, system_user()
    row = save_pair(
        open_database(env),
        env.config_dir,
        old,
        new,
        host=host,
        person=person,
        source=source,
        note=note,
        restored_id=restored_id,
        missing=missing,
    )
    return None if row is None else row.id


def report_change(
    old: ConfigPair,
    new: ConfigPair,
    findings: Iterable[Finding],
    version: int | None,
    *,
    as_json: bool,
    **more: Any,
) -> None:
    """The diff on stdout and the findings on stderr, or all of it as JSON."""
    diff = diff_pair(old, new)
    if as_json:
        told = [finding_json(each) for each in findings]
        report: Mapping[str, Any] = {"written": version is not None, "version": version, "diff": diff, "findings": told}
        click.echo(json.dumps({**report, **more}, ensure_ascii=False, indent=2))
        return
    click.echo(diff or "Nothing to change.", nl=not diff)
    echo_findings(findings, err=True)
