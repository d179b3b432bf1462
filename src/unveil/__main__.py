"""`python -m unveil` is `unveil`."""

from unveil.cli.main import main

main()
