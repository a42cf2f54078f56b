"""Config pairs by the name a user gives them: a version's number, `disk`, `last`, or a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lab.cli.store_access import open_database
from lab.configs.pair import ConfigPair, missing_files, read_pair
from lab.findings import error

if TYPE_CHECKING:
    from lab.environment import Environment
    from lab.store import ConfigSaveRow

DISK, LAST = "disk", "last"


def saves(env: Environment, limit: int | None = None) -> tuple[ConfigSaveRow, ...]:
    """The versions of the live pair, newest first; what stands on disk is one of them."""
    from lab.host.facts import host_facts
    from lab.store import list_config_saves, note_disk

    store, host = open_database(env), host_facts().name
    if not missing_files(env.config_dir):
        note_disk(store, env.config_dir, host=host)
    return list_config_saves(store, env.config_dir, host=host, limit=limit)


def find_save(env: Environment, which: str) -> ConfigSaveRow:
    """The version of a number or of the word `last`. Raises "no-versions" or "config-save-unknown"."""
    from lab.store import get_config_save

    if which == LAST:
        newest = saves(env, limit=1)
        if not newest:
            raise error("no-versions")
        return newest[0]
    if not which.isdecimal():
        raise error("version-not-found", which=which)
    found = get_config_save(open_database(env), int(which))
    if found.folder != str(env.config_dir.resolve()):
        raise error("config-save-unknown", id=int(which))  # another folder's: the list does not show it either
    return found


def find_pair(env: Environment, which: str) -> ConfigPair:
    """The pair of a version, of the disk or of a folder with the two files; with the live files' names."""
    from lab.store import stored_pair

    live = read_pair(env.config_dir)
    if which == DISK:
        return live
    if Path(which).is_dir():
        found = read_pair(Path(which))
    else:
        found = stored_pair(open_database(env), find_save(env, which).config_hash)
    return ConfigPair(found.settings_text, found.config_text, live.settings_file, live.config_file)
