"""Gateway measurements of all experiments: what other results are shown beside."""

from __future__ import annotations

from sqlalchemy import select

from lab.records.workload import Workload
from lab.store import models
from lab.store.database import Store
from lab.store.measurements import measurement_rows
from lab.store.views import BaselineRow


def list_baselines(store: Store, workload: Workload, *, limit: int = 50) -> tuple[BaselineRow, ...]:
    """Measurements of gateway arms under the same workload in any experiment, the newest experiments first."""
    wanted = workload.model_dump(mode="json")
    with store.reading() as session:
        candidates = session.execute(
            select(models.Experiment.id, models.Experiment.name, models.Experiment.workload)
            .where(models.Experiment.id.in_(select(models.Arm.experiment_id).where(models.Arm.target == "gateway")))
            .order_by(models.Experiment.id.desc())
        )
        names = {number: name for number, name, asked in candidates if asked == wanted}
        found = [
            BaselineRow(number, name, row)
            for number, name in list(names.items())[:limit]
            for row in measurement_rows(session, models.Trial.experiment_id == number, models.Arm.target == "gateway")
        ]
    return tuple(found[:limit])
