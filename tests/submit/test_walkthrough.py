"""The commands of docs/walkthrough.md, as they stand there, and the numbers that it tells."""

from __future__ import annotations

import json
import re
import subprocess

import pandas as pd
import pytest
from harness import ROOT, environment

PAGE = (ROOT / "docs/walkthrough.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
NEAR = 0.002
"""The page's numbers are those of one version; another one may grow other trees, as good."""

KNOWN = ["04", "12", "36", "39"]
SPARK = """\
spark.driver.memory 4g
spark.ui.enabled false
spark.ui.showConsoleProgress false
"""


def test_the_page_has_commands_and_numbers():
    assert [line.split()[1] for line in COMMANDS if line.startswith("spark-submit")] == [
        "jobs/prepare_acs.py", "jobs/calibrate.py", "jobs/score.py", *["jobs/audit.py"] * 3,
    ]  # fmt: skip


@pytest.fixture(scope="module")
def done(shared_data, tmp_path_factory):
    """The folder of the runs, and the summary of each."""
    folder = tmp_path_factory.mktemp("walkthrough")
    project, conf = folder / "project", folder / "conf"
    for path in (project, conf):
        path.mkdir()
    (folder / "shared").symlink_to(shared_data.resolve())
    for name in ("jobs", "conf"):
        (project / name).symlink_to(ROOT / name)
    (conf / "spark-defaults.conf").write_text(SPARK)
    (conf / "log4j2.properties").write_text((ROOT / "conf/spark/log4j2.properties").read_text())
    summaries = []
    for command in COMMANDS:
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command], cwd=project, capture_output=True, text=True,
            timeout=900, check=False,
            env=environment({"SPARK_CONF_DIR": str(conf), "SPARK_SUBMIT_OPTS": None}),
        )  # fmt: skip
        assert ran.returncode == 0, f"{command}\n{ran.stdout[-2000:]}\n{ran.stderr[-3000:]}"
        if command.startswith("spark-submit"):
            summaries.append(json.loads(ran.stdout.splitlines()[-1]))
    return project / "mcspark-run/states", summaries


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_what_was_learned_in_four_states_holds_in_the_others(done):
    folder, (prepared, calibrated, scored, *audits) = done
    assert f"{prepared['rows']['scored']:,}" in PAGE
    assert scored["rows"]["scored"] == prepared["rows"]["scored"]
    assert calibrated["rows"]["scored"] < scored["rows"]["scored"] / 3
    first, last = (calibrated["metrics"][name] for name in ("before", "after"))
    assert told("MC error at 20 levels") == pytest.approx(
        [level["mc_error"] for level in (first["by_level"]["20"], last["by_level"]["20"])]
        + [last["by_level"]["20"]["noise_floor"]],
        abs=NEAR,
    )
    assert told("loss") == pytest.approx([first["loss"], last["loss"]], abs=NEAR)
    before, after = (smece(folder / f"{name}_metrics") for name in ("before", "after"))
    assert len(before) == len(after) == 46
    known = before.index.str.removeprefix("STATE=").isin(KNOWN)
    for name, part in (("the four states", known), ("the 42 others", ~known)):
        seen = [before[part].mean(), after[part].mean(), before[part].max(), after[part].max()]
        assert told(name) == pytest.approx(seen, abs=NEAR)
        assert seen[1] < 0.75 * seen[0]
    assert (after < before).sum() >= 36
    drift = audits[-1]["drift"]
    assert drift["against"] == calibrated["run_id"]
    assert (drift["share_group"], drift["mc_error"]["20"]["worse"]) == ("RAC1P=1", True)
    assert drift["mc_error"]["20"]["now"] < 0.5 * first["by_level"]["20"]["mc_error"]
    assert "Drift since an earlier run" in (folder / "everyone.html").read_text(encoding="utf-8")


def told(row: str) -> list[float]:
    """The numbers of a row of a table of the page."""
    line = re.search(rf"^\| {row} \|(.*)\|$", PAGE, re.MULTILINE)
    assert line, row
    return [float(cell) for cell in line[1].split("|") if cell.strip()]


def smece(folder) -> pd.Series:
    metrics = pd.read_parquet(folder)
    return metrics[metrics["metric"] == "smece"].dropna(subset="group").set_index("group")["value"]
