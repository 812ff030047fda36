"""What a job should run at from now on, by its plan, the reactive controller or a policy that reacts."""
