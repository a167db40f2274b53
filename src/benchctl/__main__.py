"""`python -m benchctl`."""

from benchctl.cli import main

if __name__ == "__main__":
    main()
