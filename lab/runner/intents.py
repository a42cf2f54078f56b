"""What people asked of this host's runner, obeyed between trials (a running trial watches for stops itself)."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from lab.runner.engine_keeper import EngineKeeper
from lab.runner.site import Site
from lab.store import IntentRow, close_intent, finish_experiment_if_done, open_intents

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is left to do after the short wishes were met."""

    shutdown: bool = False
    serve: IntentRow | None = None


def obey(site: Site, keeper: EngineKeeper) -> Wishes:
    """Meet every open intent that takes no time, oldest first; the newest serve intent is handed back."""
    shutdown = False
    serve: IntentRow | None = None
    for intent in open_intents(site.store, site.host):
        if intent.kind == "download":
            continue  # takes its time: lab.runner.downloads
        _log.info("intent %s: %s by %s", intent.id, intent.kind, intent.person)
        if intent.kind == "stop-experiment":
            _finish_stop(site, intent)
        elif intent.kind == "shutdown":
            shutdown = True
            close_intent(site.store, intent.id, "done")
        else:
            if serve is not None:
                close_intent(site.store, serve.id, "superseded")
            serve = intent if intent.kind == "serve" else None
            if intent.kind == "stop-engine":
                keeper.end()
                site.heartbeat.show(state="idle", detail=None)
                close_intent(site.store, intent.id, "done")
    return Wishes(shutdown, serve)


def drop_stale(site: Site) -> None:
    """Close what was asked of a runner that is gone: its end, and the end of its engine."""
    for intent in open_intents(site.store, site.host):
        if intent.kind in ("shutdown", "stop-engine"):
            close_intent(site.store, intent.id, "no-runner")


def _finish_stop(site: Site, intent: IntentRow) -> None:
    """Its queued trials were cancelled by who asked, its running one by the watch of that trial."""
    if intent.experiment_id is not None:
        finish_experiment_if_done(site.store, intent.experiment_id)
    close_intent(site.store, intent.id, "done")
