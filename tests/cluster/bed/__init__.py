"""The test bed: a real control plane, fake nodes, and Heddle's daemons as local processes.

Standard library only; Python of the distribution (3.11).
"""

from . import nearby  # noqa: F401  first, for what it does
from .clusters import Cluster, Node, Switch, h100, nvl72
from .control_plane import REPOSITORY, ControlPlane
from .heddle import Heddle
from .nodes import Nodes
from .proxy import HoldingProxy
from .rest import ApiError, Rest, path
from .waiting import TimedOut, wait_for

__all__ = ["ApiError", "Cluster", "ControlPlane", "Heddle", "HoldingProxy", "Node", "Nodes", "REPOSITORY", "Rest",
           "Switch", "TimedOut", "h100", "nvl72", "path", "wait_for"]
