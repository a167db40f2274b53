"""What every test may rely on, however pytest was started."""

import signal

# A shell ignores SIGINT and SIGQUIT in what it starts in the background, and children inherit that: tests of
# Ctrl-C would wait for ever in a nightly job.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
