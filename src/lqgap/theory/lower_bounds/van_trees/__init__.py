"""A lower bound over ranges: van Trees' inequality, and one linear-quadratic problem per plant."""
