"""What the repair is held to."""

import unittest

from total import total


class Totals(unittest.TestCase):
    def test_all_count(self):
        self.assertEqual(total([1, 2, 3]), 6)
