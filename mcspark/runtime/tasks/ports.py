"""An address and a port at which other tasks of one stage can reach this one."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from mcspark.errors import ConfigurationError

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST_OF_OTHERS = 32768
"""The kernel gives outgoing connections ports from here on, where it does not say another number."""

_LEAST = 1024  # below, ports are for the administrator
_TRIES = 1000
_LOOPBACK = "127.0.0.1"


def address_towards(peers: Sequence[str]) -> str:
    """The IPv4 address of this machine from which it reaches the others; no packet is sent.

    Parameters
    ----------
    peers : sequence of str
        ``host:port`` of each; where all are on this machine, its loopback address may be what is found.

    Raises
    ------
    ConfigurationError
        If none of the hosts has an IPv4 address.
    """
    found = [address for peer in dict.fromkeys(map(_host, peers)) for address in _source(peer)]
    if not found:
        raise ConfigurationError(
            f"none of the executors' hosts ({', '.join(sorted(set(map(_host, peers)))[:5])}) has an IPv4 "
            "address, and LightGBM knows no others; give them one, or set calibrator.training: cells"
        )
    return next((address for address in found if not address.startswith("127.")), _LOOPBACK)


@contextmanager
def held_port() -> Iterator[int]:
    """A free port that nobody else on this machine takes within the block.

    It is none of those that the kernel gives to outgoing connections: a peer that dials in too early could
    get the very port as its own, and would be connected to itself.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as holder:
        yield _bound(holder)


def _bound(holder: socket.socket) -> int:
    # Jobs draw the same ports from a seed, so chance is what keeps them apart.
    chance = random.SystemRandom()
    for _ in range(_TRIES):
        port = chance.randrange(max(_LEAST, _first_outgoing() // 2), _first_outgoing())
        with suppress(OSError):
            holder.bind(("", port))
            return port
    holder.bind(("", 0))
    return int(holder.getsockname()[1])


def _first_outgoing() -> int:
    try:
        first = int(_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _FIRST_OF_OTHERS
    return first if first > 2 * _LEAST else _FIRST_OF_OTHERS


def _host(peer: str) -> str:
    return peer.rpartition(":")[0].strip("[]") or peer


def _source(host: str) -> Iterator[str]:
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))
        yield str(probe.getsockname()[0])
