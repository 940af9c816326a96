"""Tables whose models are gone: kept and told, or dropped with consent."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from delta_engine.actions import DropTable
from delta_engine.actions.policy import Allowance, DestructiveKind, Policy, Removed
from delta_engine.backends.capabilities import DATABRICKS, OPEN_SOURCE_CATALOG, Capabilities
from delta_engine.deployment.deployment import Deployment
from delta_engine.errors import UnsafePlanError
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.models import Part, QualifiedName
from delta_engine.orchestrate.orchestrator import plan_sync
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.orchestrate.runs import open_run
from delta_engine.orchestrate.undeclared import removed_tables
from delta_engine.report.plan_text import tree_lines
from delta_engine.state.audits import Audit
from delta_engine.state.states import CatalogState
from tests.builders.deployment import NOON, deployment_over, deployment_state
from tests.builders.engines import engine_on
from tests.builders.models import orders
from tests.fakes.platform import FakePlatform, engine_over, recorded, statuses, sync
from tests.projects.commandline import CommandLine

A, B = orders(name="a"), orders(name="b")
GONE = QualifiedName("dev", "silver", "b")
DROP = Policy(removed_tables=Removed.DROP, allow=(Allowance(DestructiveKind.DROP_TABLE),))
NO_CONSENT = replace(DROP, allow=())


@pytest.fixture
def deployment(platform: FakePlatform, tmp_path: Path) -> Deployment:
    """Return the state of a catalog into which both tables were synced."""
    made = deployment_over(tmp_path)
    sync(platform, made, A, B)
    platform.statements.clear()
    return made


def test_a_table_is_kept_and_told(platform: FakePlatform, deployment: Deployment) -> None:
    preview = plan_unlocked(engine_over(platform, deployment), [A])
    assert not preview.plan
    assert preview.plan.kept_tables == (GONE,)
    sync(platform, deployment, A)
    assert platform.statements == []
    assert statuses(deployment) == {"a": "healthy", "b": "healthy"}


@pytest.mark.parametrize(
    ("capabilities", "can_be_undropped"), [(DATABRICKS, True), (OPEN_SOURCE_CATALOG, False)]
)
def test_undrop_is_named_where_the_platform_has_it(
    platform: FakePlatform, deployment: Deployment, capabilities: Capabilities, can_be_undropped: bool
) -> None:
    engine = engine_on(
        platform, platform, deployment, NO_CONSENT, row_counter=platform, capabilities=capabilities
    )
    planned = plan_unlocked(engine, [A])
    assert any("UNDROP" in line for line in tree_lines(planned.plan, {})) is can_be_undropped
    assert ["UNDROP" in str(refusal) for refusal in planned.refusals] == [can_be_undropped]


def test_a_table_is_dropped_with_consent(platform: FakePlatform, deployment: Deployment) -> None:
    engine = engine_over(platform, deployment, DROP)
    drop = DropTable(GONE, 12_345, can_be_undropped=True)
    assert plan_unlocked(engine, [A]).plan.drop_tables == (drop,)
    outcomes = engine.sync_tables([A])
    assert [str(outcome.name) for outcome in outcomes] == ["dev.silver.b"]
    assert platform.statements == ["DROP TABLE `dev`.`silver`.`b`"]
    state = recorded(deployment)
    assert statuses(deployment) == {"a": "healthy"}
    assert state.metadata.last_apply_actions.destroyed == 1
    assert engine.sync_tables([A]) == ()


def test_without_consent_it_is_refused(platform: FakePlatform, deployment: Deployment) -> None:
    with pytest.raises(UnsafePlanError, match="would be dropped with its 12,345 rows"):
        engine_over(platform, deployment, NO_CONSENT).sync_tables([A])
    assert platform.statements == []


def test_a_selection_says_nothing_of_other_tables(platform: FakePlatform, deployment: Deployment) -> None:
    preview = plan_unlocked(engine_over(platform, deployment, DROP), [A], is_partial=True)
    assert (preview.plan.drop_tables, preview.plan.kept_tables) == ((), ())
    with open_run(engine_over(platform, deployment, DROP), "sync") as run:
        assert not plan_sync(run, [A], is_partial=True).plan


@pytest.mark.parametrize(
    ("audit", "is_ours"),
    [
        (Audit(created_at=NOON), True),
        (Audit(created_at=NOON + timedelta(days=1)), False),
        (Audit(), True),
        (Audit(table_id="id"), True),
        (Audit(table_id="another"), False),
        (Audit(created_at=NOON, table_id="another"), False),
    ],
)
def test_another_table_of_the_same_name_is_kept(audit: Audit, is_ours: bool) -> None:
    state = deployment_state(A, B)
    record = state.resources["table.dev.silver.b"]
    noted = {"table.dev.silver.b": replace(record, created_at=NOON, delta_table_id="id")}
    observed = CatalogState(tables={}, other_tables=(GONE,), audits={GONE.key: audit})
    removed = removed_tables(state.with_resources(noted), [B], observed)
    assert list(removed) == ([GONE] if is_ours else [])


def test_a_part_of_a_table_is_not_the_engine_s_to_drop(platform: FakePlatform, tmp_path: Path) -> None:
    deployment = deployment_over(tmp_path)
    partly = replace(B, manages=frozenset({Part.COMMENTS}))
    sync(platform, deployment, A, B)
    sync(platform, deployment, A, partly)
    assert plan_unlocked(engine_over(platform, deployment, DROP), [A]).plan.drop_tables == ()


def test_a_drop_that_fails_is_tried_again(platform: FakePlatform, deployment: Deployment) -> None:
    platform.failing = "b"
    engine = engine_over(platform, deployment, DROP)
    with pytest.raises(ApplyFailedError):
        engine.sync_tables([A])
    assert statuses(deployment) == {"a": "healthy", "b": "failed"}
    platform.failing = None
    engine.sync_tables([A])
    assert statuses(deployment) == {"a": "healthy"}


def test_a_table_that_is_gone_already_is_forgotten(platform: FakePlatform, deployment: Deployment) -> None:
    del platform.states["dev.silver.b"]
    engine_over(platform, deployment, DROP).sync_tables([A])
    assert statuses(deployment) == {"a": "healthy"}
    assert platform.statements == []


def test_folders_are_removed_by_hand(project: Path, delta_engine: CommandLine) -> None:
    path = project / "conf" / "local.yml"
    path.write_text(
        path.read_text().replace("{create_schemas: true}", "{create_schemas: true, removed_tables: drop}")
    )
    result = delta_engine("-e", "local", "validate")
    assert result.code == 3
    assert "policy.removed_tables: drop is not for this backend: its tables are folders" in result.stderr
