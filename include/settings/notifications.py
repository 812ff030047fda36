"""Where messages about faults come from: an Airflow connection with a webhook, and the page that they link to."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import AfterValidator, Field

from include.settings.connection import check_http_url
from include.settings.section import Section, Text

_check_page = partial(check_http_url, write="write https://airflow.example.org/tidewise, say")


class Notifications(Section):
    """Messages to a webhook, one for each fault and hour; none while Airflow has no such connection."""

    connection_id: Text = Field("tidewise_webhook", description="Airflow connection of the webhook")
    page_url: Annotated[str, AfterValidator(_check_page)] | None = Field(
        None, description="address of the page, for links; unset: Airflow's with /tidewise"
    )
