"""Refuses to compute stored values from stored values where a policy (ABAC) may hide some of them from the engine.

A fill, a conversion, a rewrite, SET MANAGED or RESTORE would store masked or filtered values for good. The plan asks
before anything runs, only for tables with such a change: three statements each. A table's own filter and masks are
obstacles of the change itself (`aspects.protection`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final

from delta_engine.actions import AlignTable, TablePlan
from delta_engine.actions.policy import DestructiveKind, NeededConsent, Policy
from delta_engine.aspects.backfill_actions import FillColumn
from delta_engine.aspects.columns import ColumnAdd
from delta_engine.aspects.governed_tables import Governed, GovernedPlan
from delta_engine.aspects.partitioning import VerifyRewrite
from delta_engine.aspects.restores import RestoreTable
from delta_engine.aspects.storage import SetManaged
from delta_engine.aspects.tags import SetColumnTags
from delta_engine.backends.addressing import Addressing
from delta_engine.backends.sql_runner import SqlRunner, query_each
from delta_engine.errors import StatementError, UnsafePlanError
from delta_engine.models import AbacPolicy, Column, PolicyFilter, Table
from delta_engine.models.parts import NOTHING
from delta_engine.models.types import is_same_type
from delta_engine.sql.expressions import referenced_columns
from delta_engine.sql.queries import sql_describe_history, sql_read_version
from delta_engine.state.effective_policies import ROW_FILTER, EffectivePolicy, EffectivePolicyReader
from delta_engine.state.principals import Principal, PrincipalReader
from delta_engine.state.states import CatalogState, TableState
from delta_engine.validation.rules import Problem, consent, plan_refusal

_COMPUTES: Final = "the plan computes stored values"
_TAG_DELAY: Final = "policies see new tags only after some minutes"
"""Databricks documentation, "ABAC requirements, quotas, and limitations"."""


@dataclass(frozen=True, slots=True)
class ProtectedData:
    """Asks which policies reach a table whose values a plan computes, and whether its history can be read."""

    policies: EffectivePolicyReader
    runner: SqlRunner
    addressing: Addressing
    _: KW_ONLY
    principals: PrincipalReader | None = None
    parallelism: int = 4

    def refusals(
        self, governed: GovernedPlan, models: Sequence[Table], policy: Policy
    ) -> tuple[UnsafePlanError, ...]:
        """Return why values must not be computed, table by table; no statement for tables without such a change.

        A `ConsentRefusal` is returned even if the policy allows the change: only these tables need the consent.
        Policies that the engine manages are known: those that except its principal need no consent, and those that the
        plan creates count.

        Args:
            models: what the tables become.
            policy: what the run may do; `protected_data` says that the policies except the engine's principal.
        """
        by_key = {model.key: model for model in models}
        computed = [align for align in governed.plan.align_tables if _is_about_values(align)]
        if not computed:
            return ()
        managed = self._managed(governed)
        problems = query_each(
            lambda align: tuple(
                self._problems(
                    align, by_key.get(align.table.key), governed.observed.table(align.table), policy, managed
                )
            ),
            computed,
            self.parallelism,
        )
        return tuple(
            plan_refusal(align, *problem)
            for align, problems_of_align in problems
            for problem in problems_of_align
        )

    def _managed(self, governed: GovernedPlan) -> _ManagedPolicies:
        """Return the policies that the engine knows, as the plan leaves them."""
        before, after = governed.before, governed.after
        if not after.policies or self.principals is None:
            return _ManagedPolicies(before, after)
        try:
            names = {name for policy in after.policies.values() for name in policy.excepted}
            return _ManagedPolicies(before, after, self.principals.principal(names))
        except StatementError:  # then none is known to except it
            return _ManagedPolicies(before, after)

    def _problems(
        self,
        align: AlignTable,
        model: Table | None,
        observed: TableState,
        policy: Policy,
        managed: _ManagedPolicies,
    ) -> Iterator[Problem]:
        table = self.addressing.table(observed.former_name or align.table)
        may_compute = policy.allows(DestructiveKind.PROTECTED_DATA, align.table)
        try:
            policies = managed.reaching(align.table.key, self.policies.read(table))
        except StatementError as error:
            yield _unknown_policies(align, error)
            if not may_compute:
                return
            mask = "a policy that cannot be read"
        else:
            if hiding := [reaching for reaching in policies if not managed.excepts_engine(reaching)]:
                yield _hiding_policies(align, hiding)
                if not may_compute:
                    return
            mask = next((str(reaching) for reaching in policies if reaching.policy_type != ROW_FILTER), "")
        if mask:
            yield from _exposed_columns(align, model, observed, mask)
        if not align.of_type(SetManaged):  # no version is compared
            yield from self._unreadable_history(table)

    def _unreadable_history(self, table: str) -> Iterator[Problem]:
        """Yield why no version of a table could be compared with another one."""
        reason = ""
        try:
            commits = self.runner.run(sql_describe_history(table, 1))
            version = str(commits[0].get("version", "")) if commits else ""
            if version.isdecimal():
                self.runner.run(sql_read_version(table, int(version)))
            else:
                reason = "DESCRIBE HISTORY names no version"
        except StatementError as error:
            reason = error.first_line
        if reason:
            yield Problem(
                f"{_COMPUTES} and verifies them by the table's versions, which cannot be read: {reason}",
                "Run the engine on compute and as a principal that may read the table's history and travel in time.",
            )


@dataclass(frozen=True, slots=True)
class _ManagedPolicies:
    """The policies whose definitions the engine knows, and its principal; None if that is unknown."""

    before: Governed
    after: Governed
    principal: Principal | None = None

    def reaching(self, table: str, effective: Sequence[EffectivePolicy]) -> tuple[EffectivePolicy, ...]:
        """Return the policies that reach a table now, and those that reach it while the plan computes its values.

        Then the table has the columns of both sides, because drops come last, and policies see its former or new tags.
        """
        columns = {
            column.key: column for side in (self.before, self.after) for column in side.tables[table].columns
        }
        moment = self.after.with_columns(table, columns.values())
        reached = (*moment.reaches(table), *moment.reaches(table, self.before))
        created = [_effective(reach.policy) for reach in reached if reach.policy is not None]
        return tuple({_identity(policy): policy for policy in (*created, *effective)}.values())

    def excepts_engine(self, policy: EffectivePolicy) -> bool:
        """Whether the engine knows a policy, and that it excepts the engine's principal."""
        managed = {_identity(_effective(policy)): policy for policy in self.after.policies.values()}
        excepted = managed[_identity(policy)].excepted if _identity(policy) in managed else ()
        return self.principal is not None and self.principal.is_one_of(excepted)


def _effective(policy: AbacPolicy) -> EffectivePolicy:
    policy_type = ROW_FILTER if isinstance(policy.protection, PolicyFilter) else "COLUMN_MASK"
    return EffectivePolicy(name=policy.name, policy_type=policy_type, securable=str(policy.scope))


def _identity(policy: EffectivePolicy) -> tuple[str, str]:
    return policy.name.lower(), policy.securable.lower()


def tag_warnings(plan: TablePlan, models: Sequence[Table], observed: CatalogState) -> Iterator[str]:
    """Yield what the tags of columns that get values mean for policies (ABAC)."""
    by_key = {model.key: model for model in models}
    for align in plan.align_tables:
        fills, model = align.of_type(FillColumn), by_key.get(align.table.key)
        if not fills or model is None:
            continue
        desired = {column.key: column for column in model.columns}
        present = {column.key: column for column in observed.table(align.table).columns}
        for fill in fills:
            tags = desired[fill.name.lower()].tags
            for name in sorted(referenced_columns(fill.using) - {fill.name.lower()}):
                if lacking := sorted(_tags_of(name, desired, present) - tags.keys()):
                    yield (
                        f"{align.table}.{fill.name}: its using reads {name}, which has tags that it lacks "
                        f"({', '.join(lacking)}): policies on them do not cover it"
                    )
        filled = {fill.target.lower() for fill in fills}
        for change in align.of_type(SetColumnTags):
            if change.column.lower() in filled:
                keys = ", ".join(tag.key for tag in change.entries)
                yield f"{align.table}.{change.column} gets tags ({keys}) and values in one run: {_TAG_DELAY}"


def _tags_of(name: str, *sides: Mapping[str, Column]) -> set[str]:
    return {key for side in sides if name in side for key in side[name].tags}


def _computes_values(align: AlignTable) -> bool:
    return align.writes_rows or bool(align.of_type(RestoreTable))


def _is_about_values(align: AlignTable) -> bool:
    """Whether a change computes stored values, or verifies those of a rewrite that a killed run began."""
    return _computes_values(align) or bool(align.of_type(VerifyRewrite))


def _aim(align: AlignTable) -> str:
    return _COMPUTES if _computes_values(align) else "the plan verifies stored values"


def _unknown_policies(align: AlignTable, error: StatementError) -> Problem:
    return Problem(
        f"{_aim(align)}, and the policies (ABAC) that may hide some of them from the engine cannot be read: "
        f"{error.first_line}",
        f"Grant READ METADATA on the table to the engine's principal, and use a SQL warehouse, serverless compute or "
        f"Databricks Runtime 16.4 or later. Or, if no policy applies to that principal: {_consent(align)}",
        needed=_needed(align),
    )


def _hiding_policies(align: AlignTable, policies: Sequence[EffectivePolicy]) -> Problem:
    named = ", ".join(map(str, policies))
    return Problem(
        f"{_aim(align)}, and these policies (ABAC) may hide some of them from the engine: {named}",
        f"Add EXCEPT with the engine's principal to each of them, then allow it: {_consent(align)}",
        needed=_needed(align),
    )


def _consent(align: AlignTable) -> str:
    return consent(DestructiveKind.PROTECTED_DATA, align.table)


def _needed(align: AlignTable) -> tuple[NeededConsent, ...]:
    return (NeededConsent(kind=DestructiveKind.PROTECTED_DATA, securable=align.table),)


def _exposed_columns(
    align: AlignTable, model: Table | None, observed: TableState, mask: str
) -> Iterator[Problem]:
    """Yield the columns that would show values which a policy masks.

    A policy that matches no tags of a column and of those that it reads treats them alike.

    Args:
        mask: the policy.
    """
    present = {column.key: column for column in observed.columns}
    desired = {column.key: column for column in model.columns} if model is not None else {}
    added = {add.desired.key for add in align.of_type(ColumnAdd)}
    for fill in align.of_type(FillColumn):
        key = fill.name.lower()
        sources = [present[name] for name in sorted(referenced_columns(fill.using) & present.keys())]
        if fill.is_converted or key in added:
            if desired[key].tags or any(source.tags for source in sources):
                yield Problem(_too_early(mask), _BY_HAND if fill.is_converted else _LATER, fill.name)
            continue
        tags = present[key].tags if key in present else NOTHING
        for source in sources:
            if not source.tags.items() <= tags.items():
                yield Problem(
                    f"its using reads {source.name}, whose tags it lacks, so {mask} may leave the values unmasked",
                    f"Set the tags of {source.name} on it with an earlier sync, or read another column.",
                    fill.name,
                )
    if align.of_type(RestoreTable):
        for column in desired.values():
            if column.tags and not _is_kept(column, present.get(column.key)):
                yield Problem(_too_early(mask), _WITHOUT_UNDO, column.name)


def _too_early(mask: str) -> str:
    return f"it would show values before {mask} can mask them: {_TAG_DELAY}"


_LATER: Final = (
    "Sync the column with its tags and without using first. Fill it some minutes later: by UPDATE, or with using and "
    "nullable: false."
)
_BY_HAND: Final = (
    "Add a column of another name with the tags, without using. Fill it some minutes later by UPDATE, and drop this "
    "column when nothing reads it any more."
)
_WITHOUT_UNDO: Final = (
    "Exclude the table from the undo. Declare the column with its tags, and fill it some minutes later from an earlier "
    "version of the table."
)


def _is_kept(column: Column, present: Column | None) -> bool:
    return present is not None and is_same_type(present.data_type, column.data_type)
