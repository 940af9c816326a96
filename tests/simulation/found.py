"""The shortest stories that failed once: as data, so that they stay the same when stories are drawn in another way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from delta_engine.actions.drift_policy import DriftHandling
from tests.simulation.lagging import Lag
from tests.simulation.scenarios import (
    ByHand,
    Command,
    Edit,
    Fault,
    FaultKind,
    Part,
    Scenario,
    Verb,
    Wait,
    Write,
)

_SYNC: Final = Command(Verb.SYNC, has_consent=True)
_KILLED_BEFORE_THE_SAVE: Final = Command(Verb.SYNC, faults=(Fault(16, FaultKind.KILLED_BEFORE),))

FOUND: Final[Mapping[str, Scenario]] = {
    "the undo of a killed creation is not recorded": Scenario(
        seed=51,
        stickiness=0.9,
        handling=DriftHandling.REVERT,
        parts=(Part("ann", (_KILLED_BEFORE_THE_SAVE, Command(Verb.UNDO, has_consent=True))),),
    ),
    "an undo brings back what others removed": Scenario(
        seed=401366,
        stickiness=0.8,
        handling=DriftHandling.REVERT,
        parts=(
            Part("ann", (_SYNC, _SYNC)),
            Part("ben", (Command(Verb.REVERT), Command(Verb.DRIFT, (Edit("a", "third column", "n"),)))),
            Part("jo", (Wait(10.0), ByHand("a", "add n with a comment"), Wait(60.0), ByHand("a", "drop n"))),
        ),
        last_edits=(Edit("a", "struct", "struct<a: int, p: int>"),),
    ),
    "another table has the name that a recorded one gets": Scenario(
        seed=501677,
        stickiness=0.9,
        handling=DriftHandling.REVERT,
        parts=(
            Part("ann", (Command(Verb.SYNC, (Edit("a", "name", "2"),), has_consent=True),)),
            Part("ben", (Command(Verb.SYNC, faults=(Fault(2, FaultKind.SLOW),)), Command(Verb.DRIFT))),
            Part("cy", (_SYNC, Command(Verb.FORGET, has_consent=True))),
            Part("etl", ()),
        ),
    ),
    "a run believes a view that lacks a key of an unverified run": Scenario(
        seed=502365,
        stickiness=0.8,
        handling=DriftHandling.REVERT,
        parts=(
            Part(
                "ann",
                (
                    Command(Verb.SYNC, faults=(Fault(16, FaultKind.LOST_BEFORE),)),
                    Command(Verb.SYNC, (Edit("b", "key", False),), has_consent=True),
                ),
            ),
        ),
        last_changes=(ByHand("twice", "body"),),
        lags=(Lag("table_constraints", 60.0),),
    ),
    "what a view showed late is never compared again next to drift": Scenario(
        seed=20033569,
        stickiness=0.5,
        handling=DriftHandling.REVERT,
        parts=(
            Part("cy", (Command(Verb.SYNC, (Edit("a", "tag", "1"),), has_consent=True),)),
            Part("jo", (Wait(60.0), ByHand("a", "move x"))),
        ),
        last_changes=(ByHand("a", "no tag"),),
        lags=(Lag("table_tags", 60.0),),
    ),
    "two runs change a row filter before its view shows the first": Scenario(
        seed=22116239,
        stickiness=0.9,
        handling=DriftHandling.REVERT,
        parts=(
            Part(
                "ann",
                (
                    _SYNC,
                    Command(Verb.SYNC, (Edit("a", "row filter", "mine"),)),
                    Command(Verb.SYNC, (Edit("a", "row filter", None),), has_consent=True),
                    Command(Verb.DRIFT),
                ),
            ),
        ),
        lags=(Lag("row_filters", 10.0),),
    ),
    "a forgotten table is adopted while the view of keys lacks its key": Scenario(
        seed=22042556,
        stickiness=0.95,
        handling=DriftHandling.REVERT,
        parts=(
            Part("ann", (Command(Verb.DRIFT, has_consent=True),)),
            Part(
                "ben",
                (
                    Command(Verb.SYNC),
                    Command(Verb.FORGET, (Edit("b", "key", False),), has_consent=True),
                    _SYNC,
                ),
            ),
        ),
        last_changes=(ByHand("a", "key"),),
        lags=(Lag("table_constraints", 60.0),),
    ),
    "a report believes the view of keys of a table that was adopted anew": Scenario(
        seed=30113650,
        stickiness=0.5,
        handling=DriftHandling.REVERT,
        parts=(
            Part(
                "ann",
                (
                    Command(Verb.SYNC),
                    Command(Verb.FORGET, has_consent=True),
                    _SYNC,
                    Command(Verb.DRIFT),
                ),
            ),
            Part("ida", (Command(Verb.IMPORT),)),
        ),
        lags=(Lag("table_constraints", 60.0),),
    ),
    "a table is dropped by an undo while its model gives it another name": Scenario(
        seed=31042734,
        stickiness=0.9,
        handling=DriftHandling.REFUSE,
        parts=(
            Part(
                "ann",
                (
                    Command(Verb.SYNC),
                    Command(
                        Verb.UNDO,
                        (Edit("a", "name", "2"),),
                        has_consent=True,
                        faults=(Fault(24, FaultKind.REFUSED),),
                    ),
                    Command(Verb.COMPARE),
                    Command(Verb.DRIFT),
                ),
            ),
        ),
        is_on_databricks=True,
    ),
    "a run whose lock was taken over saves over a run that failed to save": Scenario(
        seed=40113122,
        stickiness=0.8,
        handling=DriftHandling.REFUSE,
        parts=(
            Part(
                "ann",
                (
                    Command(
                        Verb.SYNC, (Edit("a", "third column", "n"),), faults=(Fault(17, FaultKind.FROZEN),)
                    ),
                    Command(Verb.DRIFT, has_consent=True),
                ),
            ),
            Part(
                "ben",
                (
                    Command(Verb.SYNC),
                    _SYNC._replace(faults=(Fault(14, FaultKind.CONFLICT), Fault(13, FaultKind.REFUSED))),
                ),
            ),
            Part(
                "cy",
                (
                    _SYNC._replace(faults=(Fault(12, FaultKind.KILLED_BEFORE),)),
                    Command(Verb.SYNC, (Edit("b", "declared", False), Edit("a", "third column", None))),
                ),
            ),
            Part("jo", (Wait(10.0), ByHand("b", "add n with a comment"))),
            Part("kit", (ByHand("c", "add n with a comment"),)),
        ),
    ),
    "a person sets the mask that a run replaced just before": Scenario(
        seed=40119479,
        stickiness=0.95,
        handling=DriftHandling.REVERT,
        parts=(
            Part(
                "ann",
                (
                    _SYNC._replace(edits=(Edit("a", "mask", "hide"),)),
                    Command(Verb.DRIFT, (Edit("a", "mask", "blank"),)),
                ),
            ),
            Part("jo", (Wait(2.0), ByHand("a", "rename x"))),
        ),
        last_changes=(ByHand("a", "mask like a model"),),
    ),
    "another principal masks a column during a run, and the next one drops the column that the mask reads": Scenario(
        seed=70049043,
        stickiness=0.95,
        handling=DriftHandling.REVERT,
        parts=(
            Part("ben", (_SYNC._replace(faults=(Fault(13, FaultKind.SLOW),)),)),
            Part("jo", (Wait(2.0), ByHand("a", "add n"), ByHand("a", "mask with n"))),
        ),
    ),
    "a model goes back to a grant that the view still shows": Scenario(
        seed=60116573,
        stickiness=0.95,
        handling=DriftHandling.REFUSE,
        parts=(
            Part("ann", (Wait(100.0), Command(Verb.DRIFT))),
            Part("ben", (_SYNC, _SYNC)),
            Part("cy", (_SYNC._replace(edits=(Edit("a", "grant", True),)),)),
            Part("etl", ()),
        ),
        lags=(Lag("table_privileges", 10.0),),
    ),
    "a model goes back to the row filter that the view still shows": Scenario(
        seed=40130879,
        stickiness=0.5,
        handling=DriftHandling.REVERT,
        parts=(
            Part(
                "ann",
                (
                    _SYNC._replace(edits=(Edit("b", "row filter", "seen"),)),
                    Command(Verb.DRIFT, has_consent=True),
                ),
            ),
            Part("cy", (_SYNC, _SYNC._replace(edits=(Edit("b", "row filter", "mine"),)))),
        ),
        lags=(Lag("row_filters", 10.0),),
    ),
    "a report with models of before reads the journal of a killed rename": Scenario(
        seed=70021304,
        stickiness=0.9,
        handling=DriftHandling.REVERT,
        parts=(
            Part("ann", (Command(Verb.DRIFT, has_consent=True, faults=(Fault(1, FaultKind.FROZEN),)),)),
            Part(
                "ben",
                (
                    _SYNC,
                    Command(
                        Verb.UNDO,
                        (Edit("b", "key", False),),
                        has_consent=True,
                        faults=(Fault(1, FaultKind.CONFLICT),),
                    ),
                    Wait(30.0),
                    _SYNC._replace(
                        edits=(Edit("a", "name", "2"),), faults=(Fault(14, FaultKind.KILLED_AFTER),)
                    ),
                ),
            ),
        ),
    ),
    "a report reads the catalog while an undo drops a function whose grant was refused": Scenario(
        seed=70049202,
        stickiness=0.9,
        handling=DriftHandling.REFUSE,
        parts=(
            Part(
                "ann",
                (
                    _SYNC._replace(
                        edits=(Edit("twice", "grant", True),), faults=(Fault(23, FaultKind.REFUSED),)
                    ),
                    Wait(5.0),
                    Command(Verb.DRIFT, has_consent=True, faults=(Fault(6, FaultKind.FROZEN),)),
                ),
            ),
            Part(
                "ben",
                (_SYNC, Command(Verb.UNDO, has_consent=True, faults=(Fault(6, FaultKind.SLOW),))),
            ),
            Part("jo", (Wait(10.0), ByHand("a", "default"))),
            Part("etl", (Write("a"),)),
        ),
        is_on_databricks=True,
    ),
    "a run adds a field again that a person renamed, and the model of before has it alone": Scenario(
        seed=200040612,
        stickiness=0.8,
        handling=DriftHandling.REVERT,
        parts=(
            Part(
                "ann",
                (
                    _SYNC._replace(edits=(Edit("a", "struct", "struct<a: int, p: int>"),)),
                    Command(
                        Verb.SYNC,
                        (Edit("a", "struct", "struct<a: int, n: int>"), Edit("a", "comment", "two")),
                        has_consent=True,
                        faults=(Fault(13, FaultKind.CTRL_C),),
                    ),
                    Command(Verb.SYNC, (Edit("a", "struct", "struct<a: int>"),)),
                ),
            ),
            Part("jo", (Wait(2.0), ByHand("a", "rename s.a"))),
            Part("dee", (_SYNC,), team=1),
        ),
        is_on_databricks=True,
    ),
    "a view shows late what looks like the removal of a key that was not done": Scenario(
        seed=200078256,
        stickiness=0.8,
        handling=DriftHandling.REFUSE,
        parts=(
            Part(
                "ann",
                (
                    _SYNC._replace(faults=(Fault(34, FaultKind.CONFLICT),)),
                    _SYNC._replace(
                        edits=(
                            Edit("a", "key", False),
                            Edit("twice", "grant", False),
                            Edit("twice", "body", "n * 2"),
                        ),
                        faults=(Fault(17, FaultKind.LOST_BEFORE), Fault(28, FaultKind.REFUSED)),
                    ),
                    Command(Verb.SYNC, (Edit("a", "key", True),), faults=(Fault(23, FaultKind.CONFLICT),)),
                    Wait(100.0),
                    Command(Verb.DRIFT, has_consent=True),
                    Wait(30.0),
                ),
            ),
            Part(
                "ben",
                (
                    Command(
                        Verb.SYNC,
                        (
                            Edit("twice", "body", "n * 2"),
                            Edit("twice", "grant", False),
                            Edit("twice", "body", "n * 2"),
                        ),
                        faults=(Fault(1, FaultKind.CTRL_C),),
                    ),
                    Command(
                        Verb.SYNC,
                        (Edit("b", "key", True), Edit("b", "key", False)),
                        faults=(Fault(15, FaultKind.CTRL_C),),
                    ),
                    Wait(30.0),
                ),
            ),
            Part(
                "jo",
                (
                    Wait(60.0),
                    ByHand("twice", "grant"),
                    Wait(10.0),
                    ByHand("twice", "body"),
                    Wait(60.0),
                    ByHand("b", "no key"),
                ),
            ),
        ),
        last_changes=(ByHand("twice", "body"), ByHand("b", "key")),
        lags=(Lag("table_constraints", 60.0),),
        is_on_databricks=True,
    ),
    "the second read of a report gets no answer": Scenario(
        seed=7,
        stickiness=0.9,
        handling=DriftHandling.REVERT,
        parts=(Part("ann", (_SYNC, Command(Verb.DRIFT, faults=(Fault(4, FaultKind.THROTTLED),)))),),
        lags=(Lag("tables", 600.0),),
    ),
    "an undo's attempt is forgotten without the table that it renamed": Scenario(
        seed=22117376,
        stickiness=0.95,
        handling=DriftHandling.REFUSE,
        parts=(
            Part(
                "ann",
                (
                    Command(
                        Verb.SYNC,
                        (Edit("b", "name", "2"),),
                        has_consent=True,
                        faults=(Fault(8, FaultKind.SLOW),),
                    ),
                    Command(Verb.UNDO, has_consent=True),
                    _SYNC,
                    Command(Verb.UNDO, has_consent=True, faults=(Fault(7, FaultKind.LOST_BEFORE),)),
                ),
            ),
            Part(
                "ben",
                (
                    Command(Verb.SYNC, has_consent=True, faults=(Fault(9, FaultKind.FROZEN),)),
                    Wait(100.0),
                    Command(Verb.UNDO, has_consent=True, faults=(Fault(10, FaultKind.LOST_AFTER),)),
                    Command(Verb.FORGET, has_consent=True),
                ),
            ),
        ),
    ),
    "an undo goes back to the document of a save that failed": Scenario(
        seed=410026624,
        stickiness=0.95,
        handling=DriftHandling.REFUSE,
        parts=(
            Part("ann", (Command(Verb.SYNC, (Edit("b", "comment", "one"),), has_consent=True),)),
            Part("cy", (Wait(100.0), Command(Verb.SYNC, (Edit("b", "comment", ""),), has_consent=True))),
            Part(
                "max",
                (
                    Wait(10.0),
                    Wait(10.0),
                    Command(Verb.MOVE, faults=(Fault(5, FaultKind.FROZEN), Fault(13, FaultKind.CONFLICT))),
                ),
            ),
        ),
        last_edits=(Edit("b", "row filter", "seen"),),
        is_on_databricks=True,
    ),
    "an undo believes a view after a run whose second read failed": Scenario(
        seed=610038771,
        stickiness=0.8,
        handling=DriftHandling.REFUSE,
        parts=(
            Part("ann", (Command(Verb.SYNC), Command(Verb.REVERT, (Edit("a", "declared", value=False),)))),
            Part(
                "ben",
                (
                    Command(Verb.SYNC, (Edit("a", "mask", "hide"),)),
                    Command(Verb.SYNC),
                    Command(Verb.PLAN, (Edit("a", "mask", None),), has_consent=True),
                    Command(
                        Verb.APPLY,
                        has_consent=True,
                        faults=(Fault(2, FaultKind.SLOW), Fault(13, FaultKind.UNAVAILABLE)),
                    ),
                    Command(Verb.UNDO, has_consent=True),
                ),
            ),
            Part("dee", (_SYNC,), team=1),
            Part("kit", ()),
        ),
        last_changes=(ByHand("a", "mask of n"),),
        lags=(Lag("column_masks", 60.0),),
    ),
    "a view shows the row filter of a dropped table on a new one of its name": Scenario(
        seed=810002458,
        stickiness=0.95,
        handling=DriftHandling.REVERT,
        parts=(
            Part(
                "ann",
                (
                    Command(Verb.SYNC, (Edit("a", "row filter", "mine"),)),
                    Command(
                        Verb.SYNC,
                        (Edit("a", "row filter", None),),
                        has_consent=True,
                        faults=(Fault(2, FaultKind.KILLED_AFTER),),
                    ),
                    Command(Verb.UNDO, has_consent=True),
                ),
            ),
            Part("ben", (_SYNC, Command(Verb.DRIFT))),
        ),
        lags=(Lag("row_filters", 60.0),),
    ),
    "a table that a run created again and people forgot has the name of a key": Scenario(
        seed=900001135,
        stickiness=0.5,
        handling=DriftHandling.REFUSE,
        parts=(
            Part("ann", (Command(Verb.SYNC, (Edit("b", "name", "2"),), has_consent=True),)),
            Part("ben", (Command(Verb.SYNC, (Edit("twice", "grant", value=True),)),)),
            Part("cy", (Command(Verb.SYNC), Command(Verb.FORGET))),
            Part("jo", (Wait(2.0), ByHand("b", "no key of the model"), ByHand("a", "no default"))),
        ),
        lags=(Lag("table_constraints", 10.0),),
    ),
    "a table whose rename is pending counts as unreadable while a view shows its columns late": Scenario(
        seed=1720018102,
        stickiness=0.5,
        handling=DriftHandling.REFUSE,
        parts=(
            Part("ann", (Command(Verb.SYNC, (Edit("b", "name", "2"),), has_consent=True),)),
            Part(
                "ben",
                (
                    Command(Verb.SYNC, has_consent=True, faults=(Fault(3, FaultKind.SLOW),)),
                    Command(Verb.REVERT, has_consent=True),
                    Command(Verb.DRIFT, has_consent=True),
                ),
            ),
        ),
        lags=(Lag("columns", 10.0),),
    ),
    "a person renames a column of a table that its run did not read again": Scenario(
        seed=1740001905,
        stickiness=0.95,
        handling=DriftHandling.REVERT,
        parts=(
            Part(
                "ann",
                (
                    Command(
                        Verb.SYNC,
                        (Edit("b", "second column", "y"),),
                        has_consent=True,
                        faults=(Fault(10, FaultKind.KILLED_BEFORE),),
                    ),
                    Command(Verb.REVERT),
                    Command(Verb.SYNC, has_consent=True, faults=(Fault(11, FaultKind.LOST_BEFORE),)),
                    Command(Verb.FORGET, (Edit("a", "comment", "two"),), has_consent=True),
                    Command(Verb.UNDO, (Edit("twice", "grant", value=True),), has_consent=True),
                    Command(Verb.SYNC, has_consent=True, faults=(Fault(14, FaultKind.KILLED_AFTER),)),
                ),
            ),
            Part("jo", (ByHand("a", "not required"), Wait(60.0), ByHand("b", "rename y"))),
        ),
    ),
    "a table that a killed run renamed is forgotten under its new name alone": Scenario(
        seed=1760060181,
        stickiness=0.95,
        handling=DriftHandling.REFUSE,
        parts=(
            Part(
                "ann",
                (
                    Command(
                        Verb.SYNC,
                        (Edit("a", "name", "2"), Edit("a", "mask", None)),
                        has_consent=True,
                        faults=(Fault(15, FaultKind.KILLED_BEFORE),),
                    ),
                ),
            ),
            Part(
                "ben",
                (
                    Command(Verb.SYNC, has_consent=True, faults=(Fault(5, FaultKind.CONFLICT),)),
                    Command(Verb.FORGET, has_consent=True),
                    Command(Verb.DRIFT, has_consent=True),
                ),
            ),
            Part("cy", (Command(Verb.SYNC, (Edit("a", "mask", "hide"),)),)),
        ),
    ),
}
"""The scenarios by what they found: faults of the engine, or of what the judge and the finale expect."""
