"""Gateway measurements of all experiments: what other results are shown beside."""

from __future__ import annotations

from collections import defaultdict

from sqlalchemy import select

from lab.records.workload import Workload
from lab.store import models
from lab.store.database import Store
from lab.store.measurements import measurement_rows
from lab.store.views import Baseline, MeasurementRow


def list_baselines(
    store: Store, workload: Workload, *, besides: int | None = None, limit: int = 20
) -> tuple[Baseline, ...]:
    """Experiments (but not `besides`) whose gateway arms were measured under the same workload, the newest first."""
    wanted = workload.model_dump(mode="json")
    with store.reading() as session:
        query = (
            select(
                models.Experiment.id, models.Experiment.name, models.Experiment.created_at, models.Experiment.workload
            )
            .where(models.Experiment.id.in_(select(models.Arm.experiment_id).where(models.Arm.target == "gateway")))
            .order_by(models.Experiment.id.desc())
        )
        same = [row for row in session.execute(query) if row.workload == wanted and row.id != besides][:limit]
        by_experiment: dict[int, list[MeasurementRow]] = defaultdict(list)
        for row in same:
            which = (models.Trial.experiment_id == row.id, models.Arm.target == "gateway")
            by_experiment[row.id].extend(measurement_rows(session, *which))
        return tuple(
            Baseline(row.id, row.name, row.created_at, tuple(by_experiment[row.id]))
            for row in same
            if by_experiment[row.id]
        )
