"""The runner's loop: recover, then obey, run the next trial, or idle."""

from __future__ import annotations

import logging
import threading

from lab.environment import Environment
from lab.findings import LabError
from lab.host.facts import host_facts
from lab.runner.downloads import Downloads
from lab.runner.engine_keeper import EngineKeeper
from lab.runner.intents import obey
from lab.runner.patience import AGAIN_S, passes
from lab.runner.preparing import Targets
from lab.runner.recovery import recover
from lab.runner.served import Lookout
from lab.runner.serving import serve
from lab.runner.site import Site
from lab.runner.status import Heartbeat
from lab.runner.trial import run_trial
from lab.store import next_trial, open_store, save_host_facts

IDLE_S = 0.3
_log = logging.getLogger(__name__)


def run_until(env: Environment, shutdown: threading.Event) -> None:
    """Work until `shutdown` is set or a shutdown intent comes; leaves no engine behind, however it ends."""
    store = open_store(env.database_url)
    facts = host_facts()
    save_host_facts(store, facts.name, facts.kind, facts.as_json())
    heartbeat = Heartbeat(store, facts.name)
    site = Site(store, env, facts.name, facts.kind, len(facts.gpus), heartbeat, shutdown)
    heartbeat.start()
    keeper = EngineKeeper(site)
    targets = Targets(site, keeper)
    downloads = Downloads(site)
    try:
        recover(site)
        heartbeat.show(state="idle", detail=None)
        _log.info("ready for work on %s", facts.name)
        lookout = Lookout(keeper)
        while _step_patiently(site, keeper, targets, lookout, downloads):
            pass
    finally:
        heartbeat.show(state="stopping", trial_id=None)
        try:
            downloads.pause()
            keeper.end()
        finally:
            heartbeat.end()
            _log.info("ended")


def _step_patiently(site: Site, keeper: EngineKeeper, targets: Targets, lookout: Lookout, downloads: Downloads) -> bool:
    try:
        return step(site, keeper, targets, lookout, downloads)
    except LabError as problem:
        if not passes(problem):
            raise
        _log.warning("the database is not there just now: %s", problem.findings[0].params)
        site.shutdown.wait(AGAIN_S)
        return True


def step(site: Site, keeper: EngineKeeper, targets: Targets, lookout: Lookout, downloads: Downloads) -> bool:
    """One round of the loop; False when the runner must end."""
    if site.shutdown.is_set():
        return False
    wishes = obey(site, keeper)
    if wishes.shutdown:
        return False
    work = next_trial(site.store, site.host)
    if work is not None:
        downloads.pause()  # a measurement has the network, the disk and the cores to itself
        run_trial(site, keeper, targets, work)
    elif wishes.serve is not None:
        serve(site, keeper, wishes.serve)
    else:
        downloads.step()
        _idle(site, keeper, lookout)
    return True


def _idle(site: Site, keeper: EngineKeeper, lookout: Lookout) -> None:
    """Nothing to do: an engine that nobody asked to keep ends now, one that is served is looked after."""
    if keeper.engine is not None and not keeper.kept_up:
        site.heartbeat.show(state="stopping", detail=None)
        keeper.end()
        site.heartbeat.show(state="idle")
    elif (problem := lookout.loss()) is not None:
        _log.warning("the served engine is lost: %s", problem.message)
        keeper.end(problem)
        site.heartbeat.show(state="idle", detail=None)
    elif keeper.engine is not None:
        site.heartbeat.show(state="serving", detail=keeper.engine.root_url)
    site.shutdown.wait(IDLE_S)
