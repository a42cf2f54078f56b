"""This host as the next launch will find it: what the lab's own engine holds is free by then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.findings import LabError

if TYPE_CHECKING:
    from lab.environment import Environment
    from lab.host.facts import HostFacts


def host_for_a_launch(env: Environment) -> HostFacts:
    """The facts without the engine that this host's runner keeps; as they are where it keeps none. Raises nothing."""
    from lab.host.facts import host_facts
    from lab.host.occupants import without_group

    facts = host_facts()
    return without_group(facts, _own_group(env, facts.name))


def _own_group(env: Environment, host: str) -> int | None:
    """The process group of the runner's engine. The database is looked into only where a runner works with it."""
    from lab.host.lock import mask_password, read_lock
    from lab.host.process_identity import ProcessIdentity, is_same

    holder = read_lock(env.lock_file)
    if holder is None or holder.database_url != mask_password(env.database_url):
        return None
    from lab.store import open_store, unfinished_launches

    try:
        launches = unfinished_launches(open_store(env.database_url), host)
    except LabError:
        return None  # what is wrong with the database is told where it is used
    for launch in launches:
        if launch.pid is None or launch.start_time is None:
            continue
        if is_same(ProcessIdentity(launch.pid, launch.start_time)):
            return launch.pgid
    return None
