"""What is certain of a policy, or of its deployment on a real plant."""
