"""What a job should run at from now on, by its plan, or by an evaluation of its policy."""
