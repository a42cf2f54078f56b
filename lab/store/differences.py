"""In what experiments differ: settings side by side, the same ones left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.configs.pair import ConfigPair
from lab.findings import LabError
from lab.records.plan import Experiment
from lab.store.database import Store
from lab.store.experiments import get_experiment
from lab.store.views import Difference


def compare_experiments(store: Store, ids: Sequence[int]) -> tuple[Difference, ...]:
    """The settings in which the experiments are not all alike, in the order asked for; none where all agree.

    Knobs of an arm stand beside the arm of the same name. Raises LabError for an unknown number.
    """
    columns = [describe(get_experiment(store, number).experiment) for number in ids]
    fields = dict.fromkeys(field for column in columns for field in column)
    rows = [Difference(field, tuple(column.get(field) for column in columns)) for field in fields]
    return tuple(row for row in rows if len(set(row.values)) > 1)


def describe(experiment: Experiment) -> Mapping[str, str]:
    """Every setting of an experiment by a name; what is not set has none."""
    found: dict[str, object] = {
        "repeats": experiment.repeats,
        "order": experiment.order,
        "seed": experiment.seed,
        "arms": ", ".join(arm.name for arm in experiment.arms),
    }
    for table in ("workload", "slo"):
        found |= {f"{table}.{name}": value for name, value in getattr(experiment, table).model_dump().items()}
    found |= _knobs(experiment)
    for arm in experiment.arms:
        found[f"arm {arm.name}: target"] = arm.target
        found |= {f"arm {arm.name}: {knob}": value for knob, value in arm.set.items()}
    return {name: _shown(value) for name, value in found.items() if value not in (None, (), "")}


def _knobs(experiment: Experiment) -> Mapping[str, object]:
    try:
        return dict(ConfigPair(experiment.settings_text, experiment.config_text).knobs())
    except LabError:
        # An old pair that this version cannot read any more still has all the rest.
        return {}


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
