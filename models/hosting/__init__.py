"""The one loop that hosts a policy, for the controller and for a replay."""
