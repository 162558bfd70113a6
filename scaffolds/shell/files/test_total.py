import unittest

from total import total


class Totals(unittest.TestCase):
    def test_prices_are_added_up(self):
        self.assertEqual(total([1, 2]), 3)
