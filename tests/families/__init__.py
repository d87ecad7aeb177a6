"""What each family accepts and rejects, transcribed by hand from the specification."""

import pytest

# Before anybody imports it: its assertions are to be told as those of test files are.
pytest.register_assert_rewrite(f"{__name__}.cases")
