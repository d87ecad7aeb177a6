"""What each family accepts; other tests take their facts from here, too."""

import pytest

# Before anybody imports it: its assertions are to be told as those of test files are.
pytest.register_assert_rewrite(f"{__name__}.cases")
