"""OptScaler: a forecast, an estimator of utilisation tuned by feedback, and model predictive control over both.

Source: Zou et al., "OptScaler: A Collaborative Framework for Robust Autoscaling in the Cloud", PVLDB 17(12), 2024
(arXiv 2311.12864).  Of its text the words, Algorithm 1 and the values of Section 5 were at hand; Eq. 1 to 14 were not
in it and follow from what Sections 4.1 to 4.3 say of them.
"""
