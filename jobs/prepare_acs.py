"""spark-submit jobs/prepare_acs.py --input FILE... --task TASK --output DIR [--train N] [--seed N]"""

import typer

from mcspark.cli import prepare_acs

if __name__ == "__main__":
    typer.run(prepare_acs)
