"""One configuration served "now": launched and kept up until someone stops it or a trial needs another one."""

from __future__ import annotations

import logging

from lab.configs.pair import ConfigPair, read_pair
from lab.configs.placeholders import with_variables
from lab.engine.readiness import LaunchCancelled
from lab.environment import read_environment
from lab.findings import LabError
from lab.records.plan import DEFAULT_ENGINE
from lab.runner.engine_keeper import EngineKeeper
from lab.runner.engine_request import engine_request
from lab.runner.outcome import TrialFailed, failed, failed_by
from lab.runner.site import Site
from lab.store import IntentRow, add_launch, close_intent, open_intents, update_launch

_log = logging.getLogger(__name__)


def serve(site: Site, keeper: EngineKeeper, intent: IntentRow) -> None:
    """Launch what the intent asks for and keep it up; a failure is left in a launch row for the page to show."""
    payload = intent.payload or {}
    kind = str(payload.get("engine") or DEFAULT_ENGINE)
    site.heartbeat.show(state="starting", detail=None)
    try:
        pair = _pair(site, payload.get("settings_text"), payload.get("config_text"))
        request = engine_request(site, pair, kind, _explicit(payload.get("explicit")))
        keeper.provide(request, lambda: _unwanted(site, intent))
        keeper.kept_up = True
        close_intent(site.store, intent.id, "done")
    except LaunchCancelled:
        keeper.end()
        close_intent(site.store, intent.id, "superseded")
    except TrialFailed as problem:
        _not_served(site, kind, intent, problem)
    except Exception as bug:  # the edge of a wish: a bug met in one must not end the runner and meet the next
        _log.exception("internal failure")
        keeper.end()
        log = str(site.env.run_dir / "runner.log")
        _not_served(site, kind, intent, failed("internal", problem=f"{type(bug).__name__}: {bug}", log=log))
    site.heartbeat.show(state="serving" if keeper.kept_up else "idle")


def _not_served(site: Site, kind: str, intent: IntentRow, problem: TrialFailed) -> None:
    _log.warning("not served: %s %s", problem.failure, problem.message)
    if problem.launch_id is None:
        _leave_a_row(site, kind, problem)
    close_intent(site.store, intent.id, "failed")


def _pair(site: Site, settings_text: object, config_text: object) -> ConfigPair:
    try:
        if isinstance(settings_text, str) and isinstance(config_text, str):
            pair = ConfigPair(settings_text, config_text)
        else:
            pair = read_pair(site.env.config_dir)
        return with_variables(pair, read_environment().variables)
    except LabError as problem:
        raise failed_by(problem.findings[0], "bad-config") from problem


def _explicit(names: object) -> frozenset[str]:
    """Knobs that somebody set for this start: no overlay of the host takes them back."""
    return frozenset(str(name) for name in names) if isinstance(names, list) else frozenset()


def _unwanted(site: Site, intent: IntentRow) -> bool:
    """The runner must end, or someone asked for a stop or for another configuration meanwhile."""
    if site.shutdown.is_set():
        return True
    later = (each for each in open_intents(site.store, site.host) if each.id > intent.id)
    return any(each.kind in ("stop-engine", "serve", "shutdown") for each in later)


def _leave_a_row(site: Site, kind: str, problem: TrialFailed) -> None:
    launch_id = add_launch(site.store, site.host, kind, (), (), "", None, None, None, None, None)
    ended = {"message": problem.message}
    update_launch(site.store, launch_id, state="failed", failure=problem.failure, ended=ended)
