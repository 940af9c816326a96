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
        if [ -e slow ]; then echo $$ >pid; exec sleep 600; fi
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


def started(checkout: Path) -> subprocess.Popen[str]:
    beside = checkout.parent
    variables = {
        "PYTHON": str(beside / "python"),
        "JAVA_HOME": str(beside / "jdk"),
        "XDG_CACHE_HOME": str(beside / "cache"),
    }
    return subprocess.Popen(
        ["sh", "scripts/setup.sh"],
        cwd=checkout,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def set_up(checkout: Path) -> subprocess.CompletedProcess[str]:
    with started(checkout) as process:
        stdout, stderr = process.communicate(timeout=60)
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def test_it_says_beforehand_what_it_fetches_and_then_each_step(checkout: Path) -> None:
    done = set_up(checkout)
    assert (done.returncode, done.stderr) == (0, "")
    before, *steps = done.stdout.split("setup: step ")
    assert f"into {checkout}/.venv" in before
    assert re.search(
        r"about \d+ MB of Python packages into .*\n  about 91 MiB of Delta's jars into .*/cache/", before
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


def test_a_stopped_setup_stops_pip(checkout: Path) -> None:
    (checkout / "slow").touch()
    os.mkfifo(checkout / "pid")
    with started(checkout) as process:
        assert process.stdout is not None
        while "step 1 of 4" not in process.stdout.readline():
            pass
        with (checkout / "pid").open() as pipe:  # waits for the step to write to it
            pip = int(pipe.read())
        process.terminate()
        process.communicate(timeout=60)
        assert process.returncode == 143
    assert not is_running(pip)
    assert not (checkout / ".venv" / "ready").exists()


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
