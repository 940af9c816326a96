"""The probes: questions for whose answers rows of `docs/assumptions.md` wait. An answer never fails a run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Barrier
from typing import Final

from delta_engine.actions import CreateTable, TablePlan
from delta_engine.backends.capabilities import Feature
from delta_engine.backends.error_conditions import is_forbidden
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.deployment.stores.delta_row import DeltaRow
from delta_engine.drift.attribution import is_understood
from delta_engine.errors import CatalogReadError, DeltaEngineError, StatementError
from delta_engine.models import AbacPolicy, Function, QualifiedName, Table
from delta_engine.sql.columns import sql_drop_columns
from delta_engine.sql.functions import (
    function_securable,
    sql_create_function,
    sql_set_function_tag,
    sql_unset_function_tag,
)
from delta_engine.sql.governance import (
    sql_grant,
    sql_row_filter,
    sql_set_owner,
    sql_set_row_filter,
    sql_set_tags,
    sql_show_grants,
)
from delta_engine.sql.policies import sql_create_policy, sql_describe_policy
from delta_engine.sql.tag_conditions import is_same_condition
from delta_engine.sql.text import quote_ident
from delta_engine.state.function_states import FunctionState
from delta_engine.state.policy_states import PolicyState
from delta_engine.state.table_queries import Commit
from delta_engine.state.unity_catalog.described_details import DescribedDetailsReader
from delta_engine.state.unity_catalog.details import TableDetails
from delta_engine.state.unity_catalog.information_schema import TABLE_PRIVILEGES, SystemView, by_table
from delta_engine.state.unity_catalog.policy_descriptions import described_policy
from delta_engine.tools.conformance.probe import Answer, Probe, attempted, described, of_scratch
from delta_engine.tools.conformance.report import ErrorForm, Holds
from delta_engine.tools.conformance.rounds import Rounds
from delta_engine.tools.conformance.scratch_tables import TAGGED_COLUMN, scratch_table
from delta_engine.tools.conformance.view_probes import VIEW_PROBES

_UNITY_CATALOG: Final = (Feature.SCHEMA_METADATA,)

_PRIVILEGES: Final = SystemView(
    name=TABLE_PRIVILEGES.name,
    columns=(*TABLE_PRIVILEGES.columns, "inherited_from"),
    schema_column=TABLE_PRIVILEGES.schema_column,
)
"""The privileges on tables, those that were granted on the schema or catalog included."""


def _forbidden(rounds: Rounds) -> Answer:
    """Create and update what no principal may change: the views of the catalog itself."""
    place = rounds.objects.place
    model = replace(scratch_table(place, "forbidden"), schema_name="information_schema")
    view = f"{quote_ident(place.catalog)}.information_schema.tables"
    refusals = {
        "CREATE TABLE": _attempted_create(rounds, model),
        "UPDATE": attempted(rounds, f"UPDATE {view} SET comment = '' WHERE 1 = 0"),
    }
    has_conditions = all(refusal is not None and refusal.condition for refusal in refusals.values())
    holds = Holds.YES if has_conditions else Holds.NO
    return holds, [f"{kind} in information_schema: {described(error)}" for kind, error in refusals.items()]


def _missing_catalog(rounds: Rounds) -> Answer:
    place = rounds.objects.place
    model = replace(scratch_table(place, "forbidden"), catalog_name=place.missing_catalog)
    holds = Holds.NO
    try:
        rounds.backend.reader.snapshot([model])
        finding = "the reader reads it as a catalog without schemas"
    except CatalogReadError as refusal:
        holds, finding = Holds.YES, str(refusal)
    except DeltaEngineError as error:
        finding = f"the reader does not recognize the refusal: {error}"
    return holds, [finding, f"CREATE TABLE: {described(_attempted_create(rounds, model))}"]


def _attempted_create(rounds: Rounds, model: Table) -> ErrorForm | None:
    plan = TablePlan((CreateTable(model),))
    (create,) = rounds.environment.compiled(plan).sql()
    refusal = attempted(rounds, create)
    if refusal is None:
        rounds.objects.created.add(model.qualified_name)
    return refusal


def _tagged_column(rounds: Rounds) -> Answer:
    tables = rounds.reader.existing([rounds.objects.place.qualified("tagged")])
    if not tables:
        return Holds.CANNOT_TELL, ["no table has a tagged column"]
    address = rounds.backend.addressing.table(tables[0])
    refusal = attempted(rounds, sql_drop_columns(address, [(TAGGED_COLUMN,)]))
    is_blocked = refusal is not None and _is_about_tags(refusal)
    holds = Holds.YES if is_blocked else Holds.NO if refusal is None else Holds.CANNOT_TELL
    return holds, [f"DROP COLUMN of a tagged column: {described(refusal)}"]


def _is_about_tags(refusal: ErrorForm) -> bool:
    words = re.split(r"[._]", refusal.condition or "")
    return not {"TAG", "TAGS", "TAGGED"}.isdisjoint(words)


def _two_merges(rounds: Rounds) -> Answer:
    """Let two threads write the first row of a table at once, as two first runs of an environment would."""
    name = rounds.objects.place.qualified("merge")
    rounds.objects.created.add(name)
    row = DeltaRow(
        rounds.backend.runner,
        rounds.backend.addressing.table(name),
        "conformance",
        {"serial": int},
        "A scratch table of a conformance run",
        one_of_several="Drop the scratch table:",
        pause=rounds.control.pause,
    )
    together = Barrier(2)

    def write(serial: int) -> DeltaEngineError | None:
        together.wait()
        try:
            row.replace({"serial": serial}, None)
        except DeltaEngineError as error:
            return error
        return None

    with ThreadPoolExecutor(2) as pool:
        errors = list(pool.map(write, (1, 2)))
    outcomes = ["written" if error is None else f"{type(error).__name__}: {error}" for error in errors]
    findings = [f"writer {number}: {outcome}" for number, outcome in enumerate(outcomes, start=1)]
    if all(map(_is_missing_right, errors)):
        return Holds.CANNOT_TELL, findings
    try:
        left = row.read()
    except DeltaEngineError as error:
        return Holds.NO, [*findings, f"read afterwards: {error}"]
    rows = "no row" if left is None else f"one row, serial {left['serial']}"
    is_single = errors.count(None) == 1 and left is not None
    return Holds.YES if is_single else Holds.NO, [*findings, f"read afterwards: {rows}"]


def _is_missing_right(error: DeltaEngineError | None) -> bool:
    cause = error.__cause__ if error is not None else None
    return isinstance(cause, StatementError) and is_forbidden(cause)


def _history(rounds: Rounds) -> Answer:
    changed = rounds.changed_tables()
    histories = rounds.backend.history.read_commits(changed)
    versions = rounds.backend.versions.read_versions(changed[:1], with_id={name.key for name in changed[:1]})
    findings = [
        f"{name.table}: {', '.join(map(_operation, reversed(histories[name.key])))}"
        if name.key in histories
        else f"{name.table}: its history cannot be read"
        for name in changed
    ]
    commits = [commit for commits in histories.values() for commit in commits]
    unknown = sorted({commit.operation for commit in commits if not is_understood(commit)})
    findings += [f"not understood: {operation}" for operation in unknown]
    for key, version in versions.items():
        latest = next((commit.version for commit in histories.get(key, ())), None)
        findings.append(f"{key}: the version is {version.version}, the latest commit {latest}")
    is_whole = bool(histories) and len(histories) == len(changed)
    holds = Holds.NO if unknown else Holds.YES if is_whole else Holds.CANNOT_TELL
    return holds, findings


def _operation(commit: Commit) -> str:
    parameters = (key for key, value in commit.parameters.items() if value not in ("", "{}", "[]", "null"))
    return f"{commit.operation} ({', '.join(sorted(parameters))})"


def _descriptions(rounds: Rounds) -> Answer:
    """Describe tables as on runtimes that know DESCRIBE … AS JSON, and as on older ones."""
    runner, qualified = rounds.backend.runner, rounds.objects.place.qualified
    findings, is_same = [], True
    tables = rounds.reader.existing(map(qualified, ("columns", "generated", "identity")))
    for name in tables:
        newer = DescribedDetailsReader(runner).answer(name)
        older = DescribedDetailsReader(_WithoutJson(runner)).answer(name)
        lines = list(_differing(newer, older))
        is_same &= not lines
        findings += [f"{name.table}: {line}" for line in lines or ["both agree"]]
    for child in rounds.reader.existing([qualified("child")]):
        described = DescribedDetailsReader(runner).answer(child)
        has_keys = isinstance(described, TableDetails) and described.has_keys
        findings.append(f"keys in DESCRIBE … AS JSON: {'described' if has_keys else 'not described'}")
    holds = Holds.CANNOT_TELL if not tables else Holds.YES if is_same else Holds.NO
    return holds, findings


def _differing(newer: object, older: object) -> Iterator[str]:
    if not isinstance(newer, TableDetails) or not isinstance(older, TableDetails):
        yield f"as JSON: {newer}; without: {older}"
        return
    for field in ("columns", "table_comment", "partitioned_by"):
        as_json, without = getattr(newer.state, field), getattr(older.state, field)
        if as_json != without:
            yield f"{field} as JSON: {as_json}; without: {without}"


@dataclass(frozen=True, slots=True)
class _WithoutJson:
    runner: SqlRunner

    def run(self, sql: str) -> Sequence[Row]:
        if sql.endswith(" AS JSON"):
            raise StatementError("left out by the probe", sql=sql, error_class="PARSE_SYNTAX_ERROR")
        return self.runner.run(sql)


def _inherited(rounds: Rounds) -> Answer:
    user = rounds.objects.place.user
    tables = rounds.reader.existing([rounds.objects.place.qualified("grants")])
    if not tables:
        return Holds.CANNOT_TELL, ["no table has grants to read"]
    rows = _privileges(rounds, tables[0])
    findings = [
        f"{row['privilege_type']} to {_grantee(row, user)}: inherited_from {row['inherited_from']!r}"
        for row in rows
    ]
    granted = [row for row in rows if _grantee(row, user) == user and row["privilege_type"] == "MODIFY"]
    is_direct = bool(granted) and all(row["inherited_from"] in (None, "NONE") for row in granted)
    return Holds.YES if is_direct else Holds.NO, findings or ["no privilege is shown"]


def _privileges(rounds: Rounds, table: QualifiedName) -> Sequence[Row]:
    catalog, schema, name = table.parts
    return by_table(rounds.backend.runner.run(_PRIVILEGES.query(catalog, {schema}))).get((schema, name), ())


def _grantee(row: Mapping[str, object], user: str) -> str:
    """Return the grantee of a privilege; the names of other principals stay out of the report."""
    return user if str(row["grantee"]).lower() == user.lower() else "<another principal>"


def _effective_policies(rounds: Rounds) -> Answer:
    """Ask for the policies of a scratch table: the answer's titles show only where a policy reaches the schema."""
    reader = rounds.backend.policies
    tables = rounds.reader.existing([rounds.objects.place.qualified("columns")])
    if reader is None or not tables:
        return Holds.CANNOT_TELL, ["there is no table to ask for"]
    try:
        policies = reader.read(rounds.backend.addressing.table(tables[0]))
    except StatementError as error:
        return Holds.NO, [error.first_line]
    holds = Holds.YES if policies else Holds.CANNOT_TELL
    return holds, [f"policies that reach a scratch table: {len(policies)}"]


@of_scratch(Function, "masked")
def _replaced_function(rounds: Rounds, function: Function, _state: FunctionState) -> Answer:
    """Grant EXECUTE, replace the function by itself, and read its grants."""
    user, run = rounds.objects.place.user, rounds.backend.runner.run
    securable = function_securable(function.qualified_name)
    run(sql_grant(securable, ["EXECUTE"], user))
    run(sql_create_function(function, replaces=True))
    left = [row for row in run(sql_show_grants(securable)) if "EXECUTE" in map(str, row.values())]
    return Holds.YES if left else Holds.NO, [f"grants of EXECUTE after CREATE OR REPLACE: {len(left)}"]


@of_scratch(Function, "masked")
def _owned_function(rounds: Rounds, function: Function, _state: FunctionState) -> Answer:
    sql = sql_set_owner(function_securable(function.qualified_name), rounds.objects.place.user)
    refusal = attempted(rounds, sql)
    return Holds.NO if refusal else Holds.YES, [f"ALTER FUNCTION … OWNER TO: {described(refusal)}"]


@of_scratch(Function, "masked")
def _tagged_function(rounds: Rounds, function: Function, _state: FunctionState) -> Answer:
    tag = rounds.objects.place.tag
    set_tag = attempted(rounds, sql_set_function_tag(function.qualified_name, tag, "it's"))
    findings = [f"SET TAG ON FUNCTION: {described(set_tag)}"]
    if set_tag is None:
        unset = attempted(rounds, sql_unset_function_tag(function.qualified_name, tag))
        findings.append(f"UNSET TAG ON FUNCTION: {described(unset)}")
    return Holds.NO if set_tag else Holds.YES, findings


@of_scratch(AbacPolicy)
def _described_policy(rounds: Rounds, policy: AbacPolicy, _state: PolicyState) -> Answer:
    """Compare the description of a policy with its model, and name the titles that the platform shows."""
    rows = rounds.backend.runner.run(sql_describe_policy(policy.qualified_name))
    titles = sorted(str(next(iter(row.values()), "")).strip() for row in rows)
    findings = [f"titles: {', '.join(titles)}"]
    try:
        described = described_policy(rows)
    except CatalogReadError as refusal:
        return Holds.NO, [*findings, str(refusal)]
    is_same = isinstance(described, PolicyState) and all(
        is_same_condition(condition, described.match.get(alias)) for alias, condition in policy.match.items()
    )
    return Holds.YES if is_same and described else Holds.NO, findings


@of_scratch(AbacPolicy)
def _filter_and_policy(rounds: Rounds, _policy: AbacPolicy, _state: PolicyState) -> Answer:
    """Let a row filter and a policy of the same function and argument meet on a table, and query it."""
    tables = rounds.reader.existing([rounds.objects.place.qualified("policed")])
    if not tables:
        return Holds.CANNOT_TELL, ["there is no scratch table with a policy"]
    table = rounds.backend.addressing.table(tables[0])
    region = rounds.objects.place.qualified("region")
    for sql in (
        sql_set_tags(f"TABLE {table}", {rounds.objects.place.tag: "1"}, "region"),
        sql_set_row_filter(table, sql_row_filter(region, ["region"])),
    ):
        rounds.backend.runner.run(sql)
    refusal = attempted(rounds, f"SELECT count(*) AS rows FROM {table}")
    return Holds.NO if refusal else Holds.YES, [f"a query of the table: {described(refusal)}"]


@of_scratch(AbacPolicy)
def _unknown_principal(rounds: Rounds, policy: AbacPolicy, _state: PolicyState) -> Answer:
    stranger = replace(policy, to=(f"{rounds.objects.place.missing_catalog}_group",))
    refusal = attempted(rounds, sql_create_policy(stranger, replaces=True))
    return Holds.YES if refusal else Holds.NO, [f"TO an unknown group: {described(refusal)}"]


PROBES: Final = (
    Probe(
        name="forbidden statements",
        question="How does the platform refuse a CREATE and an UPDATE that no principal may run?",
        assumption="A refusal carries an error condition.",
        ask=_forbidden,
        needs=_UNITY_CATALOG,
    ),
    Probe(
        name="missing catalog",
        question="How does the platform refuse a query and a CREATE in a catalog that does not exist?",
        assumption="The reader knows the condition and refuses the catalog by name.",
        ask=_missing_catalog,
        needs=_UNITY_CATALOG,
    ),
    Probe(
        name="tagged column",
        question="What does DROP COLUMN do while the column has a tag?",
        assumption="A tag can block the drop of its column, so the engine unsets it first.",
        ask=_tagged_column,
        needs=(Feature.TAGS,),
    ),
    Probe(
        name="two merges at once",
        question="Which of two concurrent MERGEs writes the first row of the deployment state?",
        assumption="Exactly one of them does.",
        ask=_two_merges,
    ),
    Probe(
        name="history",
        question="What does DESCRIBE HISTORY show after each kind of statement?",
        assumption="Drift reports understand every operation that a change of a table leaves in its history.",
        ask=_history,
    ),
    Probe(
        name="two descriptions of a table",
        question="Does DESCRIBE … AS JSON report the same as SHOW CREATE TABLE and SHOW TBLPROPERTIES?",
        assumption="Yes, so that the engine reads older runtimes like newer ones.",
        ask=_descriptions,
        needs=_UNITY_CATALOG,
    ),
    Probe(
        name="direct grants",
        question="What does inherited_from report of a privilege that was granted on the table itself?",
        assumption="It reports NONE, or nothing.",
        ask=_inherited,
        needs=(Feature.GRANTS,),
    ),
    Probe(
        name="effective policies",
        question="Does SHOW EFFECTIVE POLICIES answer under the documented titles?",
        assumption="Yes, for a principal that owns the table.",
        ask=_effective_policies,
        needs=(*_UNITY_CATALOG, Feature.ROW_FILTERS),
    ),
    Probe(
        name="replaced function",
        question="Which grants does a function have after CREATE OR REPLACE?",
        assumption="It keeps them. The engine restores them in the same step either way.",
        ask=_replaced_function,
        needs=(Feature.FUNCTIONS, Feature.GRANTS),
    ),
    Probe(
        name="owner of a function",
        question="Does ALTER FUNCTION … OWNER TO work?",
        assumption="Yes, if the owner gives the function to itself.",
        ask=_owned_function,
        needs=(Feature.FUNCTIONS, Feature.OWNERS),
    ),
    Probe(
        name="tags of functions",
        question="Can the value of a function tag contain a quote?",
        assumption="Yes. SET TAG ON FUNCTION and UNSET TAG ON FUNCTION accept keys and values as quoted identifiers.",
        ask=_tagged_function,
        needs=(Feature.FUNCTIONS, Feature.FUNCTION_TAGS),
    ),
    Probe(
        name="described policy",
        question="Which titles does DESCRIBE POLICY show, and which values?",
        assumption="The titles that the engine reads, with the conditions as submitted or as hasTag.",
        ask=_described_policy,
        needs=(Feature.POLICIES,),
    ),
    Probe(
        name="filter and policy",
        question="Can a table be queried that has a row filter and a policy of the same function and argument?",
        assumption="Yes, so that a filter or mask can move to a policy in one plan.",
        ask=_filter_and_policy,
        needs=(Feature.POLICIES, Feature.ROW_FILTERS),
    ),
    Probe(
        name="unknown principal",
        question="Does CREATE POLICY refuse a group that does not exist?",
        assumption="It does.",
        ask=_unknown_principal,
        needs=(Feature.POLICIES,),
    ),
    *VIEW_PROBES,
)
