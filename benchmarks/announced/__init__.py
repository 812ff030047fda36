"""ContTune's schedule with announced rates: the planner beside ContTune and DS2, all from an empty history."""
