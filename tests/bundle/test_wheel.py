"""The wheel: it holds the engine, the skeleton with the bundle, and nothing else. So does one from the sdist."""

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from delta_engine import __version__
from tests.bundle.bundle_files import read, texts

ROOT = Path(__file__).parents[2]
JOBS = sorted(
    [*(ROOT / "resources").glob("*.job.yml"), *(ROOT / "docs" / "recipes").rglob("resources/*.job.yml")]
)
PIPELINES = sorted(
    [*(ROOT / "docs" / "recipes").glob("*.yml"), *(ROOT / "docs" / "recipes").rglob("workflows/*.yml")]
)
WHEEL = f"delta_engine_uc-{__version__}-py3-none-any.whl"


def build(kind: str, source: Path, out: Path) -> Path:
    command = [
        sys.executable,
        "-m",
        "build",
        f"--{kind}",
        "--no-isolation",
        "--outdir",
        str(out),
        str(source),
    ]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = out.glob("delta_engine_uc-*")
    return built


def contents(wheel: Path) -> Mapping[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


def test_the_wheel(wheel: Path, tmp_path: Path) -> None:
    assert wheel.name == WHEEL
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path / "installed")
    assert {name.split("/")[0].split("-")[0] for name in names} == {"delta_engine", "delta_engine_uc"}
    assert "delta_engine/py.typed" in names

    made = tmp_path / "made"
    subprocess.run(
        [sys.executable, "-m", "delta_engine", "init", str(made)],
        check=True,
        capture_output=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "installed")},
    )
    for part in ("bundle", "notebooks", "resources"):
        for path in (ROOT / part).glob("*.*"):
            assert (made / part / path.name).read_bytes() == path.read_bytes()
    assert (made / "databricks.yml").is_file()
    for name, published in (
        ("model", "model-file-v1"),
        ("config", "configuration-v1"),
        ("policy", "drift-policy-v1"),
        ("consents", "consents-v1"),
        ("lint", "house-rules-v1"),
    ):
        schema = ROOT / "docs" / "schemas" / f"{published}.json"
        assert (made / "conf" / "schemas" / f"{name}.json").read_bytes() == schema.read_bytes()


DDL = """\
CREATE SCHEMA ${catalog}.shop;
CREATE TABLE ${catalog}.shop.orders (id BIGINT NOT NULL, total DOUBLE COMMENT 'with taxes') USING delta;
ALTER TABLE ${catalog}.shop.orders ADD COLUMN note STRING;
"""


def test_the_wheel_alone_turns_scripts_into_models_findings_and_a_plan(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    project = tmp_path / "empty"
    project.mkdir()

    def run(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "delta_engine", *arguments],
            check=False,
            capture_output=True,
            text=True,
            cwd=project,
            env={"PYTHONPATH": str(tmp_path / "installed")},
        )
        return done.returncode, done.stdout + done.stderr

    assert run("init", ".")[0] == 0
    (project / "ddl").mkdir()
    (project / "ddl" / "1.sql").write_text(DDL)
    code, text = run("-e", "local", "import", "--from", "ddl", "--to", "conf/models", "--per", "table")
    assert (code, "next: `delta-engine -e local plan`" in text) == (0, True), text
    (project / "conf" / "lint.yml").write_text("preset: recommended\n")
    code, text = run("-e", "local", "lint")
    assert (code, "conf/models/shop/orders.yml:8: warning: " in text) == (2, True), text
    code, text = run("-e", "local", "plan", "--markdown", "--sarif", "refusals.sarif")
    assert (code, "`+ dev.shop.orders  [safe]`" in text) == (0, True), text
    assert json.loads((project / "refusals.sarif").read_text())["runs"][0]["results"] == []
    (project / "conf" / "models" / "shop" / "orders.yml").write_text("tables: [{catalog: dev}]\n")
    assert run("-e", "local", "validate", "--sarif", "refusals.sarif")[0] == 3
    assert json.loads((project / "refusals.sarif").read_text())["runs"][0]["results"]


def test_the_sdist_has_what_the_wheel_needs_and_gives_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    sdist = build("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    assert {path.name for path in source.iterdir()} == {
        *(".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"),
        *("bundle", "docs", "notebooks", "resources", "src"),
    }
    assert contents(build("wheel", source, tmp_path / "rebuilt")) == contents(wheel)


def test_every_pipeline_and_every_job_takes_the_wheel_that_make_wheel_writes() -> None:
    recipe = re.search(r"^wheel:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert recipe is not None
    assert "--outdir" not in recipe[1]  # `build` writes to dist/
    for path in JOBS:
        wheels = [text for _, text in texts(read(path)) if text.endswith(".whl")]
        assert wheels, path
        assert {*wheels} == {"../dist/*.whl"}
    for path in PIPELINES:
        workflow = read(path)
        engine = {**workflow.get("env", {}), **workflow.get("variables", {})}["ENGINE"]
        assert engine == f"./dist/{WHEEL}[databricks]"
    (artifact,) = read(ROOT / "databricks.yml")["artifacts"].values()
    assert "--wheel-dir dist " in artifact["build"]


def test_a_new_project_keeps_the_wheel_in_git_where_its_pipelines_look() -> None:
    skeleton = ROOT / "src" / "delta_engine" / "skeleton"
    (artifact,) = read(skeleton / "databricks.yml")["artifacts"].values()
    assert artifact["files"] == [{"source": "dist/*.whl"}]
    assert "dist/" not in (skeleton / "project.gitignore").read_text("utf-8").splitlines()
