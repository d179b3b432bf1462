"""The command line. Everything heavy is imported inside the command that needs it, so that help answers at once."""

import os
import sys

from cyclopts import App, CycloptsError, Parameter

from unveil import __version__
from unveil.cli import cache, data, doctor, experiments, large, own, results
from unveil.errors import UnveilError

app = App(
    default_parameter=Parameter(negative=""),  # a flag has no --no-FLAG beside it
    name="unveil",
    help="Novel class discovery: find new classes in unlabeled data.",
    version=__version__,
    suppress_keyboard_interrupt=False,
)
groups = (experiments, own, large, results, doctor)
for command in (*(command for group in groups for command in group.COMMANDS), data.app, cache.app):
    app.command(command)
app.command(own.forecast, name="trust", show=False)  # its former name
app.register_install_completion_command(help="Install completion for your shell.")


def main() -> None:
    """Entry point: user errors are printed on one line and exit with code 2."""
    if "RANK" in os.environ:  # torch's DDP warns of what is meant to be so
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    try:
        app(sys.argv[1:], exit_on_error=False, print_error=False)
    except (UnveilError, CycloptsError, OSError) as error:
        print(f"unveil: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        how = " with --resume" if sys.argv[1:2] == ["run"] else ""
        print(f"unveil: stopped; run the same command{how} to continue", file=sys.stderr)
        sys.exit(130)
