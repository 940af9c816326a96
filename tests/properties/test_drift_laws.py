"""Laws of drift: nothing differs from itself, what was accepted is no drift, what was imported needs nothing."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from delta_engine.aspects.renames import Renames
from delta_engine.compile.planner import TablePlanner
from delta_engine.drift.handling import accepted
from delta_engine.models import Table
from delta_engine.orchestrate.importing import as_model
from delta_engine.ownership.recorded import Recorded
from delta_engine.state.states import CatalogState, TableState
from tests.builders.detection import drift_from
from tests.builders.strategies import models
from tests.fakes.applying import created


def state_of(model: Table) -> TableState:
    return created(model)


def applied(model: Table) -> Recorded[Table]:
    return replace(Recorded.of(model), column_order=())


@given(models())
def test_a_table_that_is_as_it_was_applied_has_not_drifted(model: Table) -> None:
    assert drift_from(applied(model), state_of(model)) == ()


@given(models(), models())
def test_what_was_accepted_is_drift_no_more(model: Table, other: Table) -> None:
    observed = state_of(other)
    taken = drift_from(applied(model), observed)
    assert drift_from(applied(accepted(model, observed, taken)), observed) == ()


@given(models(), models(), st.data())
def test_each_finding_can_be_accepted_by_itself(model: Table, other: Table, data: st.DataObject) -> None:
    observed = state_of(other)
    acceptable = [
        difference for difference in drift_from(applied(model), observed) if difference.action is not None
    ]
    if not acceptable:
        return
    chosen = data.draw(st.sampled_from(acceptable))
    left = drift_from(applied(accepted(model, observed, [chosen])), observed)
    assert (chosen.kind, chosen.change.subject) not in {
        (difference.kind, difference.change.subject) for difference in left
    }


@given(models(is_governed=False))
def test_a_rename_alone_is_one_finding(model: Table) -> None:
    model, old = replace(model, checks=()), model.columns[0].name
    observed = state_of(Renames.of_columns({old: "renamed"}).applied_to(model))
    (rename,) = (
        difference
        for difference in drift_from(applied(model), observed, Renames.of_columns({old: "renamed"}))
        if difference.kind.value != "primary_key"
    )
    assert (rename.change.desired, rename.change.observed) == (old, "renamed")


@given(models())
def test_what_was_imported_needs_nothing(model: Table) -> None:
    state = state_of(model)
    imported = as_model(model.qualified_name, state)
    snapshot = CatalogState(tables={model.qualified_name.key: state})
    assert not TablePlanner().plan([imported], snapshot)
