"""The tests of a folder by words of their names, for the runners of beds."""

import unittest


def _each(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from _each(item)
        else:
            yield item


def find_tests(folder, words):
    """Those of FOLDER/test_*.py whose name contains one of the words; without a word, all. Says so where there is none."""
    every = _each(unittest.defaultTestLoader.discover(str(folder), pattern="test_*.py", top_level_dir=str(folder)))
    found = [test for test in every if not words or any(word in test.id() for word in words)]
    if not found:
        print(f"no test has {' or '.join(words)} in its name")
    return found
