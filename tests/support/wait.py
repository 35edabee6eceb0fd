"""Waiting for something that happens elsewhere.  No test sleeps for a fixed time, it waits for the event; only a client
that is to be as slow as people are sleeps."""
import time

POLL_S = 0.01


def wait_until(condition, what, seconds=120, poll_s=POLL_S):
    """Returns the first true value of condition(); fails once the deadline has passed."""
    __tracebackhide__ = True
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(poll_s)
    return value


def stays(condition, what, seconds, poll_s=POLL_S):
    """Fails as soon as condition() is false within this time: for what must not happen, of which there is no event."""
    end = time.monotonic() + seconds
    while True:
        assert condition(), what
        if time.monotonic() >= end:
            return
        time.sleep(poll_s)


def wait_until_steady(read, what, for_s, seconds=120):
    """The value of read() once it has been the same for for_s."""
    end, value, since = time.monotonic() + seconds, read(), time.monotonic()
    while time.monotonic() - since < for_s:
        assert time.monotonic() < end, f"waited {seconds} s for {what} to be steady"
        time.sleep(POLL_S)
        now = read()
        if now != value:
            value, since = now, time.monotonic()
    return value
