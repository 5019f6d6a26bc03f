"""Making questions: how the replies of writers, solvers and reviewers are read."""
