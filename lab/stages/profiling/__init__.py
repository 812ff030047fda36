"""Deployments of a job at several scale-outs -> what Phoebe and TWRES decide by."""
