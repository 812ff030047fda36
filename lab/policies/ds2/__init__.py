"""DS2: true rates to the optimal parallelism of every operator in one step, and the manager that applies it.

Source: Kalavri et al., "Three steps is all you need: fast, accurate, automatic scaling decisions for distributed
streaming dataflows", OSDI 2018 [DS2], and the behaviour of its code (github.com/strymon-system/ds2).
"""
