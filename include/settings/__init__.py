"""One settings tree for every stage: built-in defaults, then a TOML file, then environment variables.

The file is ``tidewise.toml`` in the working directory or the one named by ``TIDEWISE_SETTINGS``.  A variable such as
``TIDEWISE__PATHS__LAKE`` overrides ``lake`` in ``[paths]``.  What cannot be used is refused when the settings are
loaded; ``docs/settings.md`` has every key.
"""

from include.settings.advise import Advise
from include.settings.clusters import Cluster, Ingest
from include.settings.environment import PREFIX as ENV_PREFIX
from include.settings.events import Event
from include.settings.health import Health
from include.settings.learning import Forecast, Training
from include.settings.limits import Blackout, ClusterLimits, FleetLimits, JobLimits, Mode, OperatorLimits, Steps
from include.settings.loading import (
    PROJECT,
    SETTINGS_FILE_VARIABLE,
    check_settings,
    load_settings,
    require_named_file,
    settings_file,
)
from include.settings.people import ApprovalRules, Roles
from include.settings.planner import Capacity, Costs, Planner, Timing
from include.settings.profiling import Profiling
from include.settings.retention import Retention
from include.settings.stages import Apply, Backtest, Schedules
from include.settings.storage import Backup, Mlflow, Paths, Spark, Storage
from include.settings.tree import Settings, SettingsError, s3_keys

__all__ = [
    "ENV_PREFIX",
    "PROJECT",
    "SETTINGS_FILE_VARIABLE",
    "Advise",
    "Apply",
    "ApprovalRules",
    "Backtest",
    "Backup",
    "Blackout",
    "Capacity",
    "Cluster",
    "ClusterLimits",
    "Costs",
    "Event",
    "FleetLimits",
    "Forecast",
    "Health",
    "Ingest",
    "JobLimits",
    "Mlflow",
    "Mode",
    "OperatorLimits",
    "Paths",
    "Planner",
    "Profiling",
    "Retention",
    "Roles",
    "Schedules",
    "Settings",
    "SettingsError",
    "Spark",
    "Steps",
    "Storage",
    "Timing",
    "Training",
    "check_settings",
    "load_settings",
    "require_named_file",
    "s3_keys",
    "settings_file",
]
