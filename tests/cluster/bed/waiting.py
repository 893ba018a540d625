"""Bounded polling: the only way this package waits for anything."""

import time


class TimedOut(AssertionError):
    """Says what was being waited for, for how long, and what was seen last."""


def wait_for(predicate, what, timeout=30.0, failed=None):
    """Polls `predicate` until it returns something truthy, and returns that.

    A predicate may raise while the thing it looks at is not there yet; its last exception is reported like a last
    value. `failed` is asked too: when it returns a sentence, waiting on would be in vain and ends at once.
    """
    started = time.monotonic()
    pause = 0.01
    last = None
    while True:
        asked = time.monotonic()
        try:
            last = predicate()
            if last:
                return last
        except Exception as problem:  # Whatever it is, it is the last value seen.
            last = problem
        waited = time.monotonic() - started
        sentence = failed() if failed else None
        if sentence or waited >= timeout:
            reason = f"gave up ({sentence})" if sentence else "timed out"
            shown = f"{type(last).__name__}: {last}" if isinstance(last, Exception) else repr(last)
            raise TimedOut(f"{reason} after {waited:.1f} s waiting for {what}; last seen: {shown[:4000]}")
        # A look at ten thousand objects takes seconds of the very server that is waited for, so it rests for some, too.
        took = time.monotonic() - asked
        rest = min(3 * took, 10) if took > 1 else pause
        time.sleep(min(rest, timeout - waited + 0.001))
        pause = min(pause * 1.5, 0.25)
