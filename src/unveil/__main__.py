"""`python -m unveil` is `unveil`."""

from unveil.cli import main

main()
