"""STAND-IN."""
from models.control.limits import Limits
from models.control.state import Mode
from include.settings import load_settings
class LimitsSnapshot:
    def limits_of(self, cluster, job, vertex_ids):
        s=load_settings(); return Limits(mode=Mode(s.mode_of(cluster, f"{cluster}/{job}")), slots_max=s.cluster(cluster).slots_max, cooldown_s=20.0)
class LimitsReader:
    def read(self): return LimitsSnapshot()
    def read_limits(self, cluster, job, vertex_ids): return LimitsSnapshot().limits_of(cluster, job, vertex_ids)
def open_limits(settings, clock): return LimitsReader()
