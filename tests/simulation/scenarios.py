"""What happens in a story, as data that is drawn from its number, so that parts can be left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from random import Random
from typing import NamedTuple, TypeAlias

from delta_engine.actions.drift_policy import DriftHandling
from tests.builders.histories import FACETS, TOPICS
from tests.simulation.lagging import VIEWS, Lag

ENGINES = ("ann", "ben", "cy")
TABLES = ("aaab", "c")
"""The tables of the teams. Most steps are about one table: stories are short."""

OTHER_ENGINE = "dee"
"""The engine of the second team."""

IMPORTER = "ida"
"""Who imports tables."""

MOVER, RENAMED = "max", "a"
"""Who renames a table, and which."""

MOVED = "moved"
"""The facet of a model with another name that does not say how the table was called."""

FUNCTION = "twice"
BODIES = ("n * 2", "n + n", "2 * n")
BY_HAND_ON_FUNCTION = {
    "grant": "GRANT EXECUTE ON FUNCTION {f} TO `them`",
    "no grant": "REVOKE EXECUTE ON FUNCTION {f} FROM `them`",
    "body": "CREATE OR REPLACE FUNCTION {f}(`n` bigint) RETURNS bigint RETURN n * 1",
}
"""Statements of others about the function."""

_WITHOUT = ("schema", "order")
"""Topics of histories that no story has."""

_DEAD_ENDS = ("struct<a: bigint>", "type of n", "type of s.a", "add s.a", "row filter on n")
"""Values and changes after which every plan is refused until people settle by hand what no command can."""


_SHOWN_BY: Mapping[str, Sequence[str]] = {
    "tag": ("table_tags", "column_tags"),
    "grant": ("table_privileges",),
    "mask": ("column_masks",),
    "row filter": ("row_filters",),
    "key": ("table_constraints",),
    "reference": ("table_constraints", "referential_constraints"),
    "table": ("tables",),
}
"""The views that show what topics are about."""


class FaultKind(Enum):
    """What goes wrong at a call of a port."""

    REFUSED = "is refused"
    THROTTLED = "is throttled"
    UNAVAILABLE = "is answered with a 503 although it was done"
    LOST_BEFORE = "gets no answer, and was not done"
    LOST_AFTER = "gets no answer, and was done"
    CONFLICT = "meets a conflict"
    SLOW = "takes longer than the lease"
    FROZEN = "waits, since the machine freezes"
    KILLED_BEFORE = "never begins: the process is killed"
    KILLED_AFTER = "is done, and the process is killed"
    CTRL_C = "is interrupted by Ctrl-C"


class Fault(NamedTuple):
    """Something that goes wrong at the call of a command with this number."""

    call: int
    kind: FaultKind


class Verb(Enum):
    """The commands of the engine."""

    SYNC = "sync"
    PLAN = "plan --out FILE"
    APPLY = "apply FILE"
    DRIFT = "drift"
    REVERT = "drift --revert"
    UNDO = "undo"
    FORGET = "state rm"
    COMPARE = "state sync"
    IMPORT = "import"
    MOVE = "state mv"


_DRAWN = tuple(verb for verb in Verb if verb not in (Verb.IMPORT, Verb.MOVE))
"""What engines do. Imports and moves of records have actors."""

_AFTER_PLANS = (
    (Verb.APPLY,),
    (Verb.APPLY, Verb.APPLY),
    (Verb.APPLY, Verb.UNDO, Verb.APPLY),
)
"""What may follow a plan."""


class Edit(NamedTuple):
    """A commit that changes a facet of a model."""

    table: str
    facet: str
    value: object


class Command(NamedTuple):
    """A command of the engine, on the models of the newest commit."""

    verb: Verb
    edits: tuple[Edit, ...] = ()
    has_consent: bool = False
    faults: tuple[Fault, ...] = ()


class ByHand(NamedTuple):
    """A change outside the engine."""

    table: str
    change: str


class Write(NamedTuple):
    """A commit of rows."""

    table: str


class Wait(NamedTuple):
    """A pause."""

    seconds: float


class Rename(NamedTuple):
    """A table is renamed outside the engine, and a commit renames its model.

    If the catalog refuses the rename, the actor does nothing more.
    """

    table: str


Step: TypeAlias = Command | ByHand | Rename | Write | Wait


class Part(NamedTuple):
    """What an actor does, in turn; `team` is the place of its team in the world."""

    actor: str
    steps: tuple[Step, ...]
    team: int = 0


class Scenario(NamedTuple):
    """A whole story. The order of its turns is drawn from the seed too.

    Args:
        stickiness: how likely an actor goes on after its turn.
        last_edits: the commit whose run is undone at the end, if any.
        last_changes: what is changed by hand at the end, if anything.
        lags: the views that show earlier states, until faults stop.
        is_on_databricks: whether the engine's store for Databricks keeps documents, journals and the lock.
    """

    seed: int
    stickiness: float
    handling: DriftHandling
    parts: tuple[Part, ...]
    last_edits: tuple[Edit, ...] = ()
    last_changes: tuple[ByHand, ...] = ()
    lags: tuple[Lag, ...] = ()
    is_on_databricks: bool = False

    @property
    def is_listed(self) -> bool:
        """Whether tables are first read by a listing, which names neither filter nor masks."""
        return self.seed % 2 == 1


def drawn(seed: int) -> Scenario:
    """Return the scenario of a number."""
    random = Random(seed)
    topics = _topics(random)
    engines = ENGINES[: random.choice((1, 2, 2, 2, 3))]
    parts = [
        Part(name, tuple(_commands(random, topics, random.randint(1, 6 // len(engines) + 1))))
        for name in engines
    ]
    if random.random() < 0.8:
        hands: list[Step] = []
        for _ in range(random.randint(1, 4)):
            hands += [Wait(random.choice((2.0, 10.0, 60.0))), _by_hand(random, topics)]
        parts.append(Part("jo", tuple(hands)))
    if random.random() < 0.3:
        parts.append(Part("etl", (Wait(20.0), Write("a"), Wait(20.0), Write("a"))))
    is_undone = random.random() < 0.5
    scenario = Scenario(
        seed=seed,
        stickiness=random.choice((0.5, 0.8, 0.9, 0.95)),
        handling=random.choice((*DriftHandling, DriftHandling.REVERT)),
        parts=tuple(parts),
        last_edits=_edits(random, topics) if is_undone else (),
        last_changes=() if is_undone else (_by_hand(random, topics), _by_hand(random, topics)),
        lags=_lags(random, topics) if random.random() < 0.3 else (),
    )
    is_alone = random.random() < 0.75
    others = () if is_alone else _second_team(random, topics)
    more = (*_imports(Random(f"imports {seed}")), *_move(Random(f"moves {seed}"), topics))
    scenario = scenario._replace(parts=(*parts, *others, *more))
    place = Random(f"place {seed}")
    return _on_databricks(place, scenario) if place.random() < 0.25 else scenario


def _on_databricks(random: Random, scenario: Scenario) -> Scenario:
    """Return a scenario on Databricks. Its faults are at later calls: a command that uploads files makes more."""

    def later(step: Step) -> Step:
        if not isinstance(step, Command) or step.verb is Verb.IMPORT:
            return step
        faults = (fault._replace(call=2 * fault.call + random.randint(0, 1)) for fault in step.faults)
        return step._replace(faults=tuple(faults))

    parts = (part._replace(steps=tuple(map(later, part.steps))) for part in scenario.parts)
    return scenario._replace(parts=tuple(parts), is_on_databricks=True)


def _second_team(random: Random, topics: Sequence[str]) -> Iterator[Part]:
    """Yield what the second team does, and who changes its table by hand."""
    team = 1
    own = [topic for topic in topics if topic not in ("function", "reference")] or ["comment"]
    yield Part(OTHER_ENGINE, tuple(_commands(random, own, random.randint(1, 3), team)), team)
    yield Part("kit", (Wait(random.choice((2.0, 10.0, 60.0))), _by_hand(random, own, team)))


def _imports(random: Random) -> Iterator[Part]:
    """Yield who imports the tables of the first team, in one story of four. Other stories stay as they are."""
    if random.random() < 0.75:
        return
    steps: list[Step] = []
    for _ in range(random.randint(1, 3)):
        steps += [Wait(random.choice((2.0, 10.0, 30.0))), Command(Verb.IMPORT, faults=_early_faults(random))]
    yield Part(IMPORTER, tuple(steps))


def _move(random: Random, topics: Sequence[str]) -> Iterator[Part]:
    """Yield who renames a table, then its model and its record, in one story of six that is not about names."""
    if random.random() < 5 / 6 or not {"name", "table", "reference"}.isdisjoint(topics):
        return
    first, pause = Wait(random.choice((10.0, 30.0, 60.0))), Wait(random.choice((0.0, 0.0, 10.0)))
    moves = [Command(Verb.MOVE, faults=_early_faults(random)) for _ in range(2)]
    yield Part(MOVER, (first, Rename(RENAMED), pause, *moves))


def _early_faults(random: Random) -> tuple[Fault, ...]:
    """Return faults for a command with few calls."""
    count = random.choice((0, 1, 1, 2))
    return tuple(Fault(random.randint(1, 6), random.choice([*FaultKind])) for _ in range(count))


def _topics(random: Random) -> list[str]:
    topics = random.sample(sorted(TOPICS.keys() - {*_WITHOUT}), random.randint(1, 3))
    if "mask" in topics or "row filter" in topics:  # Databricks refuses them beside checks
        topics = [topic for topic in topics if topic != "check"]
    if "mask" in topics or "row filter" in topics:  # no plan drops these and sets tags, and they hide renames
        topics = [topic for topic in topics if topic not in ("tag", "fields", "x", "y", "n")]
    if "mask" in topics and "row filter" in topics:  # a plan that changes both is refused
        topics = [topic for topic in topics if topic != "row filter"]
    if "name" in topics:  # a table that is made again has one of two names
        topics = [topic for topic in topics if topic not in ("table", "reference")]
    if "reference" in topics:  # no plan drops a key that an undeclared table references
        topics = [topic for topic in topics if topic != "table"]
    if "type" in topics:  # a widened column keeps a revert from renaming another one back
        topics = ["type"]
    return [*topics, *(["function"] if random.random() < 0.3 else [])]


def _commands(random: Random, topics: Sequence[str], count: int, team: int = 0) -> list[Step]:
    steps: list[Step] = []
    for number in range(count):
        verb = Verb.SYNC if number == 0 else random.choice((*_DRAWN, Verb.SYNC, Verb.SYNC))
        sequence = random.choice(_AFTER_PLANS) if verb is Verb.PLAN else ()
        has_consent = random.random() < 0.6
        for position, each in enumerate((verb, *sequence)):
            edits = _edits(random, topics, team) if position == 0 and random.random() < 0.7 else ()
            steps.append(Command(each, edits, has_consent, _faults(random)))
        if random.random() < 0.3:
            steps.append(Wait(random.choice((5.0, 30.0, 100.0))))
    return steps


def _faults(random: Random) -> tuple[Fault, ...]:
    count = random.choice((0, 0, 1, 1, 2))
    return tuple(Fault(random.randint(0, 17), random.choice([*FaultKind])) for _ in range(count))


def _lags(random: Random, topics: Sequence[str]) -> tuple[Lag, ...]:
    """Return views that lag, mostly those that show what the story is about."""
    of_topics = [view for topic in topics for view in _SHOWN_BY.get(topic, ())]
    views = of_topics if of_topics and random.random() < 0.8 else VIEWS
    lagging = random.sample(views, min(len(views), random.choice((1, 1, 2))))
    return tuple(Lag(view, random.choice((2.0, 10.0, 60.0))) for view in lagging)


def _edits(random: Random, topics: Sequence[str], team: int = 0) -> tuple[Edit, ...]:
    return tuple(_edit(random, topics, team) for _ in range(random.randint(1, 3)))


def _edit(random: Random, topics: Sequence[str], team: int) -> Edit:
    topic = random.choice(topics)
    if topic == "function":
        return Edit(
            FUNCTION, *random.choice((("body", random.choice(BODIES)), ("grant", True), ("grant", False)))
        )
    facet = random.choice(TOPICS[topic][0])
    values = [value for value in FACETS[facet] if value not in _DEAD_ENDS]
    return Edit(random.choice(TABLES[team]), facet, random.choice(values))


def _by_hand(random: Random, topics: Sequence[str], team: int = 0) -> ByHand:
    topic = random.choice(topics)
    if topic == "function":
        return ByHand(FUNCTION, random.choice([*BY_HAND_ON_FUNCTION]))
    changes = [change for change in TOPICS[topic][1] if change not in _DEAD_ENDS]
    return ByHand(random.choice(TABLES[team]), random.choice(changes))
