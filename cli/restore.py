"""``tidewise restore``: puts a backup back where the settings say; everything is on hold until a person releases it."""

from __future__ import annotations

import argparse
import time

from cli.arguments import CommandParser, moment
from cli.backup import contents_table
from cli.command import add_out, command
from cli.out_lock import hold_paths
from cli.permission import read_login
from cli.restore_lake import check_contents, find_obstacles, restore
from cli.run_table import open_console
from controller.command import choose_clusters
from controller.leases.lease import LeaseLostError
from include.backup.backup_folder import open_folder
from include.backup.manifest import BackupError
from include.control.holds import EVERYTHING
from include.control.interventions import Intervention, UserAction, record_intervention
from include.place import place

AFTER = """restore: done, and everything is on hold. Next:
restore:   tidewise_hour ingests missed hours, `tidewise airflow backfill create` older ones; then a plan is made:
restore:   no step of a plan of the backup is sent
restore:   look at `tidewise status`, then `tidewise release --all`;
restore:   each job is left alone for apply.foreign_change_hold_h"""


def run(options: argparse.Namespace, _: float) -> None:
    """Check the backup, show it, and restore unless that is not asked for."""
    with hold_paths(options.out, "tidewise restore") as settings:
        backup = open_folder(str(options.source), settings)
        manifest = backup.read_newest(options.at)
        open_console().print(contents_table(manifest))
        print(f"restore: {check_contents(manifest, backup)} files are as they were written")
        obstacles = find_obstacles(settings, manifest)
        for one in obstacles:
            print(f"restore: is there already: {one}")
        if options.dry_run:
            print(f"restore: nothing was changed; it would go to {settings.paths.lake}")
            return
        if obstacles and not options.replace:
            raise BackupError("nothing was changed: --replace puts the backup in the place of these")
        by, clusters = read_login(), choose_clusters(settings, None)
        done = restore(settings, manifest, backup, clusters, by, clock=time.time)
        what = f"the backup of {manifest.made_at} from {options.source}"
        record_intervention(
            settings.paths.lake, Intervention(done.at_s, UserAction.RESTORE, EVERYTHING, by, detail=what)
        )
    if manifest.registry.missing:
        print(f"restore: models are NOT in it: {manifest.registry.missing}")
    print(AFTER)


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--from", dest="source", type=place, required=True, help="what `tidewise backup` had as --to")
    parser.add_argument("--at", type=moment, help="the newest backup up to this time; default: the newest")
    parser.add_argument("--dry-run", action="store_true", help="only check the backup and show what would be done")
    parser.add_argument("--replace", action="store_true", help="in the place of tables and models that are there")
    add_out(parser)


main = command("restore", __doc__, _add_arguments, run, errors=(BackupError, LeaseLostError, OSError))
