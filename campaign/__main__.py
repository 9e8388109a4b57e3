"""`python -m campaign` is `campaign`."""

import sys

from campaign.cli import main

sys.exit(main())
