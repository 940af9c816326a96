"""What `scripts/setup.sh` says of the packages that it fetches, with a Python and a Java that only answer."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PYTHON = """\
#!/bin/sh
case "$1 $2" in
    "-c "*_base_executable*) echo "$0"; echo 3.12 ;;
    "-c "*) ;;
    "-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    "-m pip")
        echo "Collecting one==1"
        if [ -e fail ]; then echo "no space left"; exit 1; fi ;;
    "-m delta_engine.backends.local_jars") ;;
    *) exit 1 ;;
esac
"""
JAVA = "#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    for name in ("scripts/setup.sh", "pyproject.toml", "requirements/build.txt", "requirements/dev.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    for name, text in (("python", PYTHON), ("jdk/bin/java", JAVA)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return folder


def set_up(checkout: Path) -> subprocess.CompletedProcess[str]:
    beside = checkout.parent
    variables = {
        "PYTHON": str(beside / "python"),
        "JAVA_HOME": str(beside / "jdk"),
        "XDG_CACHE_HOME": str(beside / "cache"),
    }
    return subprocess.run(
        ["sh", "scripts/setup.sh"],
        cwd=checkout,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_says_beforehand_what_it_fetches_and_then_each_step(checkout: Path) -> None:
    done = set_up(checkout)
    assert (done.returncode, done.stderr) == (0, "")
    before, *steps = done.stdout.split("setup: step ")
    assert f"into {checkout}/.venv" in before
    assert re.search(
        r"about \d+ MB of Python packages, .*\n  about 91 MiB of Delta's jars into .*/cache/", before
    )
    assert re.search(r"takes about \d to \d minutes", before)
    assert [step.split(": ")[0] for step in steps] == ["1 of 4", "2 of 4", "3 of 4", "4 of 4"]
    assert all(re.search(r"\n  done in \d+ s\n", step) for step in steps)
    assert "\r" not in done.stdout
    again = set_up(checkout)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


def test_it_does_not_speak_of_jars_that_are_there(checkout: Path) -> None:
    (checkout.parent / "cache" / "delta-engine").mkdir(parents=True)
    assert "MiB of Delta's jars" not in set_up(checkout).stdout


def test_a_failed_step_shows_what_pip_said_and_is_made_again(checkout: Path) -> None:
    (checkout / "fail").touch()
    done = set_up(checkout)
    assert done.returncode == 1
    assert "no space left\nsetup: step 1 failed: " in done.stderr
    assert not (checkout / ".venv" / "ready").exists()
    (checkout / "fail").unlink()
    assert set_up(checkout).returncode == 0
