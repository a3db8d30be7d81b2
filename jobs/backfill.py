"""spark-submit jobs/backfill.py --config FILE --from DAY --to DAY [--job score] [--set KEY=VALUE …]"""

import typer

from mcspark.cli import backfill

if __name__ == "__main__":
    typer.run(backfill)
