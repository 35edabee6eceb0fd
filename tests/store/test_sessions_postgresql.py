"""Sessions whose people are on two servers, which share a PostgreSQL."""
import time

import pytest

from support.server import Server
from support.sessions import REQUEST, Person, begin, join, two_people
from support.wait import wait_until


@pytest.fixture(scope="module")
def two(postgres):
    url = postgres.new_database("sessions")
    with Server("--store", url) as one, Server("--store", url) as other:
        yield one, other


@pytest.fixture
def pair(two):
    with two_people(*two) as people:
        yield people


def test_updates_of_both_servers_reach_both_in_one_order(pair):
    ann, bob = pair
    texts = []
    for i in range(10):
        texts.append(b"%d" % i)
        assert (ann if i % 2 else bob).update(texts[-1]).json == {"seq": i + 1}
    ann.has(*texts)
    bob.has(*texts)
    assert ann.updates == bob.updates


def test_presence_and_who_is_here_are_told_across_servers(pair):
    ann, bob = pair
    wait_until(lambda: ann.names() == bob.names() == ["Ann", "Bob"], "both see both", 20)
    bob.show(line=3)
    ann.show(line=4)
    wait_until(lambda: ann.presences.get(2) == {"line": 3} and bob.presences.get(1) == {"line": 4}, "presences", 20)
    bob.close()
    wait_until(lambda: ann.names() == ["Ann"], "Bob is away", 30)


def test_who_leads_is_the_same_on_both(pair):
    ann, bob = pair
    assert bob.lead("claim").error["code"] == "session-offer"
    ann.lead("offer", to=2)
    bob.sees(offered=2)
    assert bob.lead("accept").status == 200
    ann.sees(leader=2)
    assert ann.update(b"x").status == 200 and bob.lead("read-only", on=True).status == 200
    ann.sees(read_only=True)
    assert ann.update(b"y").error["code"] == "session-read-only"
    assert bob.compact(1, b"merged").status == 200
    late = join(ann.server, ann.session, "Cy")

    def has_snapshot():
        late.follow(last=999)
        late.sees(leader=2)
        return late.snapshot == (1, b"merged")
    wait_until(has_snapshot, "the snapshot", 20)
    late.close()
    bob.lead("end")
    ann.sees(ended=True)


def test_a_snapshot_older_than_what_the_other_server_has(pair):
    """A page makes it of what it has, while the updates after that go on."""
    ann, bob = pair
    for i in range(6):
        assert ann.update(b"%d" % i).status == 200
    bob.has(*(b"%d" % i for i in range(6)))
    assert ann.compact(3, b"first three").status == 200
    assert bob.update(b"6").status == 200  # its server reads the snapshot with this, at the latest
    ann.has(*(b"%d" % i for i in range(7)))
    bob.has(*(b"%d" % i for i in range(7)))
    for server in (ann.server, bob.server):
        late = join(server, ann.session, "Cy")
        late.follow()
        late.has(b"3", b"4", b"5", b"6")
        assert late.snapshot == (3, b"first three")
        late.close()


def test_a_person_goes_on_at_the_other_server(pair, two):
    ann, bob = pair
    ann.update(b"one")
    bob.has(b"one")
    moved = Person(two[0], bob.session, bob.person, bob.token)
    bob.close()
    moved.last = bob.last
    moved.follow()
    ann.update(b"two")
    moved.has(b"two")
    moved.close()


def test_an_update_reaches_the_other_server_soon(pair):
    """No bound of time, but of polling: a server that only looks now and then would take seconds."""
    ann, bob = pair
    times = []
    for i in range(10):
        text = b"%d" % i
        began = time.monotonic()
        ann.update(text)
        wait_until(lambda text=text: any(t == text for _, t in bob.updates.values()), "the update", 20)
        times.append(time.monotonic() - began)
    print("seconds:", *(f"{t:.3f}" for t in sorted(times)))


def test_nothing_is_missed_while_postgresql_is_restarted(pair, postgres):
    ann, bob = pair
    postgres.stop()
    assert ann.update(b"lost").status == 503
    postgres.start()
    wait_until(lambda: ann.update(b"one").status == 200, "the store is back", 60)
    bob.has(b"one")


def test_sessions_without_anyone_become_one_link_each_by_one_of_two_servers(postgres):
    """Both look for them at the same times, so that most are found by both."""
    url = postgres.new_database("deserted")
    flags = ["--store", url, "--session-idle-s", "3", "--client-links", "0", "--client-links-day", "0"]
    n = 16

    def count(what):
        return int(postgres.run(f"SELECT count(*) FROM {what}", "deserted"))

    with Server(*flags) as one, Server(*flags) as other:
        servers = (one, other)
        for s in servers:
            s.wait_until(lambda s=s: s.get("/readyz").status == 200, "a worker that is warm")
        stays = begin(one)
        stays.follow()
        people = [begin(servers[i % 2], f"p{i}") for i in range(n)]
        wait_until(lambda: count("sessions WHERE ended_ms > 0") == n, "the ends", 60)
        became = [{s.get(f"/api/v1/sessions/{p.session}").json.get("snippet") for s in servers} for p in people]
        assert all(len(both) == 1 and None not in both for both in became), became
        links = {both.pop() for both in became}
        assert len(links) == n == count("snippets")
        for i, link in enumerate(links):
            got = servers[i % 2].get(f"/api/v1/snippets/{link}").json
            assert got["result"]["status"] == "ok" and got["request"]["source"] == REQUEST["source"]
        sealed = [sum("session_sealed" in line for line in s.log) for s in servers]
        assert sum(sealed) == n, sealed
        print("sealed by each:", sealed)
        assert not one.get(f"/api/v1/sessions/{stays.session}").json["ended"]
        stays.close()
    week_ms = 7 * 24 * 3600 * 1000
    postgres.run(f"UPDATE sessions SET ended_ms = ended_ms - {week_ms} WHERE ended_ms > 0", "deserted")
    with Server(*flags) as later:
        wait_until(lambda: count("session_people") <= 1, "what is left of the sessions to be removed", 30)
        assert {later.get(f"/api/v1/sessions/{p.session}").json["snippet"] for p in people} == links
