"""spark-submit job.py JOB [OPTIONS]: the name of a job, then its options."""

from mcspark.cli.jobs import app

if __name__ == "__main__":
    app()
