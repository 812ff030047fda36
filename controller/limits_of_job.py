"""STAND-IN."""
from models.control.limits import Limits
from models.control.state import Mode
class LimitsSnapshot:
    def limits_of(self, cluster, job, vertex_ids): return Limits(mode=Mode.DRY_RUN)
class LimitsReader:
    def read(self): return LimitsSnapshot()
    def read_limits(self, cluster, job, vertex_ids): return Limits(mode=Mode.DRY_RUN)
def open_limits(settings, clock): return LimitsReader()
