"""`python -m lqgap` is `lqgap`."""

from lqgap.cli.main import main

if __name__ == "__main__":
    main()
