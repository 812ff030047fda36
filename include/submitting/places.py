"""What a driver on another machine cannot reach is refused before anything is submitted."""

from __future__ import annotations

from include.settings import Settings, s3_keys
from include.submitting.refusal import SubmitError


def check_places(settings: Settings) -> None:
    """Check that a driver which has none of this machine's folders can read and write every path.

    Raises:
        SubmitError: a path is a folder of this machine.
    """
    places = {f"paths.{name}": str(value) for name, value in settings.paths.model_dump(exclude={"group"}).items()}
    if not settings.mlflow.artifact_root.startswith("mlflow-artifacts:"):  # of the server
        places["mlflow.artifact_root"] = settings.mlflow.artifact_root
    remote = s3_keys(settings)
    local = [f"{key} = {value}" for key, value in places.items() if key not in remote]
    tracking = settings.mlflow.tracking_uri
    if ":" not in tracking or tracking.startswith(("sqlite", "file")):
        local.append(f"mlflow.tracking_uri = {tracking}")
    if local:
        raise SubmitError(
            f"the driver runs on another machine, which does not see {', '.join(local)}: write s3a://bucket/folder for "
            "paths, s3://bucket/folder for mlflow.artifact_root, and a server or database for mlflow.tracking_uri"
        )
