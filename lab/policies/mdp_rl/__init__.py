"""Elasticity as a Markov decision process, centralised or one per operator, known or learnt.

Source: Russo Russo, "Towards Decentralized Auto-Scaling Policies for Data Stream Processing Applications", ZEUS 2018
(http://ceur-ws.org/Vol-2072/paper8.pdf).
"""
