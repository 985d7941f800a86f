"""`python -m headshare` runs the program; processes that torchrun started run it together."""

import sys

from ._group import is_launched

if is_launched():
    from ._group import main as run_together

    sys.exit(run_together(sys.argv[1:]))

from ._program import main  # noqa: E402

sys.exit(main())
