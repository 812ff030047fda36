"""From forecasts and models to timed steps of one job."""
