"""What learners without a class share: they identify the plant while they control it."""
