"""Accepted drift on record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from delta_engine.deployment.definitions import define, define_baseline
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.deployment.stores.files import MemoryStateStore, memory_journals
from delta_engine.models import Column, Table
from delta_engine.orchestrate.records import adopt_drift
from delta_engine.state.states import state_of
from tests.builders.deployment import FACTS, repository_over
from tests.builders.detection import MODEL, FakeHistory, commit, detect, recorded


def test_unmanaged_parts_follow_a_column_whose_new_name_is_accepted(tmp_path: Path) -> None:
    def with_parts(name: str) -> Table:
        columns = (MODEL.columns[0], Column(name, "string", comment="theirs"))
        return replace(MODEL, columns=columns, cluster_by=(name,))

    observed = state_of(with_parts("full_name"))
    rename = commit(4, "RENAME COLUMN", oldColumnPath="name", newColumnPath="full_name")
    history = FakeHistory(commit(3, "OPTIMIZE"), rename)
    recorder = RunRecorder(repository_over(MemoryStateStore(), tmp_path), memory_journals(), FACTS, fence=1)
    recorder.state = recorded(baseline=define_baseline(define(MODEL), with_parts("name")))
    adopt_drift(recorder, None, detect(observed, state=recorder.state, history=history))
    (resource,) = (one for key, one in recorder.state.resources.items() if key.startswith("table."))
    assert resource.metadata.declared is not None
    assert [column.name for column in resource.metadata.declared.columns] == ["id", "full_name"]
    assert detect(observed, state=recorder.state, history=FakeHistory()) == ()
