"""A sync in a process of its own, so that it can be interrupted: slow statements, a real lock, a real document.

What a statement did is a file in a folder, so that a further process goes on from there. As long as there is a file
`hold`, statements take their time.
"""

import sys
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS
from delta_engine.backends.sql_runner import Row
from delta_engine.cli.run_view import TerminalView
from delta_engine.cli.terminal import exits
from delta_engine.deployment.locks.file import FileLock
from delta_engine.deployment.stores.local import LocalJournalStore, LocalStateStore
from delta_engine.execute.action_runner import ActionRunner
from delta_engine.models import Table
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.orchestrator import Orchestrator, plan_sync
from delta_engine.orchestrate.runs import open_run
from tests.builders.deployment import deployment_over
from tests.builders.models import orders
from tests.fakes.applying import created
from tests.fakes.platform import FakePlatform

MODELS = [orders(name=f"t{number}") for number in range(40)]


class SlowPlatform(FakePlatform):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._numbers = count()
        self.models = {model.qualified_name.key: model for model in MODELS}
        self.states = {key: created(model) for key, model in self.models.items() if (folder / key).exists()}

    def run(self, sql: str) -> Sequence[Row]:
        (self._folder / f"{next(self._numbers)}.begun").touch()
        deadline = time.monotonic() + 30
        while (self._folder / "hold").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        super().run(sql)
        for key in list(self.states):
            (self._folder / key).touch()
        return ()


def engine(folder: Path) -> Orchestrator:
    state = folder / "state"
    return Orchestrator(
        reader=(platform := SlowPlatform(folder)),
        action_runner=ActionRunner(platform, CatalogAddressing(), DATABRICKS, parallelism=2),
        deployment=deployment_over(
            folder,
            store=LocalStateStore(state, "test"),
            journals=LocalJournalStore(state, "test"),
            lock=FileLock(state, "test"),
        ),
    )


def sync(folder: Path, models: Sequence[Table] = MODELS) -> None:
    view = TerminalView(environment="test")
    with open_run(engine(folder), "sync") as run:
        planned = plan_sync(run, models)
        with view.applying(planned.plan) as (control, on_outcome):
            applied = apply_planned(run, planned, on_outcome, control)
        view.show_report(applied.report)
        applied.result()


if __name__ == "__main__":
    with exits():
        sync(Path(sys.argv[1]))
