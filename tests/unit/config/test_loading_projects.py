"""Whole projects as commands load them: all models, some of them, and what a command allows."""

from pathlib import Path

from delta_engine.compile.planner import TablePlanner
from delta_engine.config.conf_folder import environments
from delta_engine.models.constraints import resolved
from delta_engine.orchestrate.project import load_project
from delta_engine.state.states import ABSENT, CatalogState
from tests.fakes.planning import statements_of
from tests.unit.config.projects import MODELS, Write

TPCH = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]


KEYS = {
    ("customer", ("c_nationkey",), "nation", ("n_nationkey",)),
    ("lineitem", ("l_orderkey",), "orders", ("o_orderkey",)),
    ("lineitem", ("l_partkey", "l_suppkey"), "partsupp", ("ps_partkey", "ps_suppkey")),
    ("nation", ("n_regionkey",), "region", ("r_regionkey",)),
    ("orders", ("o_custkey",), "customer", ("c_custkey",)),
    ("partsupp", ("ps_partkey",), "part", ("p_partkey",)),
    ("partsupp", ("ps_suppkey",), "supplier", ("s_suppkey",)),
    ("supplier", ("s_nationkey",), "nation", ("n_nationkey",)),
}
"""The foreign keys of TPC-H: table, columns, referenced table, referenced columns."""


def test_globs_select_models(write: Write, tmp_path: Path) -> None:
    write("conf/models/n.yml", MODELS.replace("orders", "lines"))
    conf = tmp_path / "conf"
    for glob in ("lines", "silver.l*", "DEV.silver.lines"):
        assert [str(m.qualified_name) for m in load_project(conf, "dev", tables=[glob]).tables] == [
            "dev.silver.lines"
        ]


def test_the_shipped_example_is_valid_everywhere() -> None:
    conf = Path(__file__).parents[3] / "conf"
    assert environments(conf) == ["dev", "local", "prod", "stage"]
    for environment in environments(conf):
        names = {str(model.qualified_name) for model in load_project(conf, environment).tables}
        catalog = "dev" if environment == "local" else environment
        assert names == {f"{catalog}.silver.{table}" for table in TPCH} | {f"{catalog}.sales.orders"}


def test_the_shipped_example_creates_tables_after_those_that_they_reference() -> None:
    models = load_project(Path(__file__).parents[3] / "conf", "dev").tables
    keys = [(model, key) for model in resolved(models) for key in model.foreign_keys]
    assert {
        (model.table_name, key.columns, key.references.rpartition(".")[2], key.referenced_columns)
        for model, key in keys
    } == KEYS
    absent = CatalogState(tables={model.key: ABSENT for model in models})
    statements = statements_of(TablePlanner().plan(models, absent))
    created = [f"CREATE TABLE `dev`.`silver`.`{name}` (" for name in TPCH]
    firsts = [sql.partition("\n")[0] for sql in statements]
    places = {name: firsts.index(first) for name, first in zip(TPCH, created, strict=True)}
    assert all(places[parent] < places[child] for child, _, parent, _ in KEYS)
