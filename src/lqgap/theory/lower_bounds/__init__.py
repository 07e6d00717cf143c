"""Numbers that no policy can beat."""
