"""Names that are the user's own: of clusters, jobs and blackout windows."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from include.settings.section import NAME


def check_cluster_name(name: str) -> str:
    """Refuse a name that cannot be a folder of the raw files.

    Raises:
        ValueError: with what a name is made of.
    """
    if not re.fullmatch(NAME, name) or len(name) > 200:
        raise ValueError(
            f"{name!r} cannot name a cluster, whose raw files are in the folder cluster=<name>; "
            "write letters, digits, dots, dashes and underscores, a letter or digit first"
        )
    return name


def check_job_key(key: str, *, cluster_alone: bool = False) -> str:
    """Refuse what is no ``cluster/job``, nor a cluster's name where that will do.

    Raises:
        ValueError: with what to write.
    """
    cluster, slash, job = key.partition("/")
    if slash and job.strip() and job.isprintable():
        check_cluster_name(cluster)
    elif slash or not cluster_alone:
        wanted = '"cluster" or "cluster/job"' if cluster_alone else '"cluster/job"'
        raise ValueError(
            f'{key!r} must be {wanted}; write "{cluster if re.fullmatch(NAME, cluster) else "prod"}/orders", say'
        )
    else:
        check_cluster_name(cluster)
    return key


ClusterName = Annotated[str, AfterValidator(check_cluster_name)]
JobKey = Annotated[str, AfterValidator(check_job_key)]
ClusterOrJob = Annotated[str, AfterValidator(lambda key: check_job_key(key, cluster_alone=True))]
BlackoutName = Annotated[str, Field(pattern=rf"^{NAME}$", max_length=200)]
