"""How cost grows: with states, members, horizon and rollouts, in time and in memory, and where that ends."""
