"""Downloads: https only, bounded in size and time, verified before the file gets its name. Mirrors are tried in turn.

An address that cannot be connected to is not tried again, so a machine without a network gets its answer at once.
"""

import hashlib
import http.client
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from minikeras.errors import LoadError
from minikeras.files.durable import atomic_file
from minikeras.keras.datasets.formats import gunzip_chunks
from minikeras.keras.datasets.policy import Attempt, Policy, announce

_CHUNK_BYTES = 1 << 18
# gzip adds less than this to data that cannot be compressed.
_GZIP_OVERHEAD = 1 << 16
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class BrokenTransferError(LoadError):
    """The connection ended before all bytes had arrived: the one failure that another try may cure."""


def download(
    urls: Sequence[str],
    target: Path,
    wanted: str | None,
    max_bytes: int,
    attempts: list[Attempt],
    *,
    gunzip: bool,
    policy: Policy,
) -> bool:
    """Fetch a file from the first mirror that delivers the right bytes; whether one did. Failures are appended to `attempts`.

    Hash (SHA-256 or MD5, None for any file) and bound are those of what is stored: `gunzip` decompresses what comes from
    addresses that end in `.gz`.
    """
    remaining = list(urls)
    for round_number in range(policy.rounds):
        if round_number:
            time.sleep(policy.pause_seconds)
        for url in list(remaining):
            try:
                _transfer(url, target, wanted, max_bytes, gunzip and url.endswith(".gz"), policy)
            except (OSError, http.client.HTTPException, LoadError) as error:
                attempts.append(Attempt(url, _reason(error)))
                if not _worth_another_try(error):
                    remaining.remove(url)
            else:
                return True
        if not remaining:
            break
    return False


def require_https(url: str, policy: Policy) -> None:
    """Raise LoadError unless `url` is an https address (or plain http to this machine, where a test allows it)."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return
    if policy.loopback_http and parts.scheme == "http" and parts.hostname in _LOOPBACK:
        return
    raise LoadError(f"refused to download from {url[:200]!r}: only https addresses are allowed")


def _transfer(url: str, target: Path, wanted: str | None, max_bytes: int, gunzip: bool, policy: Policy) -> None:
    """One attempt: `target` appears only if length and hash are right."""
    require_https(url, policy)
    _require_reachable(url, policy)
    request = urllib.request.Request(url, headers={"User-Agent": "minikeras", "Accept-Encoding": "identity"})
    with _opener(policy).open(request, timeout=policy.read_seconds) as response:
        announce(f"downloading {url}")
        max_received = max_bytes + _GZIP_OVERHEAD if gunzip else max_bytes
        chunks = _received(response, max_received, time.monotonic() + policy.total_seconds)
        if gunzip:
            chunks = gunzip_chunks(chunks, max_bytes, url)
        digest = hashlib.md5(usedforsecurity=False) if len(wanted or "") == 32 else hashlib.sha256()
        with atomic_file(target, mode=0o600) as stream:
            for chunk in chunks:
                digest.update(chunk)
                stream.write(chunk)
            if wanted is not None and digest.hexdigest() != wanted:
                kind = "MD5" if digest.name == "md5" else "SHA-256"
                raise LoadError(f"{kind} is {digest.hexdigest()[:16]}..., expected {wanted[:16]}...")


def _received(response: IO[bytes], max_bytes: int, deadline: float) -> Iterator[bytes]:
    """The body of a response; Content-Length, the bytes that arrive and the cap have to agree."""
    header = response.headers.get("Content-Length")  # type: ignore[attr-defined]  # typeshed: the class is private
    declared = int(header) if header is not None and header.isascii() and header.isdigit() else None
    if declared is not None and declared > max_bytes:
        raise LoadError(f"server announces {declared} bytes, at most {max_bytes} are expected")
    received = 0
    while chunk := response.read(_CHUNK_BYTES):
        received += len(chunk)
        if received > max_bytes:
            raise LoadError(f"server sends more than the expected {max_bytes} bytes")
        if time.monotonic() > deadline:
            raise LoadError(f"transfer is too slow: {received} bytes so far")
        yield chunk
    if declared is not None and received != declared:
        raise BrokenTransferError(f"connection closed after {received} of {declared} bytes")


class _HttpsRedirects(urllib.request.HTTPRedirectHandler):
    """Redirects are held to the same rule as the first address."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def redirect_request(self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any,
                         newurl: str) -> urllib.request.Request | None:  # fmt: skip
        require_https(newurl, self.policy)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener(policy: Policy) -> urllib.request.OpenerDirector:
    """An opener with checked redirects; a test's loopback address must not go through a proxy."""
    handlers: list[urllib.request.BaseHandler] = [_HttpsRedirects(policy)]
    if policy.loopback_http:
        handlers.append(urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(*handlers)


def _require_reachable(url: str, policy: Policy) -> None:
    """Bound the wait behind a firewall that drops packets: urllib would wait for each of a host's addresses in turn."""
    parts = urllib.parse.urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme in urllib.request.getproxies() and not urllib.request.proxy_bypass(host):
        return
    found = socket.getaddrinfo(host, parts.port or 443, type=socket.SOCK_STREAM)
    # One address of each family is enough to know.
    addresses = list({family: address for family, _, _, _, address in reversed(found)}.items())
    for position, (family, address) in enumerate(addresses):
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.settimeout(policy.connect_seconds / len(addresses))
            try:
                probe.connect(address)
                return
            except OSError:
                if position == len(addresses) - 1:
                    raise


def _worth_another_try(error: Exception) -> bool:
    """Whether the failure may be gone in the next round."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code >= 500
    return isinstance(error, BrokenTransferError | http.client.HTTPException | ConnectionResetError)


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"server answers {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return f"cannot connect ({error.reason})"
    if isinstance(error, socket.gaierror):
        return f"no network, or unknown host ({error.strerror})"
    if isinstance(error, TimeoutError):
        return "no answer within the time limit"
    return str(error) or type(error).__name__
