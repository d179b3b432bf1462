"""The command line. Everything heavy is imported inside the command that needs it, so that help answers at once."""

import sys

from cyclopts import App, CycloptsError

from unveil import __version__
from unveil.cli import data, experiments, look, own
from unveil.errors import UnveilError

app = App(
    name="unveil",
    help="Find the classes that nobody has named yet.",
    version=__version__,
    suppress_keyboard_interrupt=False,
)
for command in (*experiments.COMMANDS, *own.COMMANDS, *look.COMMANDS, data.app):
    app.command(command)


def main() -> None:
    """Entry point: errors for people are one line and exit code 2."""
    try:
        app(exit_on_error=False, print_error=False)
    except (UnveilError, CycloptsError, OSError) as error:
        print(f"unveil: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        how = " with --resume" if sys.argv[1:2] == ["run"] else ""
        print(f"unveil: stopped; run the same command{how} to go on", file=sys.stderr)
        sys.exit(130)
