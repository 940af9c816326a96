"""A report without the lock reads document and journals while a run ends: it sees the run in one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from delta_engine.deployment.stored import StoredDocument
from delta_engine.deployment.stores.files import FileJournals
from delta_engine.deployment.stores.memory import MemoryFiles, MemoryStateStore
from tests.builders.deployment import deployment_over
from tests.builders.models import orders
from tests.fakes.platform import FakePlatform, recorded, sync


class Meanwhile:
    """Something that happens once, after the first read that is watched."""

    def __init__(self) -> None:
        self.happens: Callable[[], None] | None = None

    def __call__(self) -> None:
        happens, self.happens = self.happens, None
        if happens is not None:
            happens()


class Store(MemoryStateStore):
    def __init__(self, meanwhile: Meanwhile) -> None:
        super().__init__()
        self._meanwhile = meanwhile

    def read(self, *, allow_cached: bool = False) -> StoredDocument | None:
        document = super().read(allow_cached=allow_cached)
        self._meanwhile()
        return document


class Journals(FileJournals):
    def __init__(self, meanwhile: Meanwhile) -> None:
        super().__init__(MemoryFiles(), "journal")
        self._meanwhile = meanwhile

    def read(self) -> Mapping[str, Sequence[bytes]]:
        entries = super().read()
        self._meanwhile()
        return entries


def test_a_run_that_ends_between_two_reads_is_seen(tmp_path: Path) -> None:
    meanwhile, run = Meanwhile(), ExitStack()
    deployment = deployment_over(tmp_path, store=Store(meanwhile), journals=Journals(meanwhile))
    sync(FakePlatform(), deployment, orders(name="t"))
    before = recorded(deployment)
    _, recorder = run.enter_context(deployment.locked("sync", lambda _note: None))
    recorder.begin(["table.dev.silver.t"], {}, {}, plan_file=None)

    def end() -> None:
        recorder.save(is_forced=True)
        run.close()

    meanwhile.happens = end
    seen = deployment.peek_replayed()
    assert seen is not None
    assert seen.serial == before.serial + 1
    assert not deployment.journals.read()
