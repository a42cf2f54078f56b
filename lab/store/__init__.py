"""The database: the only place with ORM objects."""

from lab.metrics.compare import Verdict
from lab.store.baselines import list_baselines
from lab.store.database import Store, open_store
from lab.store.differences import compare_experiments
from lab.store.documents import result_document, verdicts
from lab.store.experiments import (
    finish_experiment_if_done,
    finish_idle_experiments,
    get_config_version,
    get_experiment,
    queue_experiment,
    request_stop,
    save_config_version,
    set_experiment_state,
)
from lab.store.history import count_experiments, history_totals, list_experiments, list_people
from lab.store.hosts import (
    get_client_ceiling,
    get_host,
    heartbeat,
    list_hosts,
    save_client_ceiling,
    save_host_facts,
)
from lab.store.intents import add_intent, close_intent, get_intent, open_intents
from lab.store.launches import add_launch, get_launch, list_launches, unfinished_launches, update_launch
from lab.store.measurements import list_samples, load_result, save_measurement
from lab.store.notes import add_note, list_notes, list_tags, set_tags
from lab.store.requests import list_requests
from lab.store.trials import (
    active_trial,
    give_back_trial,
    next_trial,
    recover_trials,
    set_trial_progress,
    set_trial_state,
)
from lab.store.views import (
    ArmRow,
    Baseline,
    BestResult,
    Difference,
    ExperimentRow,
    ExperimentView,
    HostRow,
    IntentRow,
    LaunchRow,
    MeasurementRow,
    NoteRow,
    Totals,
    TrialRow,
    TrialWork,
)

__all__ = [
    "ArmRow",
    "Baseline",
    "BestResult",
    "Difference",
    "ExperimentRow",
    "ExperimentView",
    "HostRow",
    "IntentRow",
    "LaunchRow",
    "MeasurementRow",
    "NoteRow",
    "Store",
    "Totals",
    "TrialRow",
    "TrialWork",
    "Verdict",
    "active_trial",
    "add_intent",
    "add_launch",
    "add_note",
    "close_intent",
    "compare_experiments",
    "count_experiments",
    "finish_experiment_if_done",
    "finish_idle_experiments",
    "get_client_ceiling",
    "get_config_version",
    "get_experiment",
    "get_host",
    "get_intent",
    "get_launch",
    "give_back_trial",
    "heartbeat",
    "history_totals",
    "list_baselines",
    "list_experiments",
    "list_hosts",
    "list_launches",
    "list_notes",
    "list_people",
    "list_requests",
    "list_samples",
    "list_tags",
    "load_result",
    "next_trial",
    "open_intents",
    "open_store",
    "queue_experiment",
    "recover_trials",
    "request_stop",
    "result_document",
    "save_client_ceiling",
    "save_config_version",
    "save_host_facts",
    "save_measurement",
    "set_experiment_state",
    "set_tags",
    "set_trial_progress",
    "set_trial_state",
    "unfinished_launches",
    "update_launch",
    "verdicts",
]
