"""The loop of a fuzzer: a check of one source after the other, which may neither fail nor hang."""
import signal
import traceback


class Guarded:
    """Runs checks, prints the source of each that raises, and counts them.  seconds: after which a check that runs in this process
    is ended; None where the check has a limit of its own."""

    def __init__(self, name, seconds=None):
        self.name, self.seconds, self.n, self.n_failed = name, seconds, 0, 0
        if seconds:
            signal.signal(signal.SIGALRM, self._stop)

    def _stop(self, signum, frame):
        raise TimeoutError(f"it takes more than {self.seconds} s")

    def run(self, where, source, check, *arguments):
        """where: what finds the source again, printed with a failure."""
        try:
            signal.alarm(self.seconds or 0)
            check(source, *arguments)
        except Exception:  # noqa: BLE001: any is a failure
            self.n_failed += 1
            print(f"---- {self.name}, {where}\n{source}\n{traceback.format_exc()}", flush=True)
        finally:
            signal.alarm(0)
        self.n += 1

    def end(self, what):
        """Prints the counts; the exit status."""
        print(f"{self.n} {what}, {self.n_failed} failed", flush=True)
        return 1 if self.n_failed else 0
