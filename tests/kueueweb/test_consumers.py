"""The live stream as a client meets it: who gets in, what it sees, and that it ends when the right does."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django.urls import path
from knox.models import AuthToken
from redis import Redis

from accounts.models import Cluster, RoleBinding
from accounts.services.tokens import revoke_tokens
from kueueweb.consumers import LiveConsumer
from queues.models import LocalQueue
from scheduler.live.authentication import by_session_or_token
from scheduler.live.publisher import group, snapshot_key
from scheduler.live.rights import user_group
from tests.patience import PATIENCE_SECONDS
from tests.users import EPOCH, make_user

pytestmark = pytest.mark.django_db(transaction=True)

HOST = (b"host", b"localhost:8000")
OURS = (b"origin", b"http://localhost:8000")
QUEUE = {"cohort": "", "pending": 1, "inadmissible": 0, "reserving": 0, "admitted": 0}
SNAPSHOT = {
    "type": "snapshot",
    "cluster": "default",
    "epoch": 7,
    "sequence": 1,
    "time": "2026-01-05T09:00:00Z",
    "data": {"totals": {}, "cluster_queues": {"research": QUEUE, "production": QUEUE}, "cohorts": {}, "devices": {}},
}
patient = by_session_or_token(URLRouter([path("ws/live/", LiveConsumer.as_asgi(recheck_seconds=3600))]))
application = by_session_or_token(
    URLRouter([path("ws/live/", LiveConsumer.as_asgi(heartbeat_seconds=0.05, recheck_seconds=0.05))])
)


@pytest.fixture
def people(live_services: None) -> Any:
    """Bob of team-a, whose LocalQueue leads to research, and a scheduler that has shown its numbers."""
    cluster = Cluster.objects.create(name="default")
    LocalQueue.objects.create(
        cluster=cluster, namespace="team-a", name="main", cluster_queue_name="research", created_at=EPOCH
    )
    with Redis.from_url(settings.REDIS_URL) as redis:
        redis.set(snapshot_key("default"), orjson.dumps(SNAPSHOT))
        yield {name: make_user(name) for name in ("alice", "bob", "nobody")}
        redis.delete(snapshot_key("default"))


def session_of(user: User) -> tuple[bytes, bytes]:
    client = Client()
    client.force_login(user)
    return (b"cookie", f"sessionid={client.cookies['sessionid'].value}".encode())


class Stream:
    """A client of the stream."""

    def __init__(self, *headers: tuple[bytes, bytes], cluster: str = "default", served_by: Any = application) -> None:
        self._communicator = WebsocketCommunicator(served_by, f"/ws/live/?cluster={cluster}", headers=[HOST, *headers])

    async def open(self) -> bool:
        connected, _ = await self._communicator.connect(timeout=PATIENCE_SECONDS)
        return bool(connected)

    async def next(self, type_: str = "") -> dict[str, Any]:
        """The next frame (of a type)."""
        while True:
            frame = orjson.loads(await self._communicator.receive_from(timeout=PATIENCE_SECONDS))
            if not type_ or frame["type"] == type_:
                return frame  # type: ignore[no-any-return]  # a frame is an object

    async def close_code(self) -> int:
        """What the server closes with, whatever it sends before."""
        while True:
            output = await self._communicator.receive_output(timeout=PATIENCE_SECONDS)
            if output["type"] == "websocket.close":
                return int(output["code"])

    async def send(self, text: str) -> None:
        await self._communicator.send_to(text_data=text)

    async def close(self) -> None:
        await self._communicator.disconnect(timeout=PATIENCE_SECONDS)


@pytest.fixture(autouse=True)
async def connections_end_with_the_test() -> AsyncIterator[None]:
    """Those of the thread that asks the database for the consumer."""
    yield
    await database_sync_to_async(connections.close_all)()


@pytest.fixture
async def streams() -> AsyncIterator[list[Stream]]:
    """What a test opened is closed after it."""
    opened: list[Stream] = []
    yield opened
    for stream in opened:
        await stream.close()


async def test_a_browser_by_its_session(people: dict[str, User], streams: list[Stream]) -> None:
    stream = Stream(OURS, await database_sync_to_async(session_of)(people["alice"]))
    streams.append(stream)
    assert await stream.open()
    snapshot = await stream.next()
    said_at = datetime.fromisoformat(SNAPSHOT["time"])  # type: ignore[arg-type]  # a text, as all but the numbers
    assert snapshot.pop("age_seconds") == pytest.approx((datetime.now(UTC) - said_at).total_seconds(), abs=60)
    assert snapshot == {**SNAPSHOT, "data": {**SNAPSHOT["data"]}}  # type: ignore[dict-item]  # a dict in a dict
    beat = await stream.next()
    assert (beat["type"], beat["time"]) == ("heartbeat", SNAPSHOT["time"])


async def test_a_tool_by_its_token_sees_its_own(people: dict[str, User], streams: list[Stream]) -> None:
    _, token = await database_sync_to_async(AuthToken.objects.create)(people["bob"])
    stream = Stream((b"authorization", f"Token {token}".encode()))
    streams.append(stream)
    assert await stream.open()
    assert list((await stream.next())["data"]["cluster_queues"]) == ["research"]


async def test_news_arrive(people: dict[str, User], streams: list[Stream]) -> None:
    stream = Stream(OURS, await database_sync_to_async(session_of)(people["alice"]))
    streams.append(stream)
    await stream.open()
    await stream.next("snapshot")
    delta = {
        **SNAPSHOT,
        "type": "delta",
        "sequence": 2,
        "data": {"cluster_queues": {"research": {**QUEUE, "pending": 9}}},
    }
    await get_channel_layer().group_send(
        group("default"), {"type": "live.update", "payload": orjson.dumps(delta).decode()}
    )
    assert (await stream.next("delta"))["data"]["cluster_queues"]["research"]["pending"] == 9
    await stream.send('{"type": "resume", "epoch": 7, "sequence": 1}')
    assert (await stream.next("snapshot"))["sequence"] == 2


async def test_what_a_client_sends_never_hurts(people: dict[str, User], streams: list[Stream]) -> None:
    stream = Stream(OURS, await database_sync_to_async(session_of)(people["alice"]))
    streams.append(stream)
    await stream.open()
    for text in (" ", "{", "[]", '"x"', "null", "9" * 2000, '{"type": ["resume"]}'):
        await stream.send(text)
    assert (await stream.next("heartbeat"))["epoch"] == 7


async def test_another_site_is_not_let_in(people: dict[str, User]) -> None:
    cookie = await database_sync_to_async(session_of)(people["alice"])
    assert not await Stream((b"origin", b"https://evil.example"), cookie).open()
    assert not await Stream(cookie).open()


@pytest.mark.parametrize(
    ("who", "cluster", "code"), [("", "default", 4401), ("nobody", "default", 4403), ("alice", "nowhere", 4404)]
)
async def test_who_may_not(people: dict[str, User], who: str, cluster: str, code: int) -> None:
    headers = [OURS]
    if who:
        headers.append(await database_sync_to_async(session_of)(people[who]))
    stream = Stream(*headers, cluster=cluster)
    assert await stream.open()
    assert await stream.close_code() == code
    refused = Stream((b"authorization", b"Token wrong"))
    assert await refused.open()
    assert await refused.close_code() == 4401


async def test_closes_when_the_session_ends(people: dict[str, User]) -> None:
    cookie = await database_sync_to_async(session_of)(people["alice"])
    stream = Stream(OURS, cookie)
    await stream.open()
    await stream.next("snapshot")
    client = Client()
    client.cookies["sessionid"] = cookie[1].decode().partition("=")[2]
    await database_sync_to_async(client.logout)()
    assert await stream.close_code() == 4401


async def test_closes_when_the_token_is_revoked(people: dict[str, User]) -> None:
    _, token = await database_sync_to_async(AuthToken.objects.create)(people["alice"])
    stream = Stream((b"authorization", f"Token {token}".encode()))
    await stream.open()
    await stream.next("snapshot")
    await database_sync_to_async(AuthToken.objects.all().delete)()
    assert await stream.close_code() == 4401


async def opened(headers: list[tuple[bytes, bytes]]) -> Stream:
    """A stream that does not read its rights by itself."""
    stream = Stream(*headers, served_by=patient)
    await stream.open()
    await stream.next("snapshot")
    return stream


async def test_log_out_closes_its_streams_at_once(people: dict[str, User], streams: list[Stream]) -> None:
    """After a log-out the stream went on for up to 15 seconds. Another session of the same user goes on."""
    cookie, other = [await database_sync_to_async(session_of)(people["alice"]) for _ in range(2)]
    stream, stays = await opened([OURS, cookie]), await opened([OURS, other])
    streams.append(stays)
    client = Client()
    client.cookies["sessionid"] = cookie[1].decode().partition("=")[2]
    await database_sync_to_async(client.logout)()
    assert await stream.close_code() == 4401
    await stays.send('{"type": "resume"}')
    assert (await stays.next("snapshot"))["epoch"] == 7


async def test_a_revoked_token_closes_its_streams_at_once(people: dict[str, User]) -> None:
    _, token = await database_sync_to_async(AuthToken.objects.create)(people["alice"])
    stream = await opened([(b"authorization", f"Token {token}".encode())])
    await database_sync_to_async(revoke_tokens)(people["alice"])
    assert await stream.close_code() == 4401


async def test_deactivation_closes_all_streams_at_once(people: dict[str, User], streams: list[Stream]) -> None:
    """They went on for 5 seconds. Other users' streams go on."""
    alice, bob = people["alice"], people["bob"]
    cookies = [await database_sync_to_async(session_of)(user) for user in (alice, alice, bob)]
    *ended, stays = [await opened([OURS, cookie]) for cookie in cookies]
    streams.append(stays)
    alice.is_active = False
    await database_sync_to_async(alice.save)()
    assert [await stream.close_code() for stream in ended] == [4401, 4401]
    await stays.send('{"type": "resume"}')
    assert (await stays.next("snapshot"))["epoch"] == 7


async def test_closes_when_the_role_is_taken(people: dict[str, User]) -> None:
    stream = Stream(OURS, await database_sync_to_async(session_of)(people["bob"]))
    await stream.open()
    await stream.next("snapshot")
    await database_sync_to_async(RoleBinding.objects.all().delete)()
    assert await stream.close_code() == 4403


async def test_shows_more_when_the_role_grows(people: dict[str, User], streams: list[Stream]) -> None:
    stream = Stream(OURS, await database_sync_to_async(session_of)(people["bob"]))
    streams.append(stream)
    await stream.open()
    assert list((await stream.next("snapshot"))["data"]["cluster_queues"]) == ["research"]
    await database_sync_to_async(RoleBinding.objects.create)(
        username=people["bob"].username, role="viewer", namespace=""
    )
    assert len((await stream.next("snapshot"))["data"]["cluster_queues"]) == 2


@pytest.mark.parametrize(
    "origin", [b"http://localhost:9999", b"https://localhost:8000", b"http://localhost", b"http://evil.example", b""]
)
async def test_the_whole_origin_counts(people: dict[str, User], origin: bytes) -> None:
    """The port was ignored, so that any other server of the same machine could listen in."""
    cookie = await database_sync_to_async(session_of)(people["alice"])
    assert not await Stream((b"origin", origin), cookie).open()


async def test_one_user_has_so_many_streams_and_no_more(
    people: dict[str, User], streams: list[Stream], settings: Any
) -> None:
    """One token held 400."""
    settings.MAX_SOCKETS_PER_USER = 2
    _, token = await database_sync_to_async(AuthToken.objects.create)(people["alice"])
    header = (b"authorization", f"Bearer {token}".encode())
    for _ in range(2):
        streams.append(Stream(header))
        await streams[-1].open()
        await streams[-1].next("snapshot")
    third = Stream(header)
    await third.open()
    assert await third.close_code() == 4429
    await streams.pop().close()
    streams.append(Stream(header))
    await streams[-1].open()
    await streams[-1].next("snapshot")


async def test_many_tabs_share_one_feed(people: dict[str, User], streams: list[Stream]) -> None:
    cookie = await database_sync_to_async(session_of)(people["alice"])
    streams.extend(Stream(OURS, cookie) for _ in range(20))
    await asyncio.gather(*(stream.open() for stream in streams))
    frames = await asyncio.gather(*(stream.next("snapshot") for stream in streams))
    assert {frame["sequence"] for frame in frames} == {1}


async def test_the_end_of_a_question_reaches_its_user_on_the_streams_of_its_cluster(
    people: dict[str, User], streams: list[Stream]
) -> None:
    alice, bob = [Stream(OURS, await database_sync_to_async(session_of)(people[name])) for name in ("alice", "bob")]
    for stream in (alice, bob):
        streams.append(stream)
        await stream.open()
        await stream.next("snapshot")
    frames = [
        {"type": "question", "cluster": cluster, "id": number, "kind": "remedies", "state": "Answered"}
        for number, cluster in enumerate(("elsewhere", "default"))
    ]
    for frame in frames:
        message = {"type": "question.ended", "frame": frame}
        await get_channel_layer().group_send(user_group(people["alice"].pk), message)
    assert await alice.next("question") == frames[1]
    assert (await bob.next())["type"] == "heartbeat"
