"""The shipped bundle has no problems, and every check finds its problem in a broken copy."""

import shutil
from pathlib import Path

import pytest
from ruamel.yaml.constructor import DuplicateKeyError

from delta_engine.cli.project_files import Existing, init_project
from delta_engine.errors import ConfigError
from delta_engine.orchestrate.project import load_project
from tests.bundle.bundle_checks import problems
from tests.bundle.bundle_files import USER, deployed, load, read, texts

ROOT = Path(__file__).parents[2]
PARTS = ("databricks.yml", "bundle", "resources", "notebooks", "conf")
BROKEN = [
    (file, case["replace"], case["by"], case["problem"].replace("USER", USER))
    for file, cases in read(Path(__file__).with_name("broken_copies.yml")).items()
    for case in cases
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, tmp_path / part)
        else:
            shutil.copy2(source, tmp_path / part)
    return tmp_path


def test_the_shipped_bundle_has_no_problems() -> None:
    assert problems(ROOT) == []


def test_the_targets() -> None:
    bundle = load(ROOT)
    assert list(bundle["targets"]) == ["dev", "stage", "prod"]
    for target in bundle["targets"]:
        filled = deployed(bundle, target)
        jobs = filled["resources"]["jobs"]
        tasks = [task["task_key"] for task in jobs["delta_engine_sync"]["tasks"]]
        assert tasks == ["sync", "sync_succeeded", "is_report_due", "drift_report"]
        parameters = {p["name"]: p["default"] for p in jobs["delta_engine_sync"]["parameters"]}
        assert parameters["environment"] == target
        assert parameters["conf_dir"] == f"{filled['workspace']['root_path']}/files/conf"


@pytest.mark.parametrize(
    ("target", "sync", "drift_report"),
    [("dev", "PAUSED", "PAUSED"), ("stage", "PAUSED", "UNPAUSED"), ("prod", "PAUSED", "UNPAUSED")],
)
def test_jobs_start_by_themselves_where_they_should(target: str, sync: str, drift_report: str) -> None:
    jobs = deployed(load(ROOT), target)["resources"]["jobs"]
    assert jobs["delta_engine_sync"]["schedule"]["pause_status"] == sync
    assert jobs["drift_report"]["schedule"]["pause_status"] == drift_report


def test_a_target_may_start_the_sync_by_a_variable(copy: Path) -> None:
    path = copy / "databricks.yml"
    text = path.read_text("utf-8")
    path.write_text(
        text.replace("state_catalog: prod", "state_catalog: prod\n      sync_pause_status: UNPAUSED"), "utf-8"
    )
    jobs = deployed(load(copy), "prod")["resources"]["jobs"]
    assert jobs["delta_engine_sync"]["schedule"]["pause_status"] == "UNPAUSED"
    assert problems(copy) == []


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Return a project that `init` made."""
    init_project(tmp_path / "made", Existing.REFUSE)
    return tmp_path / "made"


@pytest.mark.parametrize("project", ["copy", "made"])
@pytest.mark.parametrize("target", ["dev", "stage", "prod"])
def test_the_catalog_is_changed_in_both_files_or_refused(
    request: pytest.FixtureRequest, project: str, target: str
) -> None:
    folder: Path = request.getfixturevalue(project)
    conf, bundle = folder / "conf" / f"{target}.yml", folder / "databricks.yml"
    edited = {
        path: path.read_text("utf-8").replace(f"catalog: {target}", "catalog: retail")
        for path in (conf, bundle)
    }
    for path, text in edited.items():
        before = path.read_text("utf-8")
        path.write_text(text, "utf-8")
        with pytest.raises(
            ConfigError, match=rf"{conf}:\d+: .*{bundle}:\d+.* the same catalog in both files"
        ):
            load_project(folder / "conf", target)
        path.write_text(before, "utf-8")
    for path, text in edited.items():
        path.write_text(text, "utf-8")
    load_project(folder / "conf", target)


@pytest.mark.parametrize("target", ["dev", "stage", "prod"])
def test_a_new_project_deploys_without_addresses(made: Path, target: str) -> None:
    jobs = deployed(load(made), target)["resources"]["jobs"].values()
    assert [problem for problem in problems(made) if "bundle.uuid" not in problem] == []
    assert [text for job in jobs for _, text in texts(job.get("email_notifications", {}))] == []


@pytest.mark.parametrize(("file", "replace", "by", "problem"), BROKEN)
def test_a_broken_copy_is_found_out(copy: Path, file: str, replace: str, by: str, problem: str) -> None:
    path = copy / file
    text = path.read_text("utf-8")
    assert replace in text
    path.write_text(text.replace(replace, by), "utf-8")
    all_problems = problems(copy)
    exact = not problem.endswith(": ")
    assert any(line == problem if exact else line.startswith(problem) for line in all_problems), all_problems


def test_a_key_that_is_there_twice_is_refused(copy: Path) -> None:
    with (copy / "bundle" / "variables.yml").open("a", encoding="utf-8") as file:
        file.write("  admin_group: {default: x}\n")
    with pytest.raises(DuplicateKeyError):
        problems(copy)


def test_a_job_may_refer_to_another(copy: Path) -> None:
    path = copy / "resources" / "delta_engine_sync.job.yml"
    path.write_text(
        path.read_text("utf-8").replace("Plans", "Before ${resources.jobs.drift_report.id}, plans"), "utf-8"
    )
    assert problems(copy) == []


def test_the_wheel_leaves_spark_to_the_runtime() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    dependencies = text.split("dependencies = [")[1].split("]")[0]
    assert "sqlglot" in dependencies
    assert "spark" not in dependencies
