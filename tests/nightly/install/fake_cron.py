"""A `crontab` program that keeps its table in a file, as cron's does."""

import os
from dataclasses import dataclass
from pathlib import Path

_PROGRAM = """#!/bin/sh
# Speaks as Debian's does.
if [ -e "{folder}/broken" ]; then cat "{folder}/table"; cat "{folder}/broken" >&2; exit 1; fi
case "$1" in
-l)
  if [ ! -e "{folder}/table" ]; then echo "no crontab for me" >&2; exit 1; fi
  cat "{folder}/table" ;;
-)
  if [ -e "{folder}/refuses" ]; then cat > /dev/null; echo "bad minute" >&2; exit 1; fi
  if [ -e "{folder}/forgets" ]; then cat > /dev/null; exit 0; fi
  echo written >> "{folder}/log"
  cat > "{folder}/table" ;;
*) exit 2 ;;
esac
"""


@dataclass
class FakeCron:
    folder: Path

    @property
    def environ(self) -> dict[str, str]:
        return {"PATH": f"{self.folder}/bin:{os.defpath}"}

    @property
    def table(self) -> bytes:
        path = self.folder / "table"
        return path.read_bytes() if path.exists() else b""

    @table.setter
    def table(self, content: bytes) -> None:
        (self.folder / "table").write_bytes(content)

    @property
    def writes(self) -> int:
        log = self.folder / "log"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def is_broken(self, complaint: str) -> None:
        (self.folder / "broken").write_text(complaint)

    def refuses(self) -> None:
        (self.folder / "refuses").touch()

    def forgets(self) -> None:
        (self.folder / "forgets").touch()


def fake_cron(folder: Path) -> FakeCron:
    """Put one into `folder`; its `environ` finds it."""
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "crontab"
    program.write_text(_PROGRAM.replace("{folder}", str(folder)))
    program.chmod(0o755)
    return FakeCron(folder)
