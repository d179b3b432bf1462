"""Every command once, in the process from which commands are forked: what they import and prepare is there already."""

import contextlib
import os
import sys
import tempfile
from pathlib import Path

import torch

import unveil.cli.main
import unveil.own.continue_run
import unveil.pages.review.log

from .scenes import arrays, digits, images

torch.set_num_threads(1)
with (
    tempfile.TemporaryDirectory() as scratch,
    Path(os.devnull).open("w") as nowhere,
    contextlib.redirect_stdout(nowhere),
    contextlib.redirect_stderr(nowhere),
):
    for command in (digits(), images(Path(scratch)), arrays(Path(scratch))):
        folder = Path(scratch) / command.name
        os.environ["UNVEIL_STORE"] = str(folder / "store")
        sys.argv = ["unveil", *command.arguments, "--out", str(folder / "run")]
        with contextlib.suppress(SystemExit):
            unveil.cli.main.main()
