"""`python -m benchmarks SUITE`."""

from benchmarks.cli import app

if __name__ == "__main__":
    app(prog_name="python -m benchmarks")
