"""A lower bound over ranges of parameters: van Trees' inequality, and one linear-quadratic problem per plant."""
