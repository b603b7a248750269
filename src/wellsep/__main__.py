"""``python -m wellsep`` is the command ``wellsep``."""

from wellsep.cli.main import main

raise SystemExit(main())
