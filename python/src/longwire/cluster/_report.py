"""The reports of all nodes as one."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ..records import Verdict
from ._state import Loss

#: A parsed report.
Report = Dict[str, Any]

#: The port of a tunnel: the number of its cut, and the machine to which it leads.
_TUNNEL = re.compile(r"(cut[0-9]+)-(.+)")


@dataclass(frozen=True)
class ClusterVerdict:
    """Whether a run was faithful on all nodes, and no node was lost. It is true in a condition if so."""

    faithful: bool
    #: Why not, each with its node; losses of nodes first.
    causes: Tuple[str, ...]
    #: The verdicts of the nodes that answered; None before their first packet.
    nodes: Mapping[str, Optional[Verdict]]

    def __bool__(self) -> bool:
        return self.faithful

    def __str__(self) -> str:
        return "faithful" if self.faithful else "not faithful: " + "; ".join(self.causes)


def judge(reports: Mapping[str, Optional[Report]], losses: Sequence[Loss]) -> ClusterVerdict:
    """The verdict on a run: of each node its report or summary, or None if it has none."""
    causes = [str(loss) for loss in losses]
    verdicts = {}
    for node, report in reports.items():
        if report is None:
            causes.append(f"node {node} gave no report")
            continue
        verdict = verdicts[node] = Verdict.of_json(report.get("fidelity"))
        if verdict is not None and not verdict:
            causes += [f"node {node}: {cause}" for cause in verdict.causes or (verdict.reason,)]
    return ClusterVerdict(not causes, tuple(causes), verdicts)


def merged(
    head: Mapping[str, Any], reports: Mapping[str, Optional[Report]], losses: Sequence[Loss]
) -> Report:
    """The report of a run: the rows of all nodes, the verdict, what crossed tunnels, and whether all
    packets are accounted for. `head` has what is known of the run."""
    verdict = judge(reports, losses)
    known = {node: report for node, report in reports.items() if report is not None}
    rows = [{"node": node, **row} for node, report in known.items() for row in report["rows"]]
    dropped: Counter[str] = Counter()
    for report in known.values():
        dropped.update(report["dropped"])
    conservation = _conservation(known)
    failures = [f"node {node}: {why}" for node, one in known.items() for why in one.get("failures", [])]
    return {
        "command": "cluster",
        **head,
        "fidelity": {"faithful": verdict.faithful, "causes": list(verdict.causes)},
        "nodes": [_node(node, report, losses) for node, report in reports.items()],
        "tunnels": list(_crossings(rows)),
        "dropped": dict(dropped),
        "conservation": conservation,
        "failures": failures,
        "rows": rows,
        "pass": not failures and conservation["accounted"] and len(known) == len(reports),
    }


def _node(name: str, report: Optional[Report], losses: Sequence[Loss]) -> Dict[str, Any]:
    keys = ("from_ns", "to_ns", "noticed_within_ns", "reason")
    own = [{key: getattr(loss, key) for key in keys} for loss in losses if loss.node == name]
    head = {key: (report or {}).get(key) for key in ("version", "machine", "elapsed_ns", "fidelity", "pool")}
    return {"name": name, "answered": report is not None, **head, "losses": own}


def _conservation(reports: Mapping[str, Report]) -> Dict[str, Any]:
    """Packets that came to the nodes and went from them, tunnels included."""
    come = gone = 0
    accounted = True
    for report in reports.values():
        for row in report["rows"]:
            if row["name"] == "packets accounted for":
                come, gone = come + row["expected"], gone + row["measured"]
                accounted = accounted and row["pass"] is not False
    return {"come": come, "gone": gone, "accounted": accounted}


def _crossings(rows: Iterable[Mapping[str, Any]]) -> Iterable[Dict[str, Any]]:
    """What went into each tunnel, and what came out of it, in each direction."""
    ends: Dict[Tuple[str, str, str], Mapping[str, Any]] = {}
    for row in rows:
        found = _TUNNEL.fullmatch(row["name"]) if row.get("kind") == "port" else None
        if found is not None:
            ends[found.group(1), row["node"], found.group(2)] = row
    for (cut, node, peer), row in sorted(ends.items()):
        far = ends.get((cut, peer, node))
        underlay: Mapping[str, Any] = (far or {}).get("underlay") or {}
        yield {
            "cut": cut,
            "from": node,
            "to": peer,
            "sent_packets": row.get("out_frames"),
            "received_packets": None if far is None else far.get("in_frames"),
            "lost_messages": underlay.get("lost_messages"),
            "overdue_packets": underlay.get("overdue_packets"),
            "clock_error_ns": underlay.get("clock_error_ns"),
        }


def unconnected(ports: Iterable[Mapping[str, Any]]) -> List[str]:
    """The tunnels among ports, with their counters, that have no session."""
    return [
        str(port["name"])
        for port in ports
        if (port.get("stats") or {}).get("underlay") is not None
        and not port["stats"]["underlay"]["connected"]
    ]
