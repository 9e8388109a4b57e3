"""`python -m campaign` is `campaign`."""

from campaign.cli import entry

if __name__ == "__main__":
    entry()
