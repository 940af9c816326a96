"""A repository with a shared base and a project for each of three teams, in the current folder."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.projects.commandline import CommandLine, Result

BASE = """\
environment: local
backend: {type: oss}
variables: {catalog: dev}
models: {yaml: ["models/*.yml"]}
policy: {create_schemas: true}
"""

MODEL = """\
tables:
  - catalog: ${catalog}
    schema: silver
    name: TEAM_orders
    columns: [{name: id, type: bigint}]
"""


GIT = ("git", "-c", "user.name=jo", "-c", "user.email=jo@example.com", "-c", "protocol.file.allow=always")


def run_git(folder: Path, *arguments: str) -> None:
    subprocess.run([*GIT, *arguments], cwd=folder, check=True, capture_output=True)


class Repository:
    """Runs commands in the repository, and git."""

    def __init__(self, folder: Path, delta_engine: CommandLine) -> None:
        self.folder, self._delta_engine = folder, delta_engine
        self.write("base/local.yml", BASE)
        for team in ("a", "b", "c"):
            owns = f'owns: ["silver.team_{team}_*"]'
            self.write(f"teams/{team}/conf/local.yml", f"extends: ../../../base/local.yml\n{owns}\n")
            self.write(f"teams/{team}/models/orders.yml", MODEL.replace("TEAM", f"team_{team}"))

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def command(self, *arguments: str) -> Result:
        """Run a command, given in parts."""
        return self._delta_engine(*arguments)

    def run(self, command: str) -> Result:
        """Run a command."""
        return self._delta_engine(*command.split())

    def git(self, *arguments: str, folder: str = ".") -> None:
        """Run git in a folder of the repository."""
        run_git(self.folder / folder, *arguments)

    def commit(self, folder: str = ".") -> None:
        """Commit everything, in a new git repository if there is none."""
        if not (self.folder / folder / ".git").exists():
            self.git("init", "-q", "-b", "main", folder=folder)
        self.git("add", ".", folder=folder)
        self.git("commit", "-qm", "one", folder=folder)

    def changed(self, since: str = "main") -> list[str]:
        """Return the projects that changed since a commit."""
        done = self._delta_engine("-e", "local", "projects", "list", "--changed-since", since, "--json")
        assert done.code == 0, done.stderr
        projects: list[str] = json.loads(done.stdout)
        return projects
