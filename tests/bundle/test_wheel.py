"""The wheel: it holds the engine, the skeleton with the bundle, and nothing else."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_wheel(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("delta_engine-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path / "installed")
    assert {name.split("/")[0].split("-")[0] for name in names} == {"delta_engine"}
    assert "delta_engine/py.typed" in names

    made = tmp_path / "made"
    subprocess.run(
        [sys.executable, "-m", "delta_engine.cli.app", "init", str(made)],
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
    ):
        schema = ROOT / "docs" / "schemas" / f"{published}.json"
        assert (made / "conf" / "schemas" / f"{name}.json").read_bytes() == schema.read_bytes()
