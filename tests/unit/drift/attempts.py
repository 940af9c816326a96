"""Drift of a table after a run that did not finish."""

import msgspec

from delta_engine.deployment.definitions import define
from delta_engine.deployment.document import Status
from delta_engine.drift.drifted_resources import DriftedTable
from delta_engine.models import Table
from delta_engine.models.record import resource_key
from delta_engine.state.states import TableState
from tests.builders.deployment import applied, deployment_state
from tests.builders.detection import detect
from tests.builders.models import ORDERS


def drift_after(model: Table, *, attempted: Table, found: TableState) -> tuple[DriftedTable, ...]:
    """Return the drift of a table whose model was applied, and another one attempted since."""
    metadata = msgspec.structs.replace(applied(model).metadata, attempted=(define(attempted),))
    resource = msgspec.structs.replace(applied(model, Status.DEGRADED), metadata=metadata)
    state = msgspec.structs.replace(deployment_state(), resources={resource_key(ORDERS): resource})
    return detect(found, state=state)
