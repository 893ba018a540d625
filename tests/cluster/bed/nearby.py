"""What the bed asks is on this machine. Python's urllib would ask it by the proxy that the environment names, for which other
programs (Go's, Heddle's) never take a loopback address."""

import os

HERE = ("127.0.0.1", "localhost", "::1")


def bypassing(no_proxy):
    """`no_proxy` as it was, and this machine."""
    given = [word.strip() for word in no_proxy.split(",") if word.strip()]
    return "*" if "*" in given else ",".join(given + [word for word in HERE if word not in given])


os.environ["no_proxy"] = bypassing(os.environ.get("no_proxy") or os.environ.get("NO_PROXY", ""))
