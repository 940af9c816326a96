"""Compiles a plan into statements and orders them across securables. Pure.

Round.CHANGES, in which schemas come first, then new functions, and the tables pass through the stages:

- Stage.DROP_FOREIGN_KEYS: those that block the primary keys that they reference.
- Stage.FREE_KEY_NAMES: primary keys are dropped if another table takes their names.
- Stage.PROTECT: what strengthens protection, after new policies. Functions, policies, filters and masks are replaced
  after it, and before anything weakens protection.
- Stage.CHANGE: tables are created and changed, a parent before the tables that are created with foreign keys to it.
  Views change between the columns of what they read (`aspects.view_needs`), so that they resolve at any time: in
  Stage.PROTECT already if such columns change there.
- Stage.ADD_FOREIGN_KEYS: to existing tables, and between tables that reference each other.
- Stage.CHANGE_RIGHTS: tables that get new references change their grants and owners.

Round.DROPS: views, tables, then policies and functions are dropped when all earlier steps are over.
Round.SCHEMA_RIGHTS: schemas change grants and owners that the engine may depend on, if everything else succeeded.

A step waits only for the steps that it depends on (docs/decisions/0019).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, Final

from delta_engine import aspects
from delta_engine.actions import (
    Action,
    Align,
    AlignTable,
    CarriedAction,
    Create,
    CreateTable,
    Drop,
    DropTable,
    Setting,
    TablePlan,
    Turn,
)
from delta_engine.aspects.aspect import RenderContext
from delta_engine.aspects.comparison import bare_column
from delta_engine.aspects.foreign_keys import ForeignKeyAdd
from delta_engine.aspects.function_definition import ReplaceFunction
from delta_engine.aspects.grants import GrantPrivileges, RevokePrivileges
from delta_engine.aspects.owner import ChangeOwner
from delta_engine.aspects.protection_changes import (
    Direction,
    directed_actions,
    direction,
    directions_within,
    is_out_of_order,
    levels,
    node_of,
    place_of,
    reach,
    reads,
    waits_of_swaps,
)
from delta_engine.aspects.table_names import RenameTable
from delta_engine.aspects.tags import SetTableTags, UnsetTableTags
from delta_engine.aspects.view_definition import AlterViewQuery, RenameView, SetSchemaMode
from delta_engine.aspects.view_needs import (
    TURNS,
    linked,
    node,
    turn_of,
    view_changes,
    view_needs,
    view_node,
)
from delta_engine.backends.addressing import Addressing
from delta_engine.backends.capabilities import Capabilities
from delta_engine.compile.compiled_plan import CompiledPlan, Operation, Round, Statement, Step
from delta_engine.compile.keys import (
    KeyName,
    TableChange,
    added_foreign_keys,
    dropped_foreign_keys,
    freed_names,
    referenced_tables,
    taken_names,
)
from delta_engine.compile.ordering import Stage, Staging, divided, in_order
from delta_engine.models import (
    AbacPolicy,
    Function,
    FunctionName,
    PolicyName,
    QualifiedName,
    SecurableName,
)
from delta_engine.sql.function_bodies import called_functions
from delta_engine.sql.tables import sql_register_table

_EARLY: Final = (Stage.PROTECT, 2, 0)
"""The place of what changes tables in Stage.PROTECT."""


def _is_late(action: Action, ways: Collection[Direction]) -> bool:
    """Whether a change of a schema waits for its tables: it may revoke the engine's rights, or weaken protection.

    Tables inherit its rights and tags. A policy may depend on a tag that is unset or gets another value.

    Args:
        ways: what the plan does to the protection of tables in the schema.
    """
    match action:
        case GrantPrivileges():
            return reads(action) and min(ways, default=Direction.WEAKENS) < Direction.WEAKENS
        case RevokePrivileges() if (
            reads(action) and max(ways, default=Direction.STRENGTHENS) > Direction.STRENGTHENS
        ):
            return False
        case RevokePrivileges() | ChangeOwner() | UnsetTableTags():
            return True
        case SetTableTags(tags):
            return any(tag.observed is not None for tag in tags)
    return False


def compile_plan(plan: TablePlan, addressing: Addressing, capabilities: Capabilities) -> CompiledPlan:
    """Return the statements of a plan for one platform, in an order in which they can run one by one."""
    renderer = _Renderer(addressing, capabilities)
    steps = _Steps(is_governed=plan.is_governed)
    schema_rights = _add_schemas(steps, plan, renderer)
    _add_functions(steps, plan, renderer)
    _add_tables(steps, plan, renderer)
    for drop in (*plan.of_kind(Drop, "policy"), *plan.of_kind(Drop, "function")):
        steps.add_last(drop, renderer.drop(drop))
    return CompiledPlan(steps=(*steps.steps, *schema_rights))


def _add_schemas(steps: _Steps, plan: TablePlan, renderer: _Renderer) -> list[Step]:
    """Add the first step of each schema; return the steps that come after all tables."""
    creates = {create.name.key: create for create in plan.create_schemas}
    aligns = {align.name.key: align for align in plan.align_schemas}
    schema_rights = []
    within = directions_within(plan) if aligns else None
    for key in sorted({*creates, *aligns}):
        create, align = creates.get(key), aligns.get(key)
        name, actions = (create or aligns[key]).name, align.actions if align else ()
        ways = within(key) if within else ()
        late = tuple(action for action in actions if _is_late(action, ways))
        first = Step(
            name=name,
            operation=Operation.ALTER if create is None else Operation.CREATE,
            statements=(
                *(renderer.creation(create) if create else ()),
                *renderer.alignment(name, (action for action in actions if action not in late)),
            ),
        )
        steps.add_schema(first)
        if late:
            revokes = [action for action in late if direction(action) is Direction.STRENGTHENS]
            rest = (action for action in late if action not in revokes)
            statements = (*renderer.alignment(name, revokes), *renderer.alignment(name, rest))
            schema_rights.append(replace(first, statements=statements, round=Round.SCHEMA_RIGHTS))
    return schema_rights


def _add_functions(steps: _Steps, plan: TablePlan, renderer: _Renderer) -> None:
    """Add the new functions, each after those that it calls, and the changes that replace no function."""
    created: dict[str, Create[Function]] = {new.name.key: new for new in plan.of_kind(Create, "function")}
    calls = {key: {name.key for name in called_functions(new.desired)} for key, new in created.items()}
    for key in in_order({key: frozenset(calls[key] & calls.keys() - {key}) for key in calls})[0]:
        steps.add_governor(created[key], renderer.completed(created[key]))
    for align in plan.of_kind(Align, "function"):
        if not align.of_type(ReplaceFunction):
            steps.add_governor(align, renderer.alignment(align.name, align.actions))


def _swap_parts(
    steps: _Steps, plan: TablePlan, tables: Iterable[_StagedTable], renderer: _Renderer
) -> Iterator[tuple[str, _Part]]:
    """Yield the changes of protection whose direction is unknown."""
    replaced = {node_of(align.name): align for align in _governors(plan)}
    swaps = {place: (table, swap) for table in tables for place, swap in table.swaps.items()}
    order = in_order(waits_of_swaps(plan))[0] if replaced or swaps else ()
    for number, place in enumerate(order):
        if place in swaps:
            table, swap = swaps[place]
            yield (
                place,
                _Part((Stage.CHANGE, 1, number), partial(steps.add_stage, table, Stage.PROTECT, swap)),
            )
        elif place in replaced:
            align = replaced[place]
            statements = tuple(renderer.alignment(align.name, align.actions))
            add = partial(steps.add_governor, align, statements, [*reach(align)])
            yield place, _Part((Stage.CHANGE, 1, number), add)


def _governors(plan: TablePlan) -> tuple[Align[Any], ...]:
    return (*plan.of_kind(Align, "function"), *plan.of_kind(Align, "policy"))


def _stage_after(policy: Create[AbacPolicy], changes: Mapping[str, TableChange]) -> Stage:
    """Return the stage before which a policy is created: first, unless its own table is created or renamed."""
    match changes.get(policy.desired.scope.key):
        case CreateTable():
            return Stage.ADD_FOREIGN_KEYS
        case AlignTable() as align if align.of_type(RenameTable):
            return Stage.CHANGE
    return Stage.PROTECT


def _add_tables(steps: _Steps, plan: TablePlan, renderer: _Renderer) -> None:
    changes: dict[str, TableChange] = {create.table.key: create for create in plan.create_tables}
    changes |= {align.table.key: align for align in plan.align_tables}
    parents = _needs(changes)
    deferred = in_order(parents)[1]
    staging = Staging.of(changes.values())
    policies: tuple[Create[AbacPolicy], ...] = plan.of_kind(Create, "policy")
    of_renamed = (
        policy.desired.scope.key for policy in policies if _stage_after(policy, changes) is Stage.CHANGE
    )
    reached = frozenset(chain(of_renamed, *map(reach, _governors(plan))))
    tables = {
        key: _table(
            change,
            deferred[key],
            staging,
            renderer,
            is_governed=bool(reached) and not reached.isdisjoint(levels(key)),
        )
        for key, change in changes.items()
    }
    dropped: dict[str, Drop[Any]] = {drop.table.key: drop for drop in plan.drop_tables}
    tables |= {key: _table_before_drop(drop, renderer) for key, drop in dropped.items()}
    steps.rename(plan.align_tables)
    created = {key: needed - deferred[key] for key, needed in parents.items() if needed}
    needs = view_needs(plan)
    parts = _parts_of_tables(steps, tables, created, needs)
    parts |= _swap_parts(steps, plan, tables.values(), renderer)
    for change in view_changes(plan):
        for name, statements in _view_parts(change, renderer).items():
            add = partial(steps.add_view, change, statements)
            parts[name] = _Part((Stage.CHANGE, 2, 0), add, needs[name])
    for number, policy in enumerate(policies):
        add = partial(steps.add_governor, policy, renderer.completed(policy), [policy.desired.scope.key])
        parts[node_of(policy.name)] = _Part((_stage_after(policy, changes), 0, number), add)
    _add_parts(parts)
    dropped |= {drop.name.key: drop for drop in plan.of_kind(Drop, "view")}
    for key in in_order(_children_first(dropped))[0]:
        steps.add_drop(dropped[key], renderer.drop(dropped[key]))


@dataclass(frozen=True, slots=True)
class _Part:
    """A step that is to be added.

    Args:
        place: where it comes if nothing waits for it: its stage, and its place in it.
        add: adds it behind some steps, and returns its position.
        waits: the names of the parts that come before it.
        divided: the key of its table, if views change between the parts of that.
    """

    place: tuple[Stage, int, int]
    add: Callable[[set[int]], int]
    waits: Set[str] = frozenset()
    divided: str = ""


def _parts_of_tables(
    steps: _Steps,
    tables: Mapping[str, _StagedTable],
    parents: Mapping[str, frozenset[str]],
    needs: Mapping[str, frozenset[str]],
) -> dict[str, _Part]:
    """Return the stages of tables, those between which a view changes divided.

    Args:
        parents: the tables that created ones need first.
        needs: what the changes of tables and views wait for.
    """
    divided = {name.rpartition(" ")[0] for name in linked(needs)}
    parts: dict[str, _Part] = {}
    for key, table in tables.items():
        earlier = {node(parent, turn) for parent in parents.get(key, ()) for turn in TURNS}
        for stage in sorted(table.stages):
            for turn, statements in _by_turn(table.stages[stage], stage, key in divided).items():
                name = _name_of(node(key, turn), stage)
                add = partial(steps.add_stage, table, stage, statements)
                waits = earlier | needs.get(node(key, turn), frozenset())
                parts[name] = _Part((stage, 2, 0), add, waits, key if key in divided else "")
                earlier = {name}
    return parts


def _name_of(change: str, stage: Stage) -> str:
    return change if stage is Stage.CHANGE else f"{change} {stage.name}"


def _by_turn(
    statements: Iterable[Statement], stage: Stage, is_divided: bool
) -> Mapping[Turn, tuple[Statement, ...]]:
    """Return the statements of a table's stage by turn, undivided if no view waits for one, or the reverse."""
    by_turn = defaultdict[Turn, list[Statement]](list)
    for statement in statements:
        is_apart = is_divided and stage in (Stage.PROTECT, Stage.CHANGE)
        by_turn[turn_of(statement.phase) if is_apart else Turn.CREATE].append(statement)
    return {turn: tuple(by_turn[turn]) for turn in TURNS if turn in by_turn} or {Turn.CREATE: ()}


def _add_parts(parts: Mapping[str, _Part]) -> None:
    """Add parts by their places, each behind those that it waits for.

    What strengthens the protection of a table may wait for views and other tables, which then come as early. The other
    parts of the table itself never do.
    """
    protecting = [name for name, part in parts.items() if part.place[0] is Stage.PROTECT]
    protected = {parts[name].divided for name in protecting} - {""}
    late = {name for name, part in parts.items() if part.divided in protected} - {*protecting}
    waits = {name: _present(part.waits, parts) - {name} for name, part in parts.items()}
    early: set[str] = set()
    while protecting:
        if (name := protecting.pop()) not in early:
            early.add(name)
            waits[name] -= late
            protecting += waits[name]
    places = {name: min(part.place, _EARLY) if name in early else part.place for name, part in parts.items()}
    done: dict[str, int] = {}
    for name in in_order(waits, places)[0]:
        done[name] = parts[name].add({done[needed] for needed in waits[name] if needed in done})


def _present(names: Set[str], parts: Collection[str]) -> frozenset[str]:
    return frozenset(
        part for name in names for part in (name, _name_of(name, Stage.PROTECT)) if part in parts
    )


def _view_parts(change: Create[Any] | Align[Any], renderer: _Renderer) -> Mapping[str, tuple[Statement, ...]]:
    """Return the statements of a view: those of queries that stand while tables change, and the change."""
    name = change.name
    if isinstance(change, Create):
        return {view_node(name.key, 0): tuple(renderer.completed(change))}
    settings, parts = change.order.settings, {}
    early: tuple[Action, ...] = change.of_type(RenameView)
    if settings[0].query and settings[0].is_new:  # it stands in the new mode of the view
        early += change.of_type(SetSchemaMode)
    for number, setting in enumerate(settings):
        actions = [action for action in change.actions if action not in early]
        if setting.query:
            actions = [_with_query(action, setting) for action in change.of_type(AlterViewQuery)]
        together = (*(() if number else early), *actions)
        parts[view_node(name.key, number)] = tuple(renderer.alignment(name, together))
    return parts


def _with_query(action: AlterViewQuery, setting: Setting) -> AlterViewQuery:
    """Return a change of a view to a query that stands for a while, and returns its new or its former columns."""
    desired = replace(action.desired, query=setting.query)
    if not setting.is_new:
        documented = {column.key: column for column in desired.columns}
        columns = (documented.get(column.key, bare_column(column)) for column in action.observed.columns)
        desired = replace(desired, columns=tuple(columns))
    return replace(action, desired=desired)


@dataclass(frozen=True, slots=True, kw_only=True)
class _StagedTable:
    name: QualifiedName
    operation: Operation
    stages: Mapping[Stage, tuple[Statement, ...]]
    swaps: Mapping[str, tuple[Statement, ...]] = field(default_factory=dict)


def _table(
    change: TableChange,
    deferred: frozenset[str],
    staging: Staging,
    renderer: _Renderer,
    *,
    is_governed: bool,
) -> _StagedTable:
    """Return a table that stays, created without the `deferred` parents, which need it themselves."""
    match change:
        case AlignTable() if is_governed or is_out_of_order(change):
            return _directed(change, staging, renderer)
        case CreateTable():
            operation, statements = Operation.CREATE, _created(change, deferred, renderer)
        case AlignTable():
            operation = Operation.ALTER
            statements = tuple(renderer.alignment(change.name, change.actions, change.is_streaming))
    stages = staging.stages(change.table, statements) or {Stage.CHANGE: ()}
    return _StagedTable(name=change.table, operation=operation, stages=stages)


def _directed(align: AlignTable, staging: Staging, renderer: _Renderer) -> _StagedTable:
    """Return a table whose statements come by what they do to its protection."""
    strengthening, undirected, others = directed_actions(align)
    first, rest = (
        tuple(renderer.alignment(align.name, actions, align.is_streaming))
        for actions in (strengthening, others)
    )
    stages = {**staging.stages(align.name, rest), **staging.stages(align.name, first, Stage.PROTECT)}
    swaps = {
        place_of(align.name.key, action): tuple(renderer.alignment(align.name, (action,), align.is_streaming))
        for action in undirected
    }
    return _StagedTable(name=align.name, operation=Operation.ALTER, stages=stages, swaps=swaps)


def _created(create: CreateTable, deferred: frozenset[str], renderer: _Renderer) -> tuple[Statement, ...]:
    desired = create.desired
    if create.adoption is not None:
        completed = renderer.alignment(create.name, create.adoption.completing)
        return (renderer.registration(create), *completed)
    late = deferred | {create.table.key}  # it does not exist before it is created
    inline = tuple(key for key in desired.foreign_keys if key.references.lower() not in late)
    added = (ForeignKeyAdd(key) for key in desired.foreign_keys if key.references.lower() in late)
    bare = CreateTable(replace(desired, foreign_keys=inline, declared_at=desired.declared_at))
    after = (*aspects.after_create(desired), *added)
    return (*renderer.creation(bare), *renderer.alignment(create.name, after))


def _table_before_drop(drop: DropTable, renderer: _Renderer) -> _StagedTable:
    """Return a dropped table with the drops of its keys that block other tables."""
    statements = renderer.alignment(drop.name, drop.keys)
    stages = divided(statements, frozenset({Stage.DROP_FOREIGN_KEYS, Stage.FREE_KEY_NAMES}))
    return _StagedTable(name=drop.table, operation=Operation.DROP, stages=stages)


class _Steps:
    """The steps of a plan, as they are added.

    Args:
        is_governed: whether functions or policies change.
    """

    def __init__(self, *, is_governed: bool) -> None:
        self.steps: list[Step] = []
        self._schemas: dict[str, int] = {}
        self._new_names: dict[str, str] = {}  # new names of renamed tables, by former name
        self._done: dict[str, int] = {}  # the step after which a table is complete except for foreign keys
        self._cleared: dict[str, set[int]] = defaultdict(set)  # the steps before a change of a table
        self._uses: dict[str, set[int]] = defaultdict(set)  # the steps that need rights on a table
        self._freed: dict[KeyName, int] = {}
        self._is_governed = is_governed
        self._functions: dict[str, set[int]] = defaultdict(set)  # new ones, by their last names
        self._covering: dict[str, set[int]] = defaultdict(set)  # the steps that reach all in a securable
        self._within: dict[str, set[int]] = defaultdict(set)  # the steps that reach something in it

    def add_schema(self, step: Step) -> None:
        self._schemas[step.name.key] = len(self.steps)
        self.steps.append(step)

    def rename(self, aligned: Iterable[AlignTable]) -> None:
        renames = (rename for align in aligned for rename in align.of_type(RenameTable))
        self._new_names = {rename.observed.key: rename.desired.key for rename in renames}

    def add_stage(
        self, table: _StagedTable, stage: Stage, statements: tuple[Statement, ...], after: set[int]
    ) -> int:
        """Add a stage of a table, or a part of it."""
        key, actions = table.name.key, _actions(statements)
        step = Step(name=table.name, operation=table.operation, statements=statements)
        position = self._add(table.name, step, after | self._waits_for(key, stage, actions))
        if stage < Stage.ADD_FOREIGN_KEYS:
            self._done[key] = position
        if stage is Stage.DROP_FOREIGN_KEYS:
            parents = referenced_tables(dropped_foreign_keys(actions))
            for parent in {self._new_names.get(parent, parent) for parent in parents}:
                self._cleared[parent].add(position)
        if stage < Stage.CHANGE:
            self._cleared[key].add(position)
        return position

    def add_view(
        self, change: Create[Any] | Align[Any], statements: tuple[Statement, ...], after: set[int]
    ) -> int:
        operation = Operation.CREATE if isinstance(change, Create) else Operation.ALTER
        step = Step(name=change.name, operation=operation, statements=statements)
        return self._add(change.name, step, after, ())

    def add_governor(
        self,
        change: Create[Any] | Align[Any],
        statements: Iterable[Statement],
        reached: Collection[str] = (),
        after: Set[int] = frozenset(),
    ) -> int:
        operation = Operation.CREATE if isinstance(change, Create) else Operation.ALTER
        step = Step(name=change.name, operation=operation, statements=tuple(statements))
        position = self._add(change.name, step, {*after}, reached)
        if isinstance(change, Create) and isinstance(change.name, FunctionName):
            self._functions[change.name.parts[-1]].add(position)
        return position

    def add_last(self, drop: Drop[Any], statement: Statement) -> None:
        """Add the drop of a policy, which follows all in its scope, or of a function, which follows everything."""
        is_gone = any(
            step.operation is Operation.DROP and step.name in drop.name.parents for step in self.steps
        )
        statements = () if is_gone else (statement,)  # a policy goes with its table
        step = Step(name=drop.name, operation=Operation.DROP, statements=statements, round=Round.DROPS)
        self._add(drop.name, step, set(), [drop.name.scope.key if drop.name.kind == "policy" else ""])

    def add_drop(self, drop: Drop[Any], statement: Statement) -> None:
        key = drop.name.key
        step = Step(name=drop.name, operation=Operation.DROP, statements=(statement,), round=Round.DROPS)
        position = self._add(drop.name, step, self._cleared[key] | self._uses[key])
        for parent in drop.references:
            self._uses[parent.key].add(position)

    def _waits_for(self, key: str, stage: Stage, actions: Iterable[CarriedAction]) -> set[int]:
        match stage:
            case Stage.DROP_FOREIGN_KEYS:
                return set()
            case Stage.FREE_KEY_NAMES | Stage.PROTECT:
                return self._cleared[key]
            case Stage.CHANGE:
                parents = referenced_tables(added_foreign_keys(actions))
                return self._cleared[key] | self._positions(parents)
            case Stage.ADD_FOREIGN_KEYS:
                parents = referenced_tables(added_foreign_keys(actions))
                return self._cleared[key] | self._positions({key, *parents})
            case Stage.CHANGE_RIGHTS:
                return self._uses[key]

    def _add(
        self, name: SecurableName, step: Step, after: set[int], reached: Collection[str] | None = None
    ) -> int:
        """Add a step, which also waits for its schema, and for the key names that it takes.

        Besides, it waits for the new functions that its statements name, and for what reaches the same tables: by
        default its own one.
        """
        position, actions = len(self.steps), _actions(step.statements)
        table = name if isinstance(name, QualifiedName) else None
        if table is not None:
            after = after | {
                self._freed[taken] for taken in taken_names(table, actions) if taken in self._freed
            }
        home = name.scope.key if isinstance(name, PolicyName) else name.key
        schema = self._schemas.get(".".join(home.split(".")[:2]))
        if schema is not None:
            after.add(schema)
        if self._is_governed:
            after = after | self._governing(step, position, [home] if reached is None else reached)
        self.steps.append(replace(step, after=tuple(sorted(after))))
        if table is not None:
            self._freed |= dict.fromkeys(freed_names(table, actions), position)
            for used in {table.key, *referenced_tables(added_foreign_keys(actions))}:
                self._uses[used].add(position)
        return position

    def _governing(self, step: Step, position: int, reached: Collection[str]) -> set[int]:
        """Return the earlier steps that reach what a step reaches, and make the functions that it names."""
        text = " ".join(statement.sql for statement in step.statements).replace("``", "`").lower()
        after = set().union(*(made for function, made in self._functions.items() if function in text))
        for key in reached:
            after |= self._within[key].union(*(self._covering[level] for level in levels(key)))
        for key in reached:
            self._covering[key].add(position)
            for level in levels(key):
                self._within[level].add(position)
        return after

    def _positions(self, tables: Iterable[str]) -> set[int]:
        return {self._done[key] for key in tables if key in self._done}


def _actions(statements: Iterable[Statement]) -> tuple[CarriedAction, ...]:
    return tuple(action for statement in statements for action in statement.actions)


def _needs(changes: Mapping[str, TableChange]) -> Mapping[str, frozenset[str]]:
    """Return the tables of the plan that each created table needs first."""
    return {
        key: frozenset(referenced_tables(change.desired.foreign_keys) & changes.keys() - {key})
        if isinstance(change, CreateTable)
        else frozenset()
        for key, change in changes.items()
    }


def _children_first(dropped: Mapping[str, Drop[Any]]) -> Mapping[str, frozenset[str]]:
    """Return the dropped tables and views that reference or read each dropped one."""
    children: dict[str, set[str]] = {key: set() for key in dropped}
    for key, drop in dropped.items():
        for parent in drop.references:
            if parent.key in dropped and parent.key != key:
                children[parent.key].add(key)
    return {key: frozenset(keys) for key, keys in children.items()}


@dataclass(frozen=True, slots=True)
class _Renderer:
    """Renders the changes of a plan as statements of one platform."""

    addressing: Addressing
    capabilities: Capabilities

    def creation(self, create: Create[Any]) -> Iterator[Statement]:
        """Yield the statements of a creation."""
        kind, context = aspects.kind_of(create.name), self._context(create.name)
        for phase, sql in kind.create(create.desired, context):
            yield Statement(sql=sql, actions=(create,), phase=phase)

    def completed(self, create: Create[Any]) -> Iterator[Statement]:
        """Yield the statements of a creation, and those for what its CREATE statement lacks."""
        yield from self.creation(create)
        yield from self.alignment(create.name, aspects.after_create(create.desired))

    def registration(self, create: CreateTable) -> Statement:
        """Return CREATE TABLE with nothing but the location, which takes the Delta table there as it is."""
        sql = sql_register_table(self.addressing.table(create.table), str(create.desired.location))
        return Statement(sql=sql, actions=(create,))

    def alignment(
        self, name: SecurableName, actions: Iterable[Action], is_streaming: bool = False
    ) -> Iterator[Statement]:
        """Yield the statements of actions, in the order of their phases."""
        for together, sql in aspects.render(actions, self._context(name, is_streaming)):
            yield Statement(sql=sql, actions=tuple(together), phase=together[0].phase)

    def drop(self, drop: Drop[Any]) -> Statement:
        """Return the statement of a drop."""
        spelled = aspects.kind_of(drop.name).drop
        assert spelled is not None, f"a {drop.name.kind} is never dropped"
        return Statement(sql=spelled(self._context(drop.name)), actions=(drop,))

    def _context(self, name: SecurableName, is_streaming: bool = False) -> RenderContext[Any]:
        return RenderContext(name, self.addressing, self.capabilities, is_streaming)
