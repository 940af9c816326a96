"""Whole projects as commands load them: all models, some of them, and what a command allows."""

from pathlib import Path

from delta_engine.config.conf_folder import environments
from delta_engine.orchestrate.project import load_project
from tests.unit.config.projects import MODELS, Write

TPCH = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]


def test_globs_select_models(write: Write, tmp_path: Path) -> None:
    write("conf/models/n.yml", MODELS.replace("orders", "lines"))
    conf = tmp_path / "conf"
    for glob in ("lines", "silver.l*", "DEV.silver.lines"):
        assert [str(m.qualified_name) for m in load_project(conf, "dev", tables=[glob]).models] == [
            "dev.silver.lines"
        ]


def test_the_shipped_example_is_valid_everywhere() -> None:
    conf = Path(__file__).parents[3] / "conf"
    assert environments(conf) == ["dev", "local", "prod", "stage"]
    for environment in environments(conf):
        names = {str(model.qualified_name) for model in load_project(conf, environment).models}
        catalog = "dev" if environment == "local" else environment
        assert names == {f"{catalog}.silver.{table}" for table in TPCH} | {f"{catalog}.sales.orders"}
