"""Keep the classes of a small job in an archive: short JVMs that begin with it need a third less time.

``python tests/submit/class_archive.py`` makes it in this environment; the tests use it where it is there.
Java leaves it aside if it does not fit the jars.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import pandas as pd
from harness import ARCHIVE, JAVA, submit
from small_tables import write_config, write_tables

from mcspark.acs.population import population_arrays


def main() -> int:
    ARCHIVE.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_tables(place / "in", pd.DataFrame(population_arrays(2000, seed=5)))
        made = place / ARCHIVE.name
        java = {"SPARK_SUBMIT_OPTS": f"{JAVA} -XX:ArchiveClassesAtExit={made} -Xlog:disable"}
        config = write_config(place, place / "in")
        done = submit("jobs/calibrate.py", "--config", config, env=java, timeout=900)  # it fetches jars
        if made.is_file():  # not every Java can make one
            shutil.move(made, ARCHIVE)
    if done.exit_code:
        sys.stderr.write(done.stderr)
    return done.exit_code


if __name__ == "__main__":
    sys.exit(main())
