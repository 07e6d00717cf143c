"""What other libraries say of lqgap, and what they reach; `pip install .[peers]` first."""
