"""The papers' own experiments, rerun in simulation beside their published figures."""
