"""A lower bound over the ranges of a family, by van Trees' inequality and one linear-quadratic problem per plant."""
