"""Every constant, complexity measure and bound of a class, as printed and corrected."""
