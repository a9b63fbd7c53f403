"""`python -m sqlext` is the command `sqlext`."""

from sqlext.cli import main

main()
