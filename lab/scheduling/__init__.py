"""From forecasts and models to timed steps of one job, as the planner, need_vector and the clairvoyant decide."""
