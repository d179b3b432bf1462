"""The review of a run: log, actions, state, questions, suggestions, names. Needs no torch."""
