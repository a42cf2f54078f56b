"""A process of its own that works on a database together with others; prints JSON."""

from __future__ import annotations

import json
import sqlite3
import sys
import time

from lab.store import (
    finish_experiment_if_done,
    heartbeat,
    list_experiments,
    next_trial,
    open_store,
    queue_experiment,
    queue_experiment_once,
    set_trial_state,
)
from tests.factories import make_experiment, make_request, make_trials, measure


def opened(url: str) -> object:
    """Opens a file that may not exist yet and queues one experiment."""
    store = open_store(url)
    experiment = make_experiment()
    return queue_experiment(store, experiment, make_trials(experiment), person="Ada", host="h")


def queues_once(url: str) -> object:
    """Queues the same experiment as others that run at the same time."""
    store, experiment = open_store(url), make_experiment()
    return queue_experiment_once(store, experiment, make_trials(experiment), person="Ada", host="h")


def claims(url: str) -> object:
    """Claims until nothing is left."""
    store, found = open_store(url), []
    while (work := next_trial(store, "h")) is not None:
        found.append(work.trial_id)
        set_trial_state(store, work.trial_id, "done")
        finish_experiment_if_done(store, work.experiment_id)
    return found


def writes(url: str) -> object:
    """Claims its own host's trials and stores a measurement of 300 requests for each."""
    store, host = open_store(url), sys.argv[3]
    experiment = make_experiment(name=host)
    queue_experiment(store, experiment, make_trials(experiment), person=host, host=host)
    while (work := next_trial(store, host)) is not None:
        heartbeat(store, host, runner_pid=1, state="measuring", trial_id=work.trial_id)
        measure(store, work, [make_request(i) for i in range(300)])
        set_trial_state(store, work.trial_id, "done")
        finish_experiment_if_done(store, work.experiment_id)
    return host


def holds(url: str) -> object:
    """Holds the writer's place for a while, as somebody's shell does."""
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    print("held", flush=True)  # noqa: T201
    time.sleep(float(sys.argv[3]))
    connection.execute("ROLLBACK")
    return None


def reads(url: str) -> object:
    """The longest time that reading the history took."""
    store, longest = open_store(url), 0.0
    for _ in range(50):
        start = time.perf_counter()
        list_experiments(store)
        longest = max(longest, time.perf_counter() - start)
        time.sleep(0.02)
    return longest


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](sys.argv[2])))  # noqa: T201
