"""One decision: a Markov decision process over slots, load and age of the backlog, solved at every evaluation."""
