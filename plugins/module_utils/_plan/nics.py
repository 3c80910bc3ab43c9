# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which link of a host is its NIC on a fabric network: by the site's rules, from host_info's result."""

from __future__ import annotations

import fnmatch
import itertools
import typing as t

from .._common.addresses import Network, read_address, read_network
from .._common.result import FabricError
from .._common.text import shorten_list
from .._host.links import bottom
from .._model.observation import Gpu, Link, RdmaDevice, RdmaFacts
from .._model.profiles import ETHERNET, INFINIBAND, LAYERS
from .network_spec import Select
from .nic_obstacles import Obstacles, inside

NOT_ROCE = ("iWARP", "usNIC")


class LinkLayerError(FabricError):
    """The NIC's RDMA is not RoCE."""


class _NoNicError(FabricError):
    """No network device is the fabric NIC."""


def _rdma(link: Link) -> str:
    return f"RDMA {link['device']} {link['state']}".rstrip() if link["device"] else "no RDMA"


def _describe(link: Link, obstacles: t.Optional[Obstacles] = None) -> str:
    addresses = " ".join(f"{entry['address']}/{entry['prefix']}" for entry in link["addresses"]) or "no address"
    parts = [link["driver"], link["pci"], _rdma(link), addresses, "" if link["up"] else "down"]
    obstacle = (obstacles or {}).get(link["netdev"])
    why = f": {obstacle.why}" if obstacle else ""
    return f"{link['netdev']} ({', '.join(part for part in parts if part)}){why}"


def _describe_all(links: t.Iterable[Link], obstacles: t.Optional[Obstacles] = None) -> str:
    return shorten_list((_describe(link, obstacles) for link in links), 8, "; ") or "none"


def _below(link: Link, links: t.Mapping[str, Link]) -> t.List[Link]:
    return [
        links[name]
        for name in bottom(link["netdev"], {name: item["lower"] for name, item in links.items()})
        if name in links
    ]


def _fits(link: Link, links: t.Mapping[str, Link], key: str, patterns: t.Sequence[str]) -> bool:
    """Whether one of the patterns matches the link. PCI address and driver may also be those of a NIC below it."""
    if key == "subnet":
        return any(read_address(entry["address"]) in _subnet(rule) for entry in link["addresses"] for rule in patterns)
    if key == "name":
        own = [link["netdev"], *link["altnames"]]
    else:
        own = [item["pci" if key == "pci" else "driver"] for item in _below(link, links)]
    if key == "pci":
        patterns = [rule.lower() for rule in patterns]
    return any(
        fnmatch.fnmatchcase(text, rule) or (key == "pci" and text == f"0000:{rule}")
        for rule in patterns
        for text in own
    )


def _keys(found: t.Sequence[Link], links: t.Sequence[Link]) -> str:
    """The keys of `select` that can identify these NICs: virtual ones, for example, have no PCI address."""
    by_name = {link["netdev"]: link for link in links}
    below = [item for link in found for item in _below(link, by_name)]
    has = {
        "pci": any(item["pci"] for item in below),
        "driver": any(item["driver"] for item in below),
        "subnet": any(link["addresses"] for link in found),
    }
    *keys, last = ["name", *(key for key in has if has[key])]
    return f"{', '.join(keys)} or {last}" if keys else last


def _misfits(link: Link, links: t.Mapping[str, Link], rules: t.Mapping[str, t.Sequence[str]]) -> t.List[str]:
    """The rules none of whose patterns match a link."""
    return [key for key, patterns in rules.items() if not _fits(link, links, key, patterns)]


def _subnet(subnet: str) -> Network:
    try:
        return read_network(subnet)
    except ValueError as error:
        raise FabricError(
            "The fabric NIC's subnet was expected as a CIDR.",
            "select.subnet",
            f"{subnet!r} ({error})",
            "Write it like 10.5.0.0/24.",
        ) from error


def _narrow(candidates: t.List[Link], *preferences: t.Callable[[Link], bool]) -> t.List[Link]:
    """Apply each preference unless no candidate meets it."""
    for preference in preferences:
        candidates = [link for link in candidates if preference(link)] or candidates
    return candidates


def _nics(links: t.Sequence[Link]) -> t.Sequence[Link]:
    """Links of hardware or on top of it; if there are none, all that do not belong to a pod network or the like."""
    able = [link for link in links if not inside(link)] or links
    return [link for link in able if link["kind"] != "other" or link["rdma_netdevs"]] or able


def _misfit(keys: t.Sequence[str]) -> str:
    """Text with the rules of `select` that a link does not match."""
    return f"not {'in' if keys[0] == 'subnet' else 'of'} the selected {' and '.join(keys)}"


def _raise_no_match(
    links: t.Sequence[Link], where: str, misfits: t.Mapping[str, t.Sequence[str]], rules: int
) -> t.NoReturn:
    """List links that match some of the rules first, with the rules that they do not match."""
    close = sorted((link for link in links if len(misfits[link["netdev"]]) < rules), key=inside)
    others = [link for link in _nics(links) if link not in close]
    seen = [f"{_describe(link)}: {_misfit(misfits[link['netdev']])}" for link in close]
    seen += map(_describe, others)
    step = "Correct `select` in fabric_networks (or `hosts`, if this host is to be without the network), or load the"
    step += " NIC's driver: it may rename the device."
    keys = _keys([*close, *others], links)
    if "pci" not in keys and any("pci" in keys_of for keys_of in misfits.values()):
        step += f" None of these has a PCI address: name one by {keys}."
    raise _NoNicError(
        "No NIC matches the selection of the fabric NIC.",
        where,
        shorten_list(seen, 8, "; ") or "none",
        step,
    )


def _raise_blocked(links: t.Sequence[Link], where: str, obstacles: Obstacles) -> t.NoReturn:
    """Leave out what differs between hosts, so that a rack is one finding."""
    steps = dict.fromkeys(filter(None, (obstacles[link["netdev"]].step for link in links)))
    seen = (f"{link['netdev']} ({_rdma(link)}): {obstacles[link['netdev']].why}" for link in links)
    raise FabricError(
        "None of the network devices that could be the fabric NIC can carry a macvlan.",
        where,
        shorten_list(seen, 8, "; "),
        f"{shorten_list(steps, 4, '; ')}. Or name another NIC in `select` of fabric_networks."
        if steps
        else "Name a NIC in `select` of fabric_networks.",
    )


def _raise_no_rdma(links: t.Sequence[Link], where: str, obstacles: Obstacles) -> t.NoReturn:
    raise _NoNicError(
        "The fabric needs a NIC with RDMA.",
        where,
        _describe_all(links, obstacles),
        "Load the NIC's RDMA driver (mlx5_ib; vmw_pvrdma for a virtual machine's PVRDMA adapter),"
        " select another NIC, or set fabric_require_rdma to false for plain Ethernet and name the NIC in `select` of"
        " fabric_networks.",
    )


def _check_nic(
    link: Link, where: str, require_rdma: bool, dropped: t.Sequence[Link], obstacles: Obstacles, kind: str
) -> Link:
    """The link, if networks of this type can use it for RDMA; dropped: links of the same selection that can't."""
    if require_rdma and not link["rdma_netdevs"]:
        _raise_no_rdma([link, *dropped], where, obstacles)
    port = f"{link['netdev']} ({link['device']} port {link['port']})"
    if ETHERNET not in LAYERS[kind] and link["link_layer"] != INFINIBAND:
        raise LinkLayerError(
            f"{kind} is for InfiniBand, not for Ethernet (RoCE).",
            where,
            f"{port} has link layer {link['link_layer'] or 'Ethernet'}",
            "Set type to macvlan in fabric_networks, or select an InfiniBand NIC.",
        )
    if link["link_layer"] == INFINIBAND and INFINIBAND not in LAYERS[kind]:
        raise LinkLayerError(
            "macvlan is for Ethernet (RoCE), not for InfiniBand.",
            where,
            f"{port} has link layer InfiniBand",
            _infiniband_step(link["port"]),
        )
    if require_rdma and link["link_layer"] in NOT_ROCE:
        raise LinkLayerError(
            f"RDMA of pods is RoCE or InfiniBand, not {link['link_layer']}."
            if kind != "macvlan"
            else f"RDMA of pods on a macvlan is RoCE, not {link['link_layer']}.",
            where,
            f"{port}, driver {link['driver'] or 'unknown'}, is {link['link_layer']}: it has no GIDs of pods' addresses",
            f"Switch it to RoCE if it can (E810: `devlink dev param set pci/{link['pci'] or 'ADDRESS'} name enable_roce"
            " value true cmode runtime`, after enable_iwarp is false; roce_ena=1 with Intel's irdma), select another"
            " NIC, or set fabric_require_rdma to false for plain Ethernet.",
        )
    return link


def _infiniband_step(port: int) -> str:
    return (
        f"Set the port to Ethernet (mlxconfig -d PCI set LINK_TYPE_P{port}=2, then reboot) or select another NIC."
        " This can't be allowed: no pod would get a link. On InfiniBand pods share a NIC with `type: ipoib` in"
        " fabric_networks, and get a VF each with `type: sriov`."
    )


def _may_be(device: RdmaDevice, rules: t.Mapping[str, t.Sequence[str]]) -> bool:
    """Whether `select` may mean an RDMA device without a netdev, and so without an address."""
    names = {"name": device["device"], "pci": device["pci"], "driver": device["driver"], "subnet": ""}
    patterns = {key: [*rules[key], *(f"0000:{rule}" for rule in rules[key] if key == "pci")] for key in rules}
    return all(any(fnmatch.fnmatchcase(names[key], rule.lower()) for rule in patterns[key]) for key in rules)


def _describe_lone(device: RdmaDevice) -> str:
    layer, parts = device["link_layer"], filter(None, (device["driver"], device["pci"], device["state"]))
    why = "" if layer == "Ethernet" else f"not RoCE{': InfiniBand' if layer == INFINIBAND else ''}, and "
    return f"{device['device']} ({', '.join(parts)}): {why}no network device here"


def _raise_lone(devices: t.Sequence[RdmaDevice], error: FabricError, kind: str) -> t.NoReturn:
    """Report RDMA devices without a netdev, which no network can use."""
    steps = []
    for device in devices:
        layer = device["link_layer"]
        if layer == INFINIBAND and INFINIBAND in LAYERS[kind]:
            steps.append(f"Load ib_ipoib (`modprobe ib_ipoib`), which gives {device['device']} a network device.")
        elif layer == INFINIBAND:
            steps.append(_infiniband_step(1))
        elif layer == "Ethernet":
            steps.append(
                f"Find the network device of {device['device']}: if `rdma link` names one, a pod has it until that pod"
                " is deleted; otherwise load its driver, such as mlx5_core with Ethernet."
            )
        else:
            steps.append(f"Pods get {device['driver'] or device['device']} from its vendor's device plugin.")
    error_type = LinkLayerError if any(device["link_layer"] == INFINIBAND for device in devices) else FabricError
    over = " over Ethernet (RoCE)" if kind == "macvlan" else ""
    raise error_type(
        f"The fabric needs a network device with RDMA{over}; the host's RDMA devices have none.",
        error.where,
        f"{shorten_list(map(_describe_lone, devices), 4, '; ')}; {error.seen}",
        f"{' '.join(dict.fromkeys(steps))} If that is not what you want: {error.next_step}",
    ) from error


def _selected(links: t.Sequence[Link], select: Select) -> t.List[Link]:
    """All links that match the rules."""
    rules, by_name = select.rules(), {link["netdev"]: link for link in links}
    misfits = {name: _misfits(link, by_name, rules) for name, link in by_name.items()}
    found = [link for link in links if not misfits[link["netdev"]]]
    if rules and not found:
        _raise_no_match(links, select.as_text(), misfits, len(rules))
    return found


def _candidates(
    selected: t.List[Link], select: Select, to_vipu: str, require_rdma: bool, obstacles: Obstacles
) -> t.List[Link]:
    """All links that match the rules or have RDMA, and that can carry a macvlan."""
    where = select.as_text()
    free = [link for link in selected if link["netdev"] not in obstacles]
    if select.rules():
        return free or _raise_blocked(selected, where, obstacles)
    with_rdma = [link for link in free if link["rdma_netdevs"]]
    if require_rdma and not with_rdma:
        blocked = [link for link in selected if link["rdma_netdevs"]]
        if blocked:
            _raise_blocked(blocked, where, obstacles)
        _raise_no_rdma(_nics(selected), where, {})
    return with_rdma or [link for link in free if link["netdev"] == to_vipu] or free


def _find_gpu(number: int, gpus: t.Sequence[Gpu]) -> Gpu:
    if number < len(gpus):
        return gpus[number]
    raise FabricError(
        f"The NIC nearest to GPU {number} was asked for; the first GPU is 0.",
        "/sys/bus/pci/devices",
        ", ".join(gpu["pci"] for gpu in gpus) or "no NVIDIA GPU",
        "Correct select.gpu, remove the host from the network (key hosts), or look for the GPU with lspci -d 10de:.",
    )


def common_ports(one: str, other: str) -> int:
    """How many PCI ports the paths to two functions share, counted from the processor."""
    pairs = zip(one.split("/"), other.split("/"))
    return sum(1 for _pair in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def nearest(gpu: Gpu, candidates: t.Sequence[Link], links: t.Sequence[Link]) -> t.List[Link]:
    """Links with the longest PCI path in common with a GPU; if several or none have one, those on its NUMA node."""
    by_name = {link["netdev"]: link for link in links}

    def nearness(link: Link) -> t.Tuple[int, bool]:
        real = [item for item in _below(link, by_name) if item["path"]]
        near = [(common_ports(item["path"], gpu["path"]), 0 <= gpu["numa_node"] == item["numa_node"]) for item in real]
        return max(near, default=(0, False))

    scores = [nearness(link) for link in candidates]
    best = max(scores, default=(0, False))
    return [link for link, score in zip(candidates, scores) if score == best != (0, False)]


def _nearest_or_raise(
    gpu: Gpu, candidates: t.List[Link], links: t.Sequence[Link], dropped: t.Sequence[Link], obstacles: Obstacles
) -> t.List[Link]:
    found = nearest(gpu, candidates, links)
    if not found:
        raise FabricError(
            "A NIC at the same PCI root or on the same NUMA node as the GPU was expected.",
            f"GPU {gpu['pci']}, NUMA node {gpu['numa_node']}",
            _describe_all([*candidates, *dropped], obstacles),
            f"Name the NIC in `select` of fabric_networks, by {_keys(candidates, links)}.",
        )
    return found


def choose_nic(
    rdma: RdmaFacts,
    select: Select,
    obstacles: Obstacles,
    vipu_address: str = "",
    require_rdma: bool = True,
    kind: str = "macvlan",
) -> Link:
    """The link whose network the pods join. Errors mention RDMA devices without a network device too.

    obstacles: find_obstacles() for the host's links; the same for all its networks.
    kind: type of the network.
    """
    try:
        return _choose_nic(rdma, select, obstacles, vipu_address, require_rdma, kind)
    except _NoNicError as error:
        devices = rdma.get("lone_devices", [])
        meant = [device for device in devices if _may_be(device, select.rules())]
        if meant:
            _raise_lone(meant, error, kind)
        others = shorten_list(map(_describe_lone, devices), 4, "; ")  # one of them may be meant, by another name
        seen = f"{error.seen}; {others}" if others else error.seen
        raise FabricError(error.what, error.where, seen, error.next_step) from None


def _choose_nic(
    rdma: RdmaFacts, select: Select, obstacles: Obstacles, vipu_address: str, require_rdma: bool, kind: str
) -> Link:
    """The link whose network the pods join.

    The rules decide if there are any; otherwise the RDMA NIC on the route to V-IPU, or the only one. V-IPU is often on
    the management network, so the route alone proves nothing. Neither does which of several NICs is up.
    """
    links, where = rdma["links"], select.as_text()
    if kind == "sriov":  # pods get its VFs
        links = [link for link in links if link["kind"] != "vf"]
    route = rdma["routes"].get(vipu_address)
    to_vipu = route["dev"] if route else ""
    selected = _selected(links, select)
    candidates = _narrow(
        _candidates(selected, select, to_vipu, require_rdma, obstacles),
        lambda link: bool(link["rdma_netdevs"]) or not require_rdma,
    )
    dropped = [link for link in selected if link["netdev"] in obstacles and link["rdma_netdevs"]]
    if select.gpu is not None:  # first: a NIC with an address but far from the GPU is no replacement
        candidates = _nearest_or_raise(_find_gpu(select.gpu, rdma["gpus"]), candidates, links, dropped, obstacles)
    candidates = _narrow(
        candidates,
        lambda link: (link["link_layer"] or ETHERNET) in (*LAYERS[kind], *(() if require_rdma else NOT_ROCE)),
        lambda link: link["netdev"] == to_vipu,
        lambda link: bool(link["addresses"]),
    )
    if len(candidates) != 1:
        raise FabricError(
            "One fabric NIC was expected.",
            where,
            _describe_all(candidates),
            f"Name it in `select` of fabric_networks, by {_keys(candidates, links)}.",
        )
    return _check_nic(candidates[0], where, require_rdma, dropped, obstacles, kind)
