"""Dragster: online optimisation finds the bottlenecks, a Gaussian process per operator finds their parallelism.

Source: Liu, Xu and Lau, "Online Resource Optimization for Elastic Stream Processing with Regret Guarantee", ICPP 2022.
No code of it is public; equation numbers are those of the paper.

| symbol | name here | meaning | unit |
| --- | --- | --- | --- |
| e_j^i | ``sent`` | throughput from operator i to j | records/s |
| h_ij | throughput function | what i would send to j for what it receives | records/s |
| y_i, c_i | ``capacity_per_s`` | service capacity and its observation, output units | records/s |
| x_i | ``tasks`` | parallelism | 1 |
| l_i | ``excess`` | what i should send beyond its capacity | normalised |
| lambda_i | ``multipliers`` | price of that excess | 1 |
"""
