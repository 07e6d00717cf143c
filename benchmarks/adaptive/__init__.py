"""Online algorithms: regret, coverage, speed."""
