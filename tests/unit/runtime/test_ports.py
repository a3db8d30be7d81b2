"""Addresses and ports at which tasks find each other."""

from __future__ import annotations

import socket

import pytest

from mcspark.errors import ConfigurationError
from mcspark.runtime.tasks import ports
from mcspark.runtime.tasks.ports import address_towards, held_port


def test_a_held_port_is_nobody_elses_and_free_afterwards():
    with held_port() as one, held_port() as other:
        assert one != other
        for port in (one, other):
            with socket.socket() as late, pytest.raises(OSError, match="in use"):
                late.bind(("", port))
    with socket.socket() as late:
        late.bind(("", one))


@pytest.mark.parametrize("told", ["40000\t60999\n", "1024 65535", "garbage", ""])
def test_it_is_no_port_of_outgoing_connections(monkeypatch, tmp_path, told):
    file = tmp_path / "range"
    file.write_text(told)
    monkeypatch.setattr(ports, "_RANGE", file)
    first = 40000 if told.startswith("4") else 32768
    for _ in range(20):
        with held_port() as port:
            assert first // 2 <= port < first


def test_where_chance_finds_none_the_kernel_does(monkeypatch):
    monkeypatch.setattr(ports, "_TRIES", 0)
    with held_port() as port:
        assert port > 0


def test_peers_on_one_machine_meet_where_they_are_told():
    assert address_towards(["127.0.0.1:4000", "localhost:4001"]) == "127.0.0.1"


def test_the_address_is_that_of_this_machine_from_which_the_others_are_reached(monkeypatch):
    sources = {"127.0.0.1": ["127.0.0.1"], "worker-2": ["10.1.2.3"], "gone": []}
    monkeypatch.setattr(ports, "_source", lambda host: iter(sources[host]))
    assert address_towards(["127.0.0.1:1", "gone:1", "worker-2:4001"]) == "10.1.2.3"


def test_a_host_without_an_ipv4_address_is_named():
    with pytest.raises(ConfigurationError, match=r"\(2001:db8::1\) has an IPv4"):
        address_towards(["[2001:db8::1]:4000"])
