"""DS2's arithmetic: true rates of operators, and what a job graph needs for given source rates.

Source: Kalavri et al., "Three steps is all you need: fast, accurate, automatic scaling decisions for distributed
streaming dataflows", OSDI 2018 [DS2].
"""

from models.topology.edges import Edge, complete_ratios, learn_edge_ratios, measure_edge_rates, measure_edge_ratios
from models.topology.scaling import required_rates, source_capacity

__all__ = [
    "Edge",
    "complete_ratios",
    "learn_edge_ratios",
    "measure_edge_rates",
    "measure_edge_ratios",
    "required_rates",
    "source_capacity",
]
