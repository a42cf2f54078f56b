"""After a crash: end the engines left behind, put interrupted trials back into the queue."""

from __future__ import annotations

import logging
from pathlib import Path

from lab.engine.process import end_orphan
from lab.findings import error
from lab.host.process_identity import ProcessIdentity
from lab.runner.intents import drop_stale
from lab.runner.site import Site
from lab.store import LaunchRow, finish_idle_experiments, recover_trials, unfinished_launches, update_launch

_log = logging.getLogger(__name__)


def recover(site: Site) -> None:
    """Make good what a killed runner left; engines are known by pid and start time, nothing else is touched.

    Raises `LabError` "engine-not-gone" when one of them does not end: nothing may start beside it.
    """
    for launch in unfinished_launches(site.store, site.host):
        _end_left_behind(site, launch)
    drop_stale(site)
    again = recover_trials(site.store, site.host)
    if again:
        _log.info("interrupted trials are in the queue again: %s", again)
    finish_idle_experiments(site.store, site.host)


def _end_left_behind(site: Site, launch: LaunchRow) -> None:
    if launch.pid is None or launch.start_time is None:
        update_launch(site.store, launch.id, state="stopped")
        return
    site.heartbeat.show(state="stopping", detail=f"launch {launch.id}")
    who = ProcessIdentity(launch.pid, launch.start_time)
    proof = end_orphan(who, launch.pgid or launch.pid, log_path=Path(launch.log_path))
    _log.info("launch %s was left behind: %s", launch.id, proof)
    if not proof.ended:
        raise error("engine-not-gone", pids=", ".join(str(pid) for pid in proof.left))
    update_launch(site.store, launch.id, state="stopped", ended=proof.as_json())
