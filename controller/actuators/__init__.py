"""What asks a cluster about its jobs and sends requests: over the REST API, the Kubernetes operator, or not at all."""
