"""spark-submit jobs/audit.py --config FILE [--set KEY=VALUE …]"""

import typer

from mcspark.cli import audit

if __name__ == "__main__":
    typer.run(audit)
