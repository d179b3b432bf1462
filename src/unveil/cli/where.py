"""Options of commands that work on shards."""

from dataclasses import dataclass
from typing import Any, Literal

from cyclopts import Parameter

from unveil.errors import UnveilError


@Parameter(name="*")
@dataclass(frozen=True)
class Where:
    """Where shards are worked on.

    Parameters
    ----------
    engine
        local: in processes on this machine. ray: on a Ray cluster (pip install 'unveil[ray]').
    workers
        Processes, or actors of Ray, that work on shards at the same time.
    address
        The address of a running Ray cluster, such as ray://head:10001 or auto. Default: one is started here.
    """

    engine: Literal["local", "ray"] = "local"
    workers: int = 1
    address: str | None = None

    def check(self) -> None:
        """Raise an error where the options contradict each other."""
        if self.workers < 1:
            raise UnveilError(f"--workers is {self.workers}: give 1 or more")
        if self.address is not None and self.engine != "ray":
            raise UnveilError("--address is that of a Ray cluster: add --engine ray")

    def options(self) -> dict[str, Any]:
        """As `run_job` takes them."""
        return dict(vars(self))


HERE = Where()
