"""Check of who can write what the controller obeys: holds, and answers to steps."""

from __future__ import annotations

import grp
import stat
from pathlib import Path

from cli.doctor.findings import Finding, error, ok, warning
from include.control.approvals import FOLDER as APPROVALS
from include.control.approvals import ApprovalStore
from include.control.holds import FOLDER as HOLDS
from include.control.small_objects import StoreUnreadableError
from include.object_store import local_folder
from include.settings import Settings, SettingsError, settings_file
from include.settings.file_owner import check_owner, login_of

PART, CHECK = "lake", "who may approve"


def check_control_folder(settings: Settings) -> list[Finding]:
    """Return who can write the folders of holds and answers: whoever can may approve in anybody's name."""
    return [*list_writers(settings), *_check_objects(settings), *_check_settings_file(settings)]


def _check_settings_file(settings: Settings) -> list[Finding]:
    try:
        check_owner(settings_file(), settings.roles)
    except SettingsError as problem:
        return [
            error("settings", "who may change limits", f"{problem}; the controller sends nothing", "see roles.limits")
        ]
    return []


def _check_objects(settings: Settings) -> list[Finding]:
    """Return what lies among the answers and is none: while it does no yes counts, since it may be a no."""
    folder = local_folder(settings.paths.lake)
    if folder is not None and not Path(folder).is_dir():
        return []  # nobody has answered anything yet
    try:
        unread = ApprovalStore(settings.paths.lake).find_unreadable()
    except StoreUnreadableError as problem:
        return [warning(PART, CHECK, f"the answers cannot be read, so no step is approved: {problem}", "see above")]
    if not unread:
        return []
    reported = f"{len(unread)} objects in {APPROVALS} are no answer that could be read, so no yes counts: {unread[0]}"
    return [warning(PART, CHECK, reported, f"remove them from {settings.paths.lake}/{APPROVALS}")]


def list_writers(settings: Settings) -> list[Finding]:
    """Return who can write each of the folders that are there."""
    folder = local_folder(settings.paths.lake)
    if folder is None:
        reported = (
            f"whoever may write {settings.paths.lake}/_control in the object store may approve steps and release holds"
        )
        return [ok(PART, CHECK, reported)]
    lake = Path(folder)
    places = [lake, lake / "_control", lake / APPROVALS, lake / HOLDS]
    return [_check_place(place) for place in places if place.is_dir()]


def _check_place(place: Path) -> Finding:
    about = place.stat()
    mode = stat.filemode(about.st_mode)
    owner, group = login_of(about.st_uid), _group_of(about.st_gid)
    writers = [f"the user {owner}", *([f"the group {group}"] if about.st_mode & stat.S_IWGRP else [])]
    reported = f"{place} ({mode}, {owner}:{group}) can be written by {' and '.join(writers)}"
    if about.st_mode & stat.S_IWOTH:
        remedy = f"chmod o-w {place}: whoever can write there can approve steps and release holds"
        return warning(
            PART, CHECK, f"{place} ({mode}, {owner}:{group}) can be written by everyone on this machine", remedy
        )
    return ok(PART, CHECK, f"{reported}: they may approve steps and release holds")


def _group_of(group_id: int) -> str:
    try:
        return grp.getgrgid(group_id).gr_name
    except KeyError:
        return str(group_id)
