"""``python -m wellsep`` is the command ``wellsep``."""

from wellsep.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
