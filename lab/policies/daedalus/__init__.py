"""Daedalus: capacity per scale-out by regression, a forecast of minutes, and recovery within a time.

Source: Pfister et al., "Daedalus: Self-Adaptive Horizontal Autoscaling for Resource Efficiency of Distributed Stream
Processing Systems", ICPE 2024 (arXiv 2403.02093).  At hand were its abstract and the beginning of a review
(themoonlight.io), which names what is monitored, the MAPE-K loop and the regression.  Recovery within 600 s and a
forecast of 15 minutes are known of it at second hand; what is marked *Deviation* in this package was chosen here.
"""
